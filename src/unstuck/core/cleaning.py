"""Make raw output readable: no colours, no progress bars, no control bytes, bounded lines; numbering is kept."""

import re

from unstuck.core.evidence import Evidence, Line

LINE_HEAD, LINE_TAIL = 1500, 500
"""A longer line is cut in its middle: no rule needs more, and one line must not stall a scan."""

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]*[0-~])"
)
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ufeff\ufffe\uffff\ud800-\udfff]")
BREAKS = re.compile("[\x85\u2028\u2029\x1c-\x1e]")
"""What `str.splitlines` would take for an end of line, and no terminal does."""
PLAIN = {
    **dict.fromkeys(map(ord, "‘’‚‛′‹›`´"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″«»「」"), '"'),
    **dict.fromkeys(map(ord, "│┃║▌▏█╎╏┆┇"), " "),
    **dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u3000"), " "),
    ord("："): ":",
    ord("－"): "-",
    # Both fold to ASCII letters in one regex engine and not in the other.
    ord("ſ"): "s",
    ord("\u212a"): "K",
    ord("`"): "'",
}
"""Quotes, frames and wide punctuation as rules write them."""


def lines(evidence: Evidence) -> tuple[Line, ...]:
    """Return both streams as cleaned lines, stdout first, numbered throughout."""
    out = [Line(number, text) for number, text in enumerate(clean(evidence.stdout), 1)]
    start = len(out) + 1
    return (*out, *(Line(number, text, "stderr") for number, text in enumerate(clean(evidence.stderr), start)))


def clean(text: str) -> list[str]:
    """Split into lines as a terminal would show them."""
    if not text:
        return []
    if "\x1b" in text:
        text = ESCAPES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if BREAKS.search(text):
        text = BREAKS.sub(" ", text)
    if "\b" in text:
        text = re.sub("[^\n\b]\b", "", text)
    found = text.split("\n")
    if not found[-1]:
        found.pop()
    if "\r" in text:
        found = [_overwritten(line) if "\r" in line else line for line in found]
    if CONTROLS.search(text):
        found = [CONTROLS.sub("", line) for line in found]
    return [line if len(line) <= LINE_HEAD + LINE_TAIL else _cut(line) for line in found]


def plain(line: str) -> str:
    """Return the line as rules see it: no indentation, ASCII quotes."""
    if not line.isascii() or "`" in line:
        line = line.translate(PLAIN)
    return line.strip()


def _overwritten(line: str) -> str:
    """Keep what a terminal shows at the end: the last stretch that is not blank."""
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def _cut(line: str) -> str:
    return f"{line[:LINE_HEAD]} … {line[-LINE_TAIL:]}"
