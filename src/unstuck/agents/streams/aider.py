"""aider's text. It ends with exit code 0 whatever happens: a litellm error with no answer after it is the end."""

import re
from collections import deque
from collections.abc import Iterable

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Format

ERROR = re.compile(r"^(?:litellm\.)(?P<name>\w+(?:Error|Exception|Timeout)\b): ?(?P<words>.*)")
TOKENS = re.compile(
    r"^Tokens: (?P<sent>\d[\d,]*(?:\.\d+)?[kM]?) sent,(?:.*,)? (?P<received>\d[\d,]*(?:\.\d+)?[kM]?) received\."
    r"(?:.*\$(?P<cost>\d+(?:\.\d+)?) session)?"
)
EDIT = re.compile(r"^Applied edit to (?P<file>.+)")
LIMIT = re.compile(r"^Only \d+ reflections allowed")
WINDOW = re.compile(
    r"(?i)^Model \S+ has hit a token limit!|^The chat session is (?:too large|larger than the context window)"
)
LOGIN = re.compile(
    r"(?i)^(?:Warning: .* expects these environment variables|No LLM model was specified and no API keys)"
)
MISSING = re.compile(r"^- [A-Z_]*API_KEY: Not set")
HEAD = "https://aider.chat/HISTORY"
UNITS = {"k": 1_000, "M": 1_000_000}


def take(reading: Reading, lines: Iterable[str]) -> None:
    waiting, began = "", False
    answer: deque[str] = deque(maxlen=400)
    for line in (line.rstrip("\n") for line in lines):
        reading.events += 1 if line.strip() else 0
        if waiting:
            reading.fail(fault(f"{waiting} {line}", at=reading.at))
            waiting = ""
        elif found := ERROR.match(line):
            waiting = f"{found['name']}: {found['words']}"
            reading.fail(fault(waiting, at=reading.at))
            answer.clear()
        elif found := TOKENS.match(line):
            reading.say("\n".join(answer).strip())
            reading.count(_count(found["sent"]), _count(found["received"]))
            reading.cost_usd = float(found["cost"]) if found["cost"] else reading.cost_usd
            answer.clear()
        elif found := EDIT.match(line):
            reading.call("edit", found["file"])
            reading.returned(next(reversed(reading.tools)), ok=True)
        elif WINDOW.match(line) or LOGIN.match(line) or MISSING.match(line):
            reading.fail(fault("context window exceeded" if WINDOW.match(line) else "no api key"))
        elif LIMIT.match(line):
            reading.reason = "max_turns"
        elif began:
            answer.append(line)
        began = began or line.startswith(HEAD)
    if waiting:
        reading.fail(fault(waiting, at=reading.at))


def _count(words: str) -> int:
    number = float(words.rstrip("kM").replace(",", ""))
    return round(number * UNITS.get(words[-1], 1))


FORMAT = Format(prose=take, wordless=True)
