"""How wide text is on a terminal."""

import unicodedata


def columns(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def cut_columns(line: str, limit: int) -> str:
    """Shorten a line until it takes at most `limit` columns."""
    while columns(line) > limit:
        line = line.rstrip("…")[:-1] + "…"
    return line
