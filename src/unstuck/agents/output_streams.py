"""Reading what an agent prints: lines in, facts out, and at the end why the session ended.

Law: whatever the lines hold, reading never fails and always ends in one of the contract's end reasons.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Literal, cast

from unstuck.agents.claims import asks, statement
from unstuck.agents.provider_errors import fault, later, without_own
from unstuck.model.outcome import Claim, End, Fault, ToolCall, Transcript, Usage
from unstuck.model.text import one_line
from unstuck.shipped import shipped_toml

Event = Mapping[str, Any]

SAID_CHARS = 64_000
MESSAGE_CHARS = 4_000
INPUT_CHARS = 1_000
MOST_TOOLS = 10_000
MOST_DENIED, DENIED_CHARS = 10, 120
BY_SIGNAL = {124, 130, 137, 143}
"""Exit codes of programs that were ended by a signal, or by `timeout`."""


LONGEST_LINE = 4_000_000
SIDE_LINES = 400
"""So many of the last lines beside the stream are looked at."""
EVENT = '{"type":'
LAST_SECOND = 10**11
"""In the year 5138: more are milliseconds, or no time at all."""


@cache
def error_line() -> re.Pattern[str]:
    """Return what a line looks like that tells of an error of the agent itself."""
    return re.compile(rf"(?:\W{{1,3}}\s?)?(?:{'|'.join(shipped_toml('ends')['error_line'])})", re.IGNORECASE)


@dataclass(slots=True)
class Reading:
    """The facts so far. Readers call its verbs in the order of the lines."""

    session: str = ""
    cost_usd: float | None = None
    usage: Usage | None = None
    message: str = ""
    said: str = ""
    tools: dict[str, ToolCall] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)
    """What it was not allowed to do, by the call."""
    refused: bool = False
    fault: Fault | None = None
    retrying: bool = False
    """The agent tries again, and has not said why."""
    finished: Literal["", "ok", "error"] = ""
    reason: End | None = None
    """The typed reason that the agent gave for its end."""
    events: int = 0
    """Lines that were understood."""
    in_words: bool = False
    """The last thing that happened were words, and more of the same message may follow."""
    at: float | None = None
    """The time of the last line, where lines have one."""

    def say(self, text: str, *, more: bool = False) -> None:
        """Take in what the agent said: it got an answer, so an error before it is over. `more`: it goes on speaking."""
        if not text.strip():
            return
        self.message = f"{self.message if more and self.in_words else ''}{text}"[-MESSAGE_CHARS:]
        self.said = f"{self.said}\n{text}"[-SAID_CHARS:]
        self.in_words = True
        self.retrying = self.refused = False
        if self.fault is not None and self.fault.end != "context_exhausted":
            self.fault = None  # words after an overflow may be the summary that did not help

    def call(self, name: str, arguments: object = "", key: str = "") -> None:
        """Take in a tool call, which may be told twice: whatever went wrong before it is over."""
        if key in self.tools:
            return
        self.fault, self.retrying, self.refused, self.finished, self.reason = None, False, False, "", None
        self.in_words = False
        if len(self.tools) < MOST_TOOLS:
            self.tools[key or f"#{len(self.tools)}"] = ToolCall(
                name=name, input=one_line(given(arguments), INPUT_CHARS)
            )

    def returned(self, key: str, *, ok: bool, exit_code: object = None, denied: bool = False) -> None:
        """Take in how a tool call came out."""
        call, code = self.tools.get(key), exit_code if isinstance(exit_code, int) else None
        if call is not None:
            self.tools[key] = replace(call, exit_code=code, ok=ok and code in (None, 0))
        if denied:
            self.deny(key)

    def deny(self, key: str, name: str = "", arguments: object = "") -> None:
        """Take in that a tool call was not allowed."""
        call = self.tools.get(key)
        words = f"{call.name} {call.input}" if call is not None else f"{name} {given(arguments)}"
        self.denied[key] = one_line(words, DENIED_CHARS) or "a tool"

    def fail(self, found: Fault | None) -> None:
        """Take in an error; it is over as soon as the agent goes on."""
        if found is not None:
            self.fault = later(self.fault, found)

    def error(self, words: str, *, status: object = None, name: str = "") -> bool:
        """Judge an error by its words; return whether they tell anything."""
        found = fault(words, status=status, name=name, at=self.at)
        self.fail(found)
        return found is not None

    def finish(self, *, ok: bool, reason: End | None = None) -> None:
        """Take in the agent's own last word."""
        self.finished, self.reason = ("ok" if ok else "error"), reason
        if ok:
            self.fault, self.retrying = None, False

    def count(self, given: object, received: object) -> None:
        """Take in the tokens of the whole session."""
        if isinstance(given, int) and isinstance(received, int):
            self.usage = Usage(input_tokens=given, output_tokens=received)

    def add(self, given: object, received: object, cost: object = None) -> None:
        """Take in the tokens, and the cost, of one more call of the model."""
        if isinstance(given, int) and isinstance(received, int):
            before = self.usage or Usage(input_tokens=0, output_tokens=0)
            self.usage = before + Usage(input_tokens=given, output_tokens=received)
        if isinstance(cost, int | float):
            self.bill((self.cost_usd or 0.0) + cost)

    def bill(self, cost: object) -> None:
        """Take in what the whole session costs."""
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self.cost_usd = float(cost)

    @property
    def last(self) -> ToolCall | None:
        """The last tool call."""
        return next(reversed(self.tools.values()), None)

    @property
    def hanging(self) -> bool:
        """Whether the last tool call never returned."""
        return self.last is not None and self.last.ok is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One output format."""

    take: Callable[[Reading, Event], bool] = lambda _reading, _event: False
    """Take one event in; return whether it was understood."""
    prose: Callable[[Reading, Iterable[str]], None] | None = None
    """Take in all lines of a format that is made for people."""
    noise: Callable[[Reading, str], None] = lambda _reading, _line: None
    """Take in a line that is no event."""
    side: re.Pattern[str] = field(default_factory=error_line)
    """What an error looks like on stderr; a format whose stderr repeats the tools' output has a strict one."""
    wordless: bool = False
    """The format has no last word: an exit code of 0 stands for it."""


def read(
    form: Format,
    stdout: Iterable[str],
    stderr: Iterable[str] = (),
    *,
    code: int | None = None,
    meanings: Mapping[int, End] | None = None,
) -> Transcript:
    """Read a session's whole output."""
    reading = Reading()
    noise: deque[str] = deque(maxlen=SIDE_LINES)
    if form.prose is not None:
        form.prose(reading, stdout)
    for line in stdout if form.prose is None else ():
        event = event_of(line)
        if event is not None:
            reading.at = moment(event.get("timestamp") or event.get("ts")) or reading.at
            try:
                reading.events += form.take(reading, event)
            except (AttributeError, TypeError, ValueError, KeyError, IndexError, ArithmeticError, RecursionError):
                continue  # an event of a shape that nobody has seen: the others still count
        elif line.strip():
            form.noise(reading, line)
            noise.append(line)
    if (
        form.wordless
        and not code
        and not reading.finished
        and reading.fault is None
        and (reading.message or reading.tools)
    ):
        reading.finish(ok=True)
    aside = side(form.side, stderr, reading.at)
    if aside is None and (not reading.events or code):
        aside = side(error_line(), noise, reading.at)
    return conclude(reading, code, aside, meanings or {}, noise=bool(noise))


def event_of(line: str) -> Event | None:
    """Return the JSON object that a line is, or ends with where something else was printed into it; None for any other."""
    bare = line.strip()
    for start in (0, bare.rfind(EVENT)):  # a text inside of an event has its quotes escaped: it is not taken for one
        if start >= 0 and bare.startswith("{", start) and len(bare) <= LONGEST_LINE:
            with suppress(ValueError, RecursionError):
                return cast("Event", json.loads(bare[start:]))
    return None


def side(pattern: re.Pattern[str], lines: Iterable[str], at: float | None = None) -> Fault | None:
    """Return the last error that the lines tell of."""
    last: Fault | None = None
    kept = list(deque(lines, maxlen=SIDE_LINES))
    for number, line in enumerate(kept):
        found = _told(pattern, line, kept[number + 1] if number + 1 < len(kept) else "", at)
        last = later(last, found) if found is not None else last
    return last


def last_fault(lines: Sequence[str], at: float) -> Fault | None:
    """Return the error that the last lines of a command tell of, in whatever form; one of its own program is none."""
    lines = without_own(lines)
    return side(error_line(), lines, at) or next(filter(None, (fault(line, at=at) for line in reversed(lines))), None)


def _told(pattern: re.Pattern[str], line: str, following: str, at: float | None) -> Fault | None:
    event = event_of(line)
    if event is not None:
        if event.get("status") == "error" or event.get("type") == "error" or "error" in event:
            return error_of(event, at)
        return None
    match = pattern.match(line[:LONGEST_LINE].lstrip())
    if match is None:
        return None
    words = next((part for part in match.groups() if part), "") or line
    return fault(words, at=at) or fault(line.strip(), at=at) or fault(f"{words} {following.strip()}", at=at)


def error_of(event: Event, at: float | None = None) -> Fault | None:
    """Judge an error in one of the shapes that it comes in: a text, an object, an object around an object."""
    inner = event.get("error", event)
    if not isinstance(inner, dict):
        return fault(str(inner), status=event.get("status_code"), at=at)
    nested = inner.get("data")
    told: Event = nested if isinstance(nested, dict) else inner
    message = told.get("message") or inner.get("message") or json.dumps(inner, ensure_ascii=False)
    body = told.get("responseBody") or ""
    status = next(
        (value for key in ("statusCode", "status_code", "status", "code") if isinstance(value := told.get(key), int)),
        None,
    )
    name = " ".join(str(inner[key]) for key in ("name", "type", "code", "errorType") if isinstance(inner.get(key), str))
    return fault(str(message), status=status, name=f"{name}\n{body}", headers=told.get("responseHeaders"), at=at)


# --- small things that most formats need -------------------------------------------------------------


def moment(value: Any) -> float | None:
    """Return the seconds of a time that an event states, if that can be one."""
    try:
        seconds = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    seconds = seconds / 1000 if seconds > LAST_SECOND else seconds
    return seconds if 0 < seconds < LAST_SECOND else None


def given(arguments: object) -> str:
    """Return what a tool was called with, as one line: the command or the file, else all of it."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(arguments)
    if isinstance(arguments, dict):
        for key in shipped_toml("ends")["telling"]:
            if isinstance(arguments.get(key), str):
                return str(arguments[key])
        commands = arguments.get("commands")
        if isinstance(commands, list):
            return "; ".join(map(str, commands))
    return one_line(json.dumps(arguments, ensure_ascii=False), 1000) if arguments else ""


def text_of(content: object) -> str:
    """Return the text of a message: a string, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") == "text"
        )
    return ""


def exit_code(text: str) -> int | None:
    """Return the exit code that a tool's result states at its beginning or end."""
    found = re.findall(shipped_toml("ends")["exit_code"], f"{text[:200]}\n{text[-500:]}")
    return int(found[-1]) if found else None


GIST = re.compile(r'"(?:text|command|file_path|filePath|message|content|deltaContent)" ?: ?"((?:[^"\\\n]|\\.){3,300})')


FROM_US = re.compile(r'"(?:type|role)" ?: ?"user"')
"""What we said to the agent, which some repeat, and what its tools answered."""
DEEPEST = 6


def gist(line: str) -> str:
    """Return what a person should see of a line, which may be a torn event: a tool with its command or file, or words."""
    if not line.lstrip().startswith("{"):
        return line
    if FROM_US.search(line[:400]):
        return ""
    try:
        called = _called(json.loads(line), DEEPEST)
    except (ValueError, RecursionError):
        called = ""
    if called:
        return one_line(called, 200)
    found = GIST.search(line)
    return one_line(found[1].replace("\\n", " ").replace('\\"', '"'), 200) if found else ""


def _called(event: object, depth: int) -> str:
    """Return the tool call that stands anywhere in an event, as `Bash pytest -q`."""
    if isinstance(event, list):
        return next((found for one in event if (found := _called(one, depth - 1))), "") if depth else ""
    if not isinstance(event, dict) or not depth:
        return ""
    for name, arguments in shipped_toml("ends")["called"]:
        if isinstance(event.get(name), str) and isinstance(event.get(arguments), dict | str):
            return f"{event[name]} {given(event[arguments])}"
    return _called(list(event.values()), depth)


# --- why it ended


def conclude(
    reading: Reading, code: int | None, aside: Fault | None, meanings: Mapping[int, End], *, noise: bool
) -> Transcript:
    """Say why the session ended. `code`: its exit code, negative for a signal. `aside`: the last error on stderr."""
    said = statement(reading.said)
    end = _end(reading, code, aside, meanings, noise=noise)
    claim: Claim = "none"
    if said.claim == "failed":
        claim = "failed"
        end = "failed_claimed" if end in ("done_claimed", "no_work") else end
    elif end == "done_claimed" or (end == "permission_denied" and reading.finished == "ok"):
        claim = "none" if said.denied else "done"
    if end in ("done_claimed", "permission_denied") and (
        asks(reading.message) or (reading.last and reading.last.name in shipped_toml("ends")["asking"])
    ):
        end = "asks"
    told = next((one for one in (reading.fault, aside) if one is not None and one.end == end), None)
    resets = max(
        (one.resets_at for one in (reading.fault, aside) if one and one.end == end and one.resets_at), default=None
    )
    return Transcript(
        end=end,
        claim=claim,
        session=reading.session,
        message=told.message if told is not None else reading.message,
        approach=said.approach,
        cost_usd=reading.cost_usd,
        usage=reading.usage,
        resets_at=resets,
        tools=tuple(reading.tools.values()),
        denied=tuple(dict.fromkeys(reading.denied.values()))[:MOST_DENIED],
        lost=end == "bad_request" and told is not None and LOST.search(told.message) is not None,
    )


def _end(reading: Reading, code: int | None, aside: Fault | None, meanings: Mapping[int, End], *, noise: bool) -> End:
    killed = code is not None and (code < 0 or code in BY_SIGNAL)
    if reading.finished == "ok" and reading.fault is None and (killed or not code):
        return reading.reason or _well(reading)
    if reading.finished == "error" and reading.reason is not None:
        return reading.reason
    if reading.fault is not None:
        return reading.fault.end
    if aside is not None and (code or reading.retrying or not reading.events) and not (killed and reading.hanging):
        return aside.end
    if reading.retrying:
        return "network"
    if killed:
        return "tool_hang" if reading.hanging else "killed"
    if code is not None and code in meanings:
        return meanings[code]
    if code or reading.finished == "error" or reading.events:
        return "crashed"  # or it began and never said that it ended
    return "unreadable" if noise else "no_work"


def _well(reading: Reading) -> End:
    if reading.denied:
        return "permission_denied"
    if reading.refused:
        return "refused"
    return "done_claimed" if reading.message or reading.tools else "no_work"


LOST = re.compile(r"(?is)no conversation found|no rollout found|session.*not found|not found.*session")
