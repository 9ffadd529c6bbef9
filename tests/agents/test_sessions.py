"""What thirteen coding agents print, read: recorded sessions cut down to their essential lines, whole, torn and corrupted."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from unstuck.agents.manifests import agent_catalog
from unstuck.agents.output_formats import output_formats, transcript_json
from unstuck.agents.output_streams import read_stream
from unstuck.model.outcome import End, Transcript

FOLDER = Path(__file__).parent / "sessions"


@dataclass(frozen=True, slots=True)
class Session:
    """One recorded session."""

    agent: str
    name: str
    code: int | None
    stdout: tuple[str, ...]
    stderr: tuple[str, ...]

    def read(self, stdout: tuple[str, ...] | None = None, stderr: tuple[str, ...] | None = None) -> Transcript:
        known = agent_catalog()[self.agent]
        return read_stream(
            output_formats()[known.output],
            self.stdout if stdout is None else stdout,
            self.stderr if stderr is None else stderr,
            code=self.code,
            meanings=known.exit_codes,
        )


def recorded() -> Iterator[Session]:
    for path in sorted(FOLDER.glob("*.json")):
        for one in json.loads(path.read_text(encoding="utf-8")):
            yield Session(path.stem, one["name"], one["code"], tuple(one["stdout"]), tuple(one["stderr"]))


SESSIONS = {f"{one.agent}-{one.name}": one for one in recorded()}
DONE = (
    "success",
    "fail_exit1",
    "fail_127",
    "fail_127_bash",
    "fail_timeout_nobg",
    "false_done",
    "mcp",
    "resume1",
    "resume2",
)
BY_SCENARIO = {
    **dict.fromkeys(DONE, "done_claimed"),
    "ctx_overflow": "context_exhausted",
    "ctx_overflow_stream": "context_exhausted",
    "err_429": "rate_limited",
    "err_429_retries0": "rate_limited",
    "err_429_retries2": "rate_limited",
    "err_429_unified": "rate_limited",
    "err_529_retries0": "overloaded",
    "err_529_retries2": "overloaded",
    "err_401_retries0": "auth_failed",
    "err_quota": "billing",
    "killed_INT": "killed",
    "killed_TERM": "killed",
    "maxturns": "max_turns",
    "perm_default": "permission_denied",
}
EXIT_127 = sorted(key for key in SESSIONS if "fail_127" in key and not key.startswith(("gemini", "continue")))


def test_every_recorded_session_gives_its_end() -> None:
    ends = {key: session.read().end for key, session in SESSIONS.items()}
    assert ends == {key: BY_SCENARIO[session.name] for key, session in SESSIONS.items()}


def test_every_known_agent_has_recorded_sessions() -> None:
    assert {one.agent for one in SESSIONS.values()} == set(agent_catalog())


def test_a_session_cut_at_any_line_still_ends_in_one_of_the_reasons() -> None:
    offenders = []
    for key, session in SESSIONS.items():
        ends = [session.read(stdout=session.stdout[:at]).end for at in range(len(session.stdout) + 1)]
        ends += [session.read(stderr=session.stderr[:at]).end for at in range(len(session.stderr) + 1)]
        offenders += [(key, end) for end in ends if end not in get_args(End)]
    assert offenders == []


BROKEN: dict[str, Callable[[str], str]] = {
    "torn": lambda line: line[: len(line) // 2],
    "beheaded": lambda line: line[len(line) // 2 :],
    "swapped": lambda line: line.replace('"type"', '"tpye"').replace('"role"', '"rloe"'),
    "not-an-object": lambda _line: "[1, 2, 3]",
    "of-other-shapes": lambda line: line.replace(":{", ":[").replace("},", "],").replace("}", "]", 1),
    "filled-with-nothing": lambda line: json.dumps(emptied(json.loads(line))) if line.startswith("{") else line,
    "bytes": lambda _line: "\x00\ufffd{\x1b[31m",
}


def emptied(value: Any) -> Any:
    """Keep the types of events, and put nothing where anything else was."""
    return {key: part if key in ("type", "role", "subtype") else None for key, part in value.items()}


@pytest.mark.parametrize("how", BROKEN)
def test_a_session_with_any_line_corrupted_still_ends_in_one_of_the_reasons(how: str) -> None:
    broken, offenders = BROKEN[how], []
    for key, session in SESSIONS.items():
        out, torn = session.stdout, tuple(BROKEN["torn"](line) for line in session.stderr)
        ends = [session.read(stdout=(*out[:at], broken(line), *out[at + 1 :])).end for at, line in enumerate(out)]
        ends.append(session.read(stdout=tuple(map(broken, out)), stderr=torn).end)
        offenders += [(key, end) for end in ends if end not in get_args(End)]
    assert offenders == []


@pytest.mark.parametrize("key", EXIT_127)
def test_the_exit_code_of_a_failing_tool_is_read(key: str) -> None:
    calls = SESSIONS[key].read().tools
    assert [(call.exit_code, call.ok) for call in calls] == [(127, False)]
    assert "nosuchtool" in calls[0].input


def test_what_was_read_has_the_public_shape() -> None:
    told = transcript_json("claude", SESSIONS["claude-success"].read())
    assert told["session_id"] == "7e5f7a5e-b91a-455f-93f7-f90f08dc08c2"
    assert (told["cost_usd"], told["usage"]) == (0.02, {"input_tokens": 4000, "output_tokens": 200})
    assert (told["end"], told["claim"], told["resets_at"]) == ("done_claimed", "done", None)
    assert told["message"] == "Done: hello.py was added and committed."
    assert told["tools"][1] == {"name": "Write", "input": "/repo/hello.py", "exit_code": None, "ok": True}
    assert list(told) == [
        "schema",
        "agent",
        "end",
        "resets_at",
        "session_id",
        "cost_usd",
        "usage",
        "claim",
        "message",
        "tools",
    ]


def test_an_agent_that_says_nothing_of_its_cost_is_not_free() -> None:
    told = transcript_json("codex", SESSIONS["codex-success"].read())
    assert told["cost_usd"] is None
    assert transcript_json("continue", SESSIONS["continue-success"].read())["usage"] is None
