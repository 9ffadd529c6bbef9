"""Text from elsewhere, made safe to show: one line of it, or a fenced quotation that nothing in it can close."""

import re
from datetime import datetime


def quoted(text: str, limit: int) -> str:
    """Fence text so that nothing in it can close the fence; keep its end when it is too long."""
    clean = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
    if len(clean) > limit:
        clean = f"[{len(clean) - limit} characters left out]\n{clean[-limit:]}"
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean}\n{fence}"


def one_line(text: str, limit: int) -> str:
    """Fold text into one line of at most `limit` characters."""
    folded = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def waits(what: str, until: float, now: float | None = None) -> str:
    """Say for what and until when something waits, in the reader's own time, and what happens then."""
    moment = datetime.fromtimestamp(until).astimezone()
    far = now is not None and until - now >= DAY
    left = f" (in {_span(until - now)})" if now is not None and until > now else ""
    told = f"waits for {one_line(what, WHAT_CHARS)}" if what else "waits"
    return f"{told} until {moment:{'%a %H:%M' if far else '%H:%M'}}{left}, then goes on in the same session"


MINUTE, HOUR, DAY = 60, 3600, 86400
WHAT_CHARS = 40


def _span(seconds: float) -> str:
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
