"""mini-swe-agent's text: numbered steps, each with words, commands and their return codes."""

import re
from collections.abc import Iterable

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Format

STEP = re.compile(r"^mini-swe-agent \(step \d+, \$(?P<cost>[\d.]+)\):")
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
EXIT, TOOL, RETURN, RULER = "Exit:", "Tool:", "<returncode>", "────"
LIMITS = re.compile(r"^(?:LimitsExceeded|CostLimit\w*|StepLimit\w*)")
ERROR = re.compile(r"^(?:[\w.]+\.)?\w+(?:Error|Exception|Exceeded)\b")


def take(reading: Reading, lines: Iterable[str]) -> None:
    """Walk through the sections; what stands before the first step is its own prompt."""
    section, fenced = "", False
    words: list[str] = []
    command: list[str] = []
    for line in (line.rstrip("\n") for line in lines):
        reading.events += 1 if line.strip() else 0
        if found := STEP.match(line):
            section, words, command, fenced = "step", [], [], False
            reading.cost_usd = float(found["cost"])
        elif section and line in (TOOL, EXIT, "User:"):
            if section == "step":
                _step(reading, words, command)
            section = {TOOL: "tool", EXIT: "exit"}.get(line, "other")
        elif section == "step" and line.startswith("```"):
            fenced = not fenced
        elif section == "step" and not line.startswith(RULER):
            (command if fenced else words).append(line)
        elif section == "tool" and line == RETURN:
            section = "code"
        elif section == "code" and re.fullmatch(r"-?\d+", line.strip()):
            _returned(reading, int(line))
            section = "output"
        elif section == "exit" and (LIMITS.match(line) or ERROR.match(line)):
            reading.fail(fault(line, at=reading.at))
            reading.finish(ok=False, reason="max_turns" if LIMITS.match(line) else None)
    if section == "step":
        _step(reading, words, command)


def _step(reading: Reading, words: list[str], command: list[str]) -> None:
    reading.say("\n".join(words).strip())
    text = "\n".join(command).strip()
    if SUBMIT in text:
        reading.finish(ok=True)
    elif text:
        reading.call("bash", text)


def _returned(reading: Reading, code: int) -> None:
    last = next(reversed(reading.tools), None)
    if last is not None and reading.tools[last].ok is None:
        reading.returned(last, ok=code == 0, exit_code=code)


FORMAT = Format(prose=take)
