"""The scripted model itself: it speaks four languages, and stays in its part."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from tests.conformance.server import ModelServer
from tests.conformance.turns import Cut, Fault, Refuse, Run, Say, Stall, Trouble
from tests.waiting import wait_until

MESSAGES, RESPONSES, CHAT = "/v1/messages?beta=true", "/v1/responses", "/v1/chat/completions"
GEMINI, GEMINI_STREAM = "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse"

REQUESTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "messages": (MESSAGES, {"messages": [{"role": "user", "content": "go"}], "tools": [{"name": "Bash"}]}),
    "responses": (RESPONSES, {"input": [{"role": "user"}], "tools": [{"type": "function", "name": "exec_command"}]}),
    "chat": (CHAT, {"messages": [{"role": "user", "content": "go"}], "tools": [{"function": {"name": "bash"}}]}),
    "gemini": (
        GEMINI,
        {
            "contents": [{"role": "user", "parts": [{"text": "go"}]}],
            "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
        },
    ),
}
EVERY_WIRE = pytest.mark.parametrize("wire", REQUESTS)
STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str


def ask(model: ModelServer, wire: str, *, stream: bool = False, **more: Any) -> Reply:
    path, body = REQUESTS[wire]
    path = GEMINI_STREAM if stream and wire == "gemini" else path
    return post(model, path, {**body, "stream": stream, **more})


def post(model: ModelServer, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Reply:
    with closing(http.client.HTTPConnection(*model.address, timeout=20)) as connection:
        connection.request("POST", path, json.dumps(body), dict(headers or {}))
        told = connection.getresponse()
        return Reply(told.status, dict(told.headers), told.read().decode())


@EVERY_WIRE
@STREAMED
def test_every_wire_carries_a_text(wire: str, stream: bool) -> None:
    with ModelServer([Say("Grüße")]) as model:
        told = ask(model, wire, stream=stream)
        text = told.text
    assert told.status == 200
    assert "Grüße" in text or json.dumps("Grüße").strip('"') in text
    assert text.startswith(("event:", "data:") if stream else "{")


@EVERY_WIRE
@STREAMED
def test_every_wire_calls_the_shell_tool_that_the_agent_offers(wire: str, stream: bool) -> None:
    with ModelServer([Run("touch a b")]) as model:
        text = ask(model, wire, stream=stream).text
    tool = {"messages": "Bash", "responses": "exec_command", "chat": "bash", "gemini": "run_shell_command"}[wire]
    assert f'"name": "{tool}"' in text
    assert "touch a b" in text


@EVERY_WIRE
@STREAMED
def test_every_wire_refuses_in_its_own_way(wire: str, stream: bool) -> None:
    with ModelServer([Refuse("no")]) as model:
        text = ask(model, wire, stream=stream).text
    assert {"messages": '"refusal"', "responses": '"refusal"', "chat": "content_filter", "gemini": "SAFETY"}[
        wire
    ] in text


@EVERY_WIRE
@pytest.mark.parametrize(
    ("trouble", "status"),
    [("rate_limit", 429), ("quota", 429), ("overloaded", 529), ("server_error", 500), ("auth", 401)],
)
def test_every_wire_tells_trouble_by_status_headers_and_words(wire: str, trouble: Trouble, status: int) -> None:
    fault = Fault(
        trouble=trouble, lasts=60, headers={"retry-after": "7", "x-reset": "{reset}"}, message="until {reset}"
    )
    with ModelServer([fault]) as model:
        began = time.time()
        told = ask(model, wire, stream=True)
        error = json.loads(told.text)["error"]
    assert (told.status, told.headers["retry-after"]) == (status, "7")
    assert abs(float(told.headers["x-reset"]) - began - 60) < 10
    assert error["message"] == f"until {told.headers['x-reset']}"


def test_a_fault_lasts_for_all_who_ask_and_then_it_is_over() -> None:
    with ModelServer([Fault(trouble="overloaded", lasts=0.5), Say("Back.")]) as model:
        statuses = [ask(model, "chat").status, ask(model, "messages").status]
        answers = []

        def answered() -> bool:
            answers.append(ask(model, "chat"))
            return answers[-1].status == 200

        wait_until(answered, "the end of the fault")
    assert statuses == [529, 529]
    assert "Back." in answers[-1].text
    assert not model.left


def test_a_fault_that_does_not_last_is_met_once() -> None:
    with ModelServer([Fault(trouble="rate_limit"), Say("Back.")]) as model:
        assert [ask(model, "chat").status for _ in range(2)] == [429, 200]


@EVERY_WIRE
def test_a_side_question_takes_no_turn(wire: str) -> None:
    with ModelServer([Say("for the task")]) as model:
        assert "for the task" not in ask(model, wire, tools=[]).text
        assert model.left == (Say("for the task"),)


def test_a_full_conversation_stays_full_and_a_new_one_is_not() -> None:
    result = {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}
    body: dict[str, Any] = {"messages": [result], "tools": [{"name": "Bash"}]}
    with ModelServer([Run("one"), Run("two")], window=1) as model:
        first, second = {"x-claude-code-session-id": "1"}, {"x-claude-code-session-id": "2"}
        statuses = [post(model, MESSAGES, body, first).status]
        statuses += [post(model, MESSAGES, {**body, "messages": [result, result]}, first).status]
        statuses += [post(model, MESSAGES, body, first).status, post(model, MESSAGES, body, second).status]
    assert statuses == [200, 400, 400, 200]


def test_codex_hears_of_a_full_conversation_inside_the_stream() -> None:
    result = {"type": "function_call_output", "output": "x"}
    with ModelServer([], window=0) as model:
        told = ask(model, "responses", stream=True, input=[result])
        text = told.text
    assert told.status == 200
    assert "response.failed" in text
    assert "context_length_exceeded" in text


def test_a_stalled_request_ends_with_the_server() -> None:
    path, body = REQUESTS["chat"]
    content = json.dumps(body).encode()
    with socket.socket() as client:
        with ModelServer([Stall()]) as model:
            client.connect(model.address)
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content
            )
            while not model.answers:
                threading.Event().wait(0.01)
            client.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.recv(1)
            client.settimeout(None)
        assert client.recv(1) == b""


def test_a_cut_answer_begins_and_does_not_end() -> None:
    with ModelServer([Cut()]) as model, pytest.raises(ConnectionResetError):
        ask(model, "messages", stream=True)
    assert model.answers == [Cut()]


@pytest.mark.parametrize(
    "line", ["CONNECT example.org:443", "GET http://example.org/", "POST http://example.org/v1/messages"]
)
def test_whoever_wants_to_leave_loopback_is_refused_and_remembered(line: str) -> None:
    with ModelServer([]) as model, socket.create_connection(model.address, timeout=20) as client:
        client.sendall(f"{line} HTTP/1.1\r\nHost: example.org\r\nContent-Length: 0\r\n\r\n".encode())
        assert client.recv(64).startswith(b"HTTP/1.1 403")
    assert model.escapes == [line.split()[1]]


def test_the_script_ends_with_words_not_with_an_error() -> None:
    with ModelServer([]) as model:
        assert "nothing left" in ask(model, "gemini").text
