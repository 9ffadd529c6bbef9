"""The frame that all readers share: lines in, events out, errors from the side; nothing here ever raises."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from unstuck.agents.faults import fault, later
from unstuck.agents.streams.session import Reading, conclude
from unstuck.agents.transcript import End, Fault, Transcript
from unstuck.tell import one_line

Event = Mapping[str, Any]

LONGEST_LINE = 4_000_000
SIDE_LINES = 400
"""So many of the last lines beside the stream are looked at."""
TORN = '{"type":'
MOST_PIECES = 20
LAST_SECOND = 10**11
"""In the year 5138: more are milliseconds, or no time at all."""
TELLING = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url")
"""Of a tool's arguments, the one to show."""

ERROR_LINE = re.compile(
    r"(?:\W{1,3}\s?)?(?:"
    r"(?:\w+: )?(?:fatal |api )?error\b[^:\n]{0,60}: ?(?P<error>.*)"
    r"|(?P<typed>(?:[\w.]+\.)?\w*(?:Error|Exception|Exceeded)\b[:( ].*)"
    r"|.*\bas it raised (?P<raised>\w+(?:Error|Exception): .*)"
    r"|Attempt \d+ failed(?P<attempt>.*)"
    r"|Retrying (?:in|after) .*?: (?P<retry>.*)"
    r"|\[(?P<api>API Error: .*)"
    r"|(?P<words>.*(?:log ?in\b|logged in|signed in|sign in\b|api key|auth method|authenticat|do you trust|trusted (?:directory|folder|workspace)|cannot be used with root|no rollout found|no conversation found|usage limit|credit balance).*))",
    re.IGNORECASE,
)
"""A line, without its indentation, that tells of an error of the agent itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One output format."""

    take: Callable[[Reading, Event], bool] = lambda _reading, _event: False
    """Take one event in; return whether it was understood."""
    prose: Callable[[Reading, Iterable[str]], None] | None = None
    """Take in all lines of a format that is made for people."""
    noise: Callable[[Reading, str], None] = lambda _reading, _line: None
    """Take in a line that is no event."""
    side: "re.Pattern[str]" = ERROR_LINE
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
        found = False
        for event in events(line):
            found = True
            reading.at = moment(event.get("timestamp") or event.get("ts")) or reading.at
            try:
                reading.events += form.take(reading, event)
            except (AttributeError, TypeError, ValueError, KeyError, IndexError, ArithmeticError, RecursionError):
                continue  # an event of a shape that nobody has seen: the others still count
        if not found and line.strip():
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
        aside = side(ERROR_LINE, noise, reading.at)
    return conclude(reading, code, aside, meanings or {}, noise=bool(noise))


def events(line: str) -> Iterator[Event]:
    """Yield the JSON objects of a line: one, or none, or those that survived in a torn one."""
    bare = line.strip()
    if not bare.startswith("{") and TORN not in bare:
        return
    if len(bare) > LONGEST_LINE:
        return
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        yield from _pieces(bare)
        return
    if isinstance(value, dict):
        yield value


def _pieces(line: str) -> Iterator[Event]:
    """Find whole events inside a torn line: a text inside of an event has its quotes escaped, so it is not taken for one."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(MOST_PIECES):
        at = line.find(TORN, at)
        if at < 0:
            return
        try:
            value, at = decoder.raw_decode(line, at)
        except (ValueError, RecursionError):
            at += len(TORN)
            continue
        if isinstance(value, dict):
            yield value


def side(pattern: "re.Pattern[str]", lines: Iterable[str], at: float | None = None) -> Fault | None:
    """Return the last error that the lines tell of."""
    last: Fault | None = None
    kept = list(deque(lines, maxlen=SIDE_LINES))
    for number, line in enumerate(kept):
        found = _told(pattern, line, kept[number + 1] if number + 1 < len(kept) else "", at)
        last = later(last, found) if found is not None else last
    return last


def _told(pattern: "re.Pattern[str]", line: str, following: str, at: float | None) -> Fault | None:
    event = next(events(line), None)
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
        for key in TELLING:
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


EXIT_CODE = re.compile(
    r"(?im)^(?:Exit code:? |Command failed with exit code: |.{0,2}Command exited with code |<?shellId: \d+ completed with exit code )(-?\d+)\b"
)


def exit_code(text: str) -> int | None:
    """Return the exit code that a tool's result states at its beginning or end."""
    found = [match[1] for match in EXIT_CODE.finditer(f"{text[:200]}\n{text[-500:]}")]
    return int(found[-1]) if found else None


GIST = re.compile(r'"(?:text|command|file_path|filePath|message|content|deltaContent)" ?: ?"((?:[^"\\\n]|\\.){3,300})')


FROM_US = re.compile(r'"(?:type|role)" ?: ?"user"')
"""What we said to the agent, which some repeat, and what its tools answered."""
CALLED = (
    ("name", "input"),
    ("tool_name", "parameters"),
    ("tool", "input"),
    ("toolName", "arguments"),
    ("name", "arguments"),
)
"""How agents write which tool they call, and with what."""
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
    for name, arguments in CALLED:
        if isinstance(event.get(name), str) and isinstance(event.get(arguments), dict | str):
            return f"{event[name]} {given(event[arguments])}"
    return _called(list(event.values()), depth)
