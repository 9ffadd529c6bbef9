"""Read the output of an agent's session, line by line, and decide why the session ended.

Whatever the lines hold, reading never fails and always ends in one of the `End` reasons.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from unstuck.agents.claims import blocking_question, read_statement
from unstuck.agents.printed_json import JsonEvent, argument_summary, event_of, timestamp_of
from unstuck.agents.provider_errors import (
    MAX_ERROR_LINES,
    error_line,
    fault_from_error,
    last_error_in,
    newer_fault,
)
from unstuck.model.outcome import Claim, End, Fault, ToolCall, Transcript, Usage
from unstuck.model.text import one_line

WORDS_CHARS = 64_000
MESSAGE_CHARS = 4_000
INPUT_CHARS = 1_000
MAX_TOOLS = 10_000
MAX_DENIED, DENIED_CHARS = 10, 120

SIGNAL_EXIT_CODES: Final = frozenset({124, 130, 137, 143})
"""Exit codes of programs that were ended by a signal, or by `timeout`."""
QUESTION_TOOLS: Final = ("AskUserQuestion", "ask_user", "ask_followup_question", "ask_question", "request_user_input")
"""Tools by which agents ask the user a question."""
LOST_SESSION = re.compile(r"(?is)no conversation found|no rollout found|session.*not found|not found.*session")
"""Errors that mean that the session to continue no longer exists."""


@dataclass(slots=True)
class SessionFacts:
    """The facts about a session so far. Readers add them in the order of the lines."""

    session: str = ""
    cost_usd: float | None = None
    usage: Usage | None = None
    message: str = ""
    words: str = ""
    tools: dict[str, ToolCall] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)
    """The tool calls that were not allowed, by their keys."""
    refused: bool = False
    fault: Fault | None = None
    retrying: bool = False
    """The agent tries again and has not said why."""
    finished: Literal["", "ok", "error"] = ""
    reason: End | None = None
    """The typed reason that the agent gave for its end."""
    events: int = 0
    """Lines that were understood."""
    is_speaking: bool = False
    """The last event held words, and more of the same message may follow."""
    at: float | None = None
    """The time of the last line, where lines have one."""

    def add_words(self, text: str, *, is_continued: bool = False) -> None:
        """Add words of the agent. They show that it got an answer, so an earlier error is over.

        `is_continued`: the words belong to the same message as those before.
        """
        if not text.strip():
            return
        self.message = f"{self.message if is_continued and self.is_speaking else ''}{text}"[-MESSAGE_CHARS:]
        self.words = f"{self.words}\n{text}"[-WORDS_CHARS:]
        self.is_speaking = True
        self.retrying = self.refused = False
        if self.fault is not None and self.fault.end != "context_exhausted":
            self.fault = None  # words after an overflow may be the summary that did not help

    def add_call(self, name: str, arguments: object = "", key: str = "") -> None:
        """Add a tool call, unless it was reported already. An earlier error is over."""
        if key in self.tools:
            return
        self.fault, self.retrying, self.refused, self.finished, self.reason = None, False, False, "", None
        self.is_speaking = False
        if len(self.tools) < MAX_TOOLS:
            summary = one_line(argument_summary(arguments), INPUT_CHARS)
            self.tools[key or f"#{len(self.tools)}"] = ToolCall(name=name, input=summary)

    def add_return(self, key: str, *, ok: bool, exit_code: object = None, denied: bool = False) -> None:
        """Add the result of a tool call."""
        call, code = self.tools.get(key), exit_code if isinstance(exit_code, int) else None
        if call is not None:
            self.tools[key] = replace(call, exit_code=code, ok=ok and code in (None, 0))
        if denied:
            self.add_denied(key)

    def add_denied(self, key: str, name: str = "", arguments: object = "") -> None:
        """Add a tool call that was not allowed."""
        call = self.tools.get(key)
        words = f"{call.name} {call.input}" if call is not None else f"{name} {argument_summary(arguments)}"
        self.denied[key] = one_line(words, DENIED_CHARS) or "a tool"

    def add_fault(self, fault: Fault | None) -> None:
        """Add an error. It is over as soon as the agent goes on."""
        if fault is not None:
            self.fault = newer_fault(self.fault, fault)

    def add_error(self, words: str, *, status: object = None, name: str = "") -> bool:
        """Judge an error by its words and add it. Return whether the words mean anything."""
        fault = fault_from_error(words, status=status, name=name, at=self.at)
        self.add_fault(fault)
        return fault is not None

    def finish(self, *, ok: bool, reason: End | None = None) -> None:
        """Record the agent's own last word."""
        self.finished, self.reason = ("ok" if ok else "error"), reason
        if ok:
            self.fault, self.retrying = None, False

    def set_usage(self, tokens_in: object, tokens_out: object) -> None:
        """Record the tokens of the whole session."""
        if isinstance(tokens_in, int) and isinstance(tokens_out, int):
            self.usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out)

    def add_usage(self, tokens_in: object, tokens_out: object, cost: object = None) -> None:
        """Add the tokens and the cost of one more call of the model."""
        if isinstance(tokens_in, int) and isinstance(tokens_out, int):
            before = self.usage or Usage(input_tokens=0, output_tokens=0)
            self.usage = before + Usage(input_tokens=tokens_in, output_tokens=tokens_out)
        if isinstance(cost, int | float):
            self.set_cost((self.cost_usd or 0.0) + cost)

    def set_cost(self, cost: object) -> None:
        """Record the cost of the whole session."""
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self.cost_usd = float(cost)

    @property
    def last_call(self) -> ToolCall | None:
        return next(reversed(self.tools.values()), None)

    @property
    def is_hanging(self) -> bool:
        """True if the last tool call never returned."""
        return self.last_call is not None and self.last_call.ok is None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormat:
    """One output format of coding agents."""

    read_event: Callable[[SessionFacts, JsonEvent], bool] = lambda _facts, _event: False
    """Reads one event and returns whether it was understood."""
    read_text: Callable[[SessionFacts, Iterable[str]], None] | None = None
    """Reads all lines of a format that is made for people."""
    read_noise: Callable[[SessionFacts, str], None] = lambda _facts, _line: None
    """Reads a line that is no event."""
    stderr_error: re.Pattern[str] = field(default_factory=error_line)
    """The pattern of an error on stderr. It is strict where stderr repeats the tools' output."""
    has_no_last_word: bool = False
    """The format has no last event, so exit code 0 stands for it."""


def read_stream(
    output: OutputFormat,
    stdout: Iterable[str],
    stderr: Iterable[str] = (),
    *,
    code: int | None = None,
    meanings: Mapping[int, End] | None = None,
) -> Transcript:
    """Read the whole output of a session. `code` is its exit code, negative for a signal."""
    facts = SessionFacts()
    noise: deque[str] = deque(maxlen=MAX_ERROR_LINES)
    if output.read_text is not None:
        output.read_text(facts, stdout)
    else:
        _read_events(output, facts, stdout, noise)
    has_work = bool(facts.message or facts.tools)
    if output.has_no_last_word and not code and not facts.finished and facts.fault is None and has_work:
        facts.finish(ok=True)
    stderr_fault = last_error_in(stderr, output.stderr_error, facts.at)
    if stderr_fault is None and (not facts.events or code):
        stderr_fault = last_error_in(noise, error_line(), facts.at)
    return conclude(facts, code, stderr_fault, meanings or {}, has_noise=bool(noise))


def _read_events(output: OutputFormat, facts: SessionFacts, lines: Iterable[str], noise: deque[str]) -> None:
    """Read the events of a stream. Lines that are no events are collected in `noise`."""
    for line in lines:
        event = event_of(line)
        if event is not None:
            facts.at = timestamp_of(event.get("timestamp") or event.get("ts")) or facts.at
            try:
                facts.events += output.read_event(facts, event)
            except (AttributeError, TypeError, ValueError, KeyError, IndexError, ArithmeticError, RecursionError):
                continue  # an event of an unknown shape must not hide the other events
        elif line.strip():
            output.read_noise(facts, line)
            noise.append(line)


def conclude(
    facts: SessionFacts, code: int | None, stderr_fault: Fault | None, meanings: Mapping[int, End], *, has_noise: bool
) -> Transcript:
    """Decide why the session ended. `stderr_fault` is the last error beside the stream."""
    statement = read_statement(facts.words)
    end = _end_of(facts, code, stderr_fault, meanings, has_noise=has_noise)
    claim: Claim = "none"
    if statement.claim == "failed":
        claim = "failed"
        end = "failed_claimed" if end in ("done_claimed", "no_work") else end
    elif end == "done_claimed" or (end == "permission_denied" and facts.finished == "ok"):
        claim = "none" if statement.denied else "done"
    if end in ("done_claimed", "permission_denied") and _asks_user(facts):
        end = "asks"
    faults = [fault for fault in (facts.fault, stderr_fault) if fault is not None and fault.end == end]
    resets = [fault.resets_at for fault in faults if fault.resets_at]
    return Transcript(
        end=end,
        claim=claim,
        session=facts.session,
        message=faults[0].message if faults else facts.message,
        approach=statement.approach,
        cost_usd=facts.cost_usd,
        usage=facts.usage,
        resets_at=max(resets, default=None),
        tools=tuple(facts.tools.values()),
        denied=tuple(dict.fromkeys(facts.denied.values()))[:MAX_DENIED],
        lost=end == "bad_request" and bool(faults) and LOST_SESSION.search(faults[0].message) is not None,
    )


def _asks_user(facts: SessionFacts) -> bool:
    if blocking_question(facts.message):
        return True
    return facts.last_call is not None and facts.last_call.name in QUESTION_TOOLS


def _end_of(
    facts: SessionFacts, code: int | None, stderr_fault: Fault | None, meanings: Mapping[int, End], *, has_noise: bool
) -> End:
    killed = code is not None and (code < 0 or code in SIGNAL_EXIT_CODES)
    if facts.finished == "ok" and facts.fault is None and (killed or not code):
        return facts.reason or _end_without_error(facts)
    if facts.finished == "error" and facts.reason is not None:
        return facts.reason
    if facts.fault is not None:
        return facts.fault.end
    died_in_tool = killed and facts.is_hanging
    if stderr_fault is not None and (code or facts.retrying or not facts.events) and not died_in_tool:
        return stderr_fault.end
    if facts.retrying:
        return "network"
    if killed:
        return "tool_hang" if facts.is_hanging else "killed"
    if code is not None and code in meanings:
        return meanings[code]
    if code or facts.finished == "error" or facts.events:
        return "crashed"  # also if it began and never said that it ended
    return "unreadable" if has_noise else "no_work"


def _end_without_error(facts: SessionFacts) -> End:
    if facts.denied:
        return "permission_denied"
    if facts.refused:
        return "refused"
    return "done_claimed" if facts.message or facts.tools else "no_work"


# --- formats that are text for people

MAX_LINES = 400
"""An agent's last words are not longer."""


def read_plain_text(facts: SessionFacts, lines: Iterable[str]) -> None:
    """Read the agent's last words. Its errors are on stderr."""
    text = "\n".join(deque((line.rstrip("\n") for line in lines), maxlen=MAX_LINES)).strip()
    facts.events = 1 if text else 0
    facts.add_words(text)


AIDER_HEAD = "https://aider.chat/HISTORY"
UNITS: Final = {"k": 1_000, "M": 1_000_000}


AIDER_ERROR = re.compile(r"(?:litellm\.)(?P<name>\w+(?:Error|Exception|Timeout)\b): ?(?P<words>.*)")
AIDER_TOKENS = re.compile(
    r"Tokens: (?P<sent>\d[\d,]*(?:\.\d+)?[kM]?) sent,(?:.*,)? (?P<received>\d[\d,]*(?:\.\d+)?[kM]?) received\.(?:.*\$(?P<cost>\d+(?:\.\d+)?) session)?"
)
AIDER_EDIT = re.compile("Applied edit to (?P<file>.+)")
AIDER_CONTEXT_FULL = re.compile(
    r"(?i)Model \S+ has hit a token limit!|The chat session is (?:too large|larger than the context window)"
)
AIDER_NO_LOGIN = re.compile(
    "(?i)(?:Warning: .* expects these environment variables|No LLM model was specified and no API keys)"
    "|(?-i:- [A-Z_]*API_KEY: Not set)"
)
AIDER_TOO_MANY_TURNS = re.compile(r"Only \d+ reflections allowed")


def read_aider_text(facts: SessionFacts, lines: Iterable[str]) -> None:
    """Read aider's text.

    Its exit code is 0 whatever happens. A litellm error without an answer after it is the end of the session.
    """
    error, has_begun = "", False
    answer: deque[str] = deque(maxlen=MAX_LINES)
    for line in (line.rstrip("\n") for line in lines):
        facts.events += 1 if line.strip() else 0
        if error:
            facts.add_error(f"{error} {line}")
            error = ""
        elif match := AIDER_ERROR.match(line):
            error = f"{match['name']}: {match['words']}"
            facts.add_error(error)
            answer.clear()
        elif match := AIDER_TOKENS.match(line):
            facts.add_words("\n".join(answer).strip())
            facts.set_usage(_token_count(match["sent"]), _token_count(match["received"]))
            facts.set_cost(float(match["cost"]) if match["cost"] else None)
            answer.clear()
        elif match := AIDER_EDIT.match(line):
            facts.add_call("edit", match["file"])
            facts.add_return(next(reversed(facts.tools)), ok=True)
        elif AIDER_CONTEXT_FULL.match(line):
            facts.add_error("context window exceeded")
        elif AIDER_NO_LOGIN.match(line):
            facts.add_error("no api key")
        elif AIDER_TOO_MANY_TURNS.match(line):
            facts.reason = "max_turns"
        elif has_begun:
            answer.append(line)
        has_begun = has_begun or line.startswith(AIDER_HEAD)


def _token_count(words: str) -> int:
    return round(float(words.rstrip("kM").replace(",", "")) * UNITS.get(words[-1], 1))


MINI_STEP = re.compile(r"mini-swe-agent \(step \d+, \$(?P<cost>[\d.]+)\):")
MINI_LIMIT = re.compile(r"(?:LimitsExceeded|CostLimit\w*|StepLimit\w*)")
MINI_ERROR = re.compile(r"(?:[\w.]+\.)?\w+(?:Error|Exception|Exceeded)\b")
MINI_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
MINI_RULER = "────"
MINI_SECTIONS: Final = {"Tool:": "tool", "Exit:": "exit", "User:": "other"}


def read_mini_text(facts: SessionFacts, lines: Iterable[str]) -> None:
    """Read mini-swe-agent's steps: words, commands and return codes. Its prompt stands before the first step."""
    section, is_fenced = "", False
    words: list[str] = []
    command: list[str] = []
    for line in (line.rstrip("\n") for line in lines):
        facts.events += 1 if line.strip() else 0
        if step := MINI_STEP.match(line):
            section, words, command, is_fenced = "step", [], [], False
            facts.set_cost(float(step["cost"]))
        elif section and line in MINI_SECTIONS:
            if section == "step":
                _end_mini_step(facts, words, command)
            section = MINI_SECTIONS[line]
        elif section == "step" and line.startswith("```"):
            is_fenced = not is_fenced
        elif section == "step" and not line.startswith(MINI_RULER):
            (command if is_fenced else words).append(line)
        elif section == "tool" and line == "<returncode>":
            section = "code"
        elif section == "code" and re.fullmatch(r"-?\d+", line.strip()):
            last_key = next(reversed(facts.tools), "")
            if last_key and facts.tools[last_key].ok is None:
                facts.add_return(last_key, ok=int(line) == 0, exit_code=int(line))
            section = "output"
        elif section == "exit" and (MINI_LIMIT.match(line) or MINI_ERROR.match(line)):
            facts.add_error(line)
            facts.finish(ok=False, reason="max_turns" if MINI_LIMIT.match(line) else None)
    if section == "step":
        _end_mini_step(facts, words, command)


def _end_mini_step(facts: SessionFacts, words: list[str], command: list[str]) -> None:
    facts.add_words("\n".join(words).strip())
    text = "\n".join(command).strip()
    if MINI_SUBMIT in text:
        facts.finish(ok=True)
    elif text:
        facts.add_call("bash", text)
