"""Plain text: what the agent says at the end, and nothing else. Its errors come on stderr."""

from collections.abc import Iterable

from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Format


def take(reading: Reading, lines: Iterable[str]) -> None:
    kept: list[str] = []
    for line in lines:
        kept = [*kept, line.rstrip("\n")][-400:]
    text = "\n".join(kept).strip()
    reading.events = 1 if text else 0
    reading.say(text)


FORMAT = Format(prose=take, wordless=True)
