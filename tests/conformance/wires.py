"""The four languages that coding agents speak with their models, each with and without streaming.

A wire reads a request and writes an answer. It knows no script and no socket.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.turns import STATUS, Fault, Refuse, Run, Say, Trouble, Use

Json = Mapping[str, Any]
Answer = Say | Run | Use | Refuse

SHELLS: Mapping[str, str] = {
    "Bash": "command",
    "bash": "command",
    "exec_command": "cmd",
    "shell_command": "command",
    "run_shell_command": "command",
    "shell": "command",
}
"""The shell tools of the agents, and the argument that holds the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request to the model."""

    tools: tuple[str, ...]
    results: int
    """Tool results in the conversation so far."""
    conversation: str
    """All of it, as JSON."""
    stream: bool = False
    session: str = ""
    """The conversation's id, where the agent sends one."""

    @property
    def shell(self) -> str | None:
        """The agent's shell tool; a request without one is a side question, such as one for a title."""
        return next((name for name in self.tools if name in SHELLS), None)


class Wire(ABC):
    """One language."""

    in_stream: frozenset[Trouble] = frozenset()
    """Trouble that the provider tells after a stream has begun, not by a status."""

    @abstractmethod
    def serves(self, path: str) -> bool: ...

    @abstractmethod
    def read(self, body: Json) -> Asked: ...

    @abstractmethod
    def whole(self, answer: Answer, asked: Asked, number: int) -> Json:
        """Return the answer as one object."""

    @abstractmethod
    def events(self, answer: Answer, asked: Asked, number: int) -> Iterator[str]:
        """Yield the answer as server-sent events."""

    @abstractmethod
    def error(self, fault: Fault) -> Json: ...

    def failed(self, fault: Fault) -> Iterator[str]:
        """Yield a fault that comes inside a stream."""
        yield _named("error", **self.error(fault))


class Messages(Wire):
    """Anthropic's Messages API, as Claude Code speaks it."""

    TYPES: Mapping[Trouble, str] = {
        "rate_limit": "rate_limit_error",
        "quota": "rate_limit_error",
        "overloaded": "overloaded_error",
        "server_error": "api_error",
        "auth": "authentication_error",
        "overflow": "invalid_request_error",
    }

    def serves(self, path: str) -> bool:
        return path.endswith("/v1/messages")

    def read(self, body: Json) -> Asked:
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return Asked(
            tools=tuple(tool.get("name", "") for tool in body.get("tools", ())),
            results=sum(block.get("type") == "tool_result" for block in blocks),
            conversation=json.dumps(body["messages"]),
        )

    def whole(self, answer: Answer, asked: Asked, number: int) -> Json:
        block, reason = self._block(answer, asked, number)
        return {
            **self._opening(number),
            "content": [block],
            "stop_reason": reason,
            "usage": {"input_tokens": 1000, "output_tokens": 50},
        }

    def events(self, answer: Answer, asked: Asked, number: int) -> Iterator[str]:
        block, reason = self._block(answer, asked, number)
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _named("message_start", message={**self._opening(number), "content": []})
        yield _named("content_block_start", index=0, content_block=start)
        yield _named("content_block_delta", index=0, delta=delta)
        yield _named("content_block_stop", index=0)
        yield _named("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 50})
        yield _named("message_stop")

    def error(self, fault: Fault) -> Json:
        return {"type": "error", "error": {"type": self.TYPES[fault.trouble], "message": fault.message}}

    def _opening(self, number: int) -> Json:
        return {
            "id": f"msg_{number:04}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1000, "output_tokens": 1},
        }

    def _block(self, answer: Answer, asked: Asked, number: int) -> tuple[dict[str, Any], str]:
        match answer:
            case Run() | Use():
                name, arguments = _call(asked, answer)
                return {"type": "tool_use", "id": f"toolu_{number:04}", "name": name, "input": arguments}, "tool_use"
            case Refuse(text):
                return {"type": "text", "text": text}, "refusal"
            case Say(text):
                return {"type": "text", "text": text}, "end_turn"


class Responses(Wire):
    """OpenAI's Responses API, as Codex speaks it."""

    in_stream = frozenset({"overflow"})

    def serves(self, path: str) -> bool:
        return path.endswith("/responses")

    def read(self, body: Json) -> Asked:
        items = body["input"] if isinstance(body["input"], list) else []
        return Asked(
            tools=tuple(tool.get("name", "") for tool in body.get("tools", ())),
            results=sum(str(item.get("type")).endswith("_call_output") for item in items),
            conversation=json.dumps(body["input"]),
        )

    def whole(self, answer: Answer, asked: Asked, number: int) -> Json:
        return {
            "id": f"resp_{number:04}",
            "object": "response",
            "status": "completed",
            "model": "gpt-5.5",
            "output": [self._item(answer, asked, number)],
            "usage": {
                "input_tokens": 1000,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 1050,
            },
        }

    def events(self, answer: Answer, asked: Asked, number: int) -> Iterator[str]:
        whole = self.whole(answer, asked, number)
        yield _named("response.created", response={**whole, "status": "in_progress", "output": [], "usage": None})
        yield _named("response.output_item.added", output_index=0, item={**whole["output"][0], "status": "in_progress"})
        yield _named("response.output_item.done", output_index=0, item=whole["output"][0])
        yield _named("response.completed", response=whole)

    def error(self, fault: Fault) -> Json:
        return _openai_error(fault)

    def failed(self, fault: Fault) -> Iterator[str]:
        error = {"code": OPENAI[fault.trouble][1], "message": fault.message}
        yield _named("response.failed", response={"id": "resp_failed", "status": "failed", "error": error})

    def _item(self, answer: Answer, asked: Asked, number: int) -> dict[str, Any]:
        if isinstance(answer, Use) and answer.tool == "tool_search":
            return {
                "type": "tool_search_call",
                "id": f"ts_{number:04}",
                "call_id": f"call_{number:04}",
                "execution": "client",
                "arguments": dict(answer.arguments),
                "status": "completed",
            }
        if isinstance(answer, Run | Use):
            name, arguments = _call(asked, answer)
            return {
                "type": "function_call",
                "id": f"fc_{number:04}",
                "call_id": f"call_{number:04}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
                **({"namespace": answer.namespace} if isinstance(answer, Use) and answer.namespace else {}),
            }
        part = (
            {"type": "refusal", "refusal": answer.text}
            if isinstance(answer, Refuse)
            else {"type": "output_text", "text": answer.text, "annotations": []}
        )
        return {
            "type": "message",
            "id": f"msg_{number:04}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }


class Chat(Wire):
    """OpenAI's chat completions, which most other agents can speak."""

    def serves(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def read(self, body: Json) -> Asked:
        return Asked(
            tools=tuple(tool["function"]["name"] for tool in body.get("tools", ()) if "function" in tool),
            results=sum(message.get("role") == "tool" for message in body["messages"]),
            conversation=json.dumps(body["messages"]),
        )

    def whole(self, answer: Answer, asked: Asked, number: int) -> Json:
        message, reason = self._message(answer, asked, number)
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {**self._opening(number, "chat.completion"), "choices": [choice], "usage": self._usage()}

    def events(self, answer: Answer, asked: Asked, number: int) -> Iterator[str]:
        opening = self._opening(number, "chat.completion.chunk")
        delta, reason = self._message(answer, asked, number)
        calls = [{"index": place, **call} for place, call in enumerate(delta.get("tool_calls", ()))]
        delta = {**delta, **({"tool_calls": calls} if calls else {})}
        yield _event({**opening, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _event({**opening, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        yield _event({**opening, "choices": [], "usage": self._usage()})
        yield "data: [DONE]\n\n"

    def error(self, fault: Fault) -> Json:
        return _openai_error(fault)

    def _opening(self, number: int, kind: str) -> Json:
        return {"id": f"chatcmpl-{number:04}", "object": kind, "created": 0, "model": "scripted"}

    def _usage(self) -> Json:
        return {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}

    def _message(self, answer: Answer, asked: Asked, number: int) -> tuple[dict[str, Any], str]:
        match answer:
            case Run() | Use():
                name, arguments = _call(asked, answer)
                function = {"name": name, "arguments": json.dumps(arguments)}
                call = {"id": f"call_{number:04}", "type": "function", "function": function}
                return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
            case Refuse(text):
                return {"role": "assistant", "content": None, "refusal": text}, "content_filter"
            case Say(text):
                return {"role": "assistant", "content": text}, "stop"


class Gemini(Wire):
    """Google's generateContent, as Gemini CLI speaks it."""

    STATUSES: Mapping[Trouble, str] = {
        "rate_limit": "RESOURCE_EXHAUSTED",
        "quota": "RESOURCE_EXHAUSTED",
        "overloaded": "UNAVAILABLE",
        "server_error": "INTERNAL",
        "auth": "UNAUTHENTICATED",
        "overflow": "INVALID_ARGUMENT",
    }

    def serves(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def read(self, body: Json) -> Asked:
        declared = [name for tool in body.get("tools", ()) for name in tool.get("functionDeclarations", ())]
        parts = [part for content in body["contents"] for part in content.get("parts", ())]
        return Asked(
            tools=tuple(tool["name"] for tool in declared),
            results=sum("functionResponse" in part for part in parts),
            conversation=json.dumps(body["contents"]),
        )

    def whole(self, answer: Answer, asked: Asked, number: int) -> Json:
        if isinstance(answer, Run | Use):
            name, arguments = _call(asked, answer)
            part: Json = {"functionCall": {"name": name, "args": arguments}}
        else:
            part = {"text": answer.text}
        reason = "SAFETY" if isinstance(answer, Refuse) else "STOP"
        content = {"role": "model", "parts": [part]}
        return {
            "candidates": [{"index": 0, "content": content, "finishReason": reason}],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 50, "totalTokenCount": 1050},
            "modelVersion": "scripted",
            "responseId": f"{number:04}",
        }

    def events(self, answer: Answer, asked: Asked, number: int) -> Iterator[str]:
        yield _event(self.whole(answer, asked, number))

    def error(self, fault: Fault) -> Json:
        return {
            "error": {"code": STATUS[fault.trouble], "message": fault.message, "status": self.STATUSES[fault.trouble]}
        }


WIRES: Sequence[Wire] = (Messages(), Responses(), Chat(), Gemini())

OPENAI: Mapping[Trouble, tuple[str, str]] = {
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "quota": ("usage_limit_reached", "usage_limit_reached"),
    "overloaded": ("server_error", "server_is_overloaded"),
    "server_error": ("server_error", "server_error"),
    "auth": ("invalid_request_error", "invalid_api_key"),
    "overflow": ("invalid_request_error", "context_length_exceeded"),
}


def _openai_error(fault: Fault) -> Json:
    kind, code = OPENAI[fault.trouble]
    more = {"plan_type": "pro", "resets_at": int(fault.ends)} if fault.trouble == "quota" else {}
    return {"error": {"message": fault.message, "type": kind, "code": code, "param": None, **more}}


def _call(asked: Asked, answer: Run | Use) -> tuple[str, Json]:
    """Make a call of the tool that is named, or of the shell tool that this agent offers."""
    if isinstance(answer, Use):
        return answer.tool, answer.arguments
    assert asked.shell is not None
    return asked.shell, {SHELLS[asked.shell]: answer.command, "description": "one step of the task"}


def _named(name: str, **fields: Any) -> str:
    return f"event: {name}\n" + _event({"type": name, **fields})


def _event(content: Json) -> str:
    return f"data: {json.dumps(content)}\n\n"
