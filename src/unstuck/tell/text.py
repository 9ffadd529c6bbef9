"""Text from elsewhere, made safe to show: one line of it, or a fenced quotation that nothing in it can close."""

import re


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
