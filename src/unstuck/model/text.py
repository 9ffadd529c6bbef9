"""Make text safe and readable for people."""

import re
from datetime import UTC, datetime
from typing import cast

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
"""Escape sequences of terminals (colours, titles, links, clipboard), in their 7-bit and 8-bit forms."""
COLOURS = re.compile(r"\x1b\[[0-9;]{0,16}m")
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\N{SYMBOL FOR DELETE}"}


def visible(text: str, *, colours: bool = False) -> str:
    """Return foreign text without control sequences and without marks that reverse its direction.

    All text for a terminal, the journal or files for people passes through here. `colours` keeps the colours of
    unstuck's own texts.
    """
    if UNSAFE.search(text) is None:
        return text
    if colours and COLOURS.search(text):
        kept = COLOURS.findall(text)
        parts = [visible(part) for part in COLOURS.split(text)]
        return "".join(part + colour for part, colour in zip(parts, [*kept, ""], strict=True))
    text = ESCAPES.sub("", text).replace("\r\n", "\n")
    return UNSAFE.sub(lambda match: PICTURES.get(ord(match[0]), "\N{REPLACEMENT CHARACTER}"), text)


def quoted(text: str, limit: int) -> str:
    """Return text in a code fence that it cannot close. Of a longer text the end is kept."""
    clean = "\n".join(line.rstrip() for line in visible(text).split("\n")).strip("\n")
    if len(clean) > limit:
        clean = f"[{len(clean) - limit} characters left out]\n{clean[-limit:]}"
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean}\n{fence}"


def fill(form: str, **blanks: object) -> list[str]:
    """Return the lines of a form with its blanks filled. A line with a list is repeated for each item."""
    lines: list[str] = []
    for line in form.strip("\n").split("\n"):
        listed = next((key for key, value in blanks.items() if isinstance(value, list) and f"{{{key}}}" in line), None)
        rows = [{}] if listed is None else [{listed: item} for item in cast("list[str]", blanks[listed])]
        lines += (line.format_map(blanks | row) for row in rows)
    return lines


def one_line(text: str, limit: int) -> str:
    """Return text as one line of at most `limit` characters."""
    folded = " ".join("".join(char if char.isprintable() else " " for char in ESCAPES.sub("", text)).split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def waits(what: str, until: float, now: float | None = None) -> str:
    """Return a sentence part about a wait: its cause, its end in local time, and what happens then."""
    moment = datetime.fromtimestamp(min(max(0.0, until), LATEST)).astimezone()
    far = now is not None and until - now >= DAY
    left = ""
    if now is not None and until > now:
        unit, name = next((unit for unit in UNITS if until - now >= unit[0]), (1, "s"))
        left = f" (in {(until - now) / unit:.0f} {name})"
    cause = f"waits for {one_line(what, WHAT_CHARS)}" if what else "waits"
    then = "tries again" if what.startswith(THE_END_OF) else "goes on in the same session"
    return f"{cause} until {moment:{'%a %H:%M' if far else '%H:%M'}}{left}, then {then}"


DAY = 86400
UNITS = ((DAY, "d"), (3600, "h"), (60, "min"))
WHAT_CHARS = 40
THE_END_OF = "the end of this: "
"""Begins the cause of a wait that is not for an agent. The check or session that failed is tried again."""
LATEST = 250_000_000_000.0
"""A day in the year 9892. A provider may state a senseless reset, and later times are not valid dates.

`max(0.0, until)` has 0.0 first because the stated time may be no number.
"""


def iso(at: float) -> str:
    """Return a time in the format of files and JSON."""
    return datetime.fromtimestamp(min(max(0.0, at), LATEST), UTC).isoformat(timespec="seconds")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 task, 2 tasks."""
    return f"{number} {noun}{'s'[: number != 1]}"


LONGEST = 1 << 16
LINE_HEAD, LINE_TAIL = 1500, 500
"""A longer line is cut in its middle, because no rule needs more and a scan must stay fast."""
CONTROLS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
OVERSTRUCK = "[^\b]\b"


def clean(text: str) -> list[str]:
    """Return the lines of a text as a terminal would show them."""
    if not text:
        return []
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    lines = [line if len(line) <= LONGEST else f"{line[:LONGEST]}{line[-LONGEST:]}" for line in text.split("\n")]
    if not lines[-1]:
        lines.pop()
    if "\x1b" in text:
        lines = [ESCAPES.sub("", line) if "\x1b" in line else line for line in lines]
    if "\b" in text:
        lines = [re.sub(OVERSTRUCK, "", line) for line in lines]
    if "\r" in text:
        lines = [_overwritten(line) if "\r" in line else line for line in lines]
    if not all(line.isascii() and line.isprintable() for line in lines):  # the pattern is slow to compile
        controls = re.compile(CONTROLS)
        lines = [controls.sub("", line) for line in lines]
    return [line if len(line) <= LINE_HEAD + LINE_TAIL else _cut(line) for line in lines]


def shown(text: str) -> str:
    """Return the text as a terminal would show it."""
    return "\n".join(clean(text))


def _overwritten(line: str) -> str:
    """Return the text that a terminal shows in the end: the last part that is not blank."""
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def _cut(line: str) -> str:
    line = line.strip()
    return line if len(line) <= LINE_HEAD + LINE_TAIL else f"{line[:LINE_HEAD]} … {line[-LINE_TAIL:]}"
