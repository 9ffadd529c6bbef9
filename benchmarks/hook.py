"""Measure the hook: a fresh process per event against a bare interpreter, and ten thousand calls in one session."""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import Report, Target
from unstuck.hook.entry import respond
from unstuck.hook.hook_input import read_event

REPEATS, CALLS, BLOCK = 40, 10_000, 1_000
BARE = "python -c pass"
NON_EVENT, DIAGNOSIS, GROWTH, SLOWER = 5.0, 8.0, 1.1, 1.5
ONE_FAILS_IN = 100


def measure(*, repeats: int = REPEATS, calls: int = CALLS, say: Callable[[str], None] = print) -> Report:
    """Start hooks in turn with bare interpreters; then play a long session, and two at once."""
    with tempfile.TemporaryDirectory() as folder, _own_state(folder):
        say(f"Starting {len(_events(folder))} hooks {repeats} times in turn ...")
        seconds = _fresh(folder, repeats)
        say(f"Playing {calls} calls in one session ...")
        slower, growth, kept = _long_session(folder, calls)
        leaks = _two_sessions(folder)
    ratios = {
        name: sorted(one / bare for one, bare in zip(taken, seconds[BARE], strict=True))
        for name, taken in seconds.items()
    }
    lines = [
        f"  {1000 * statistics.median(seconds[name]):6.1f} ms  p50 {_at(row, 0.5):4.1f} x  p90 {_at(row, 0.9):4.1f} x  p99 {_at(row, 0.99):4.1f} x  {name}"
        for name, row in ratios.items()
    ]
    lines += [
        "",
        f"  {calls} calls: the last {BLOCK} took {slower:.2f} times as long as the first, memory grew {growth:.2f} times, {kept} bytes are kept",
    ]
    limits = {"non-event": NON_EVENT, "before a call": NON_EVENT, "diagnosis": DIAGNOSIS}
    return Report(
        figures={
            "fresh": {
                name: {"ms": 1000 * statistics.median(seconds[name]), **{f"p{int(100 * part)}": _at(row, part) for part in (0.5, 0.9, 0.99)}}
                for name, row in ratios.items()
            },
            "session": {"calls": calls, "slower": slower, "growth": growth, "bytes": kept, "leaks": leaks},
        },
        lines=tuple(lines),
        targets=(
            *(Target(name=f"{name}, times a bare interpreter", value=_at(ratios[name], 0.5), at_most=most) for name, most in limits.items()),
            Target(name="a late call against an early one", value=slower, at_most=SLOWER),
            Target(name="growth of memory", value=growth, at_most=GROWTH),
            Target(name="what one session sees of another", value=leaks, at_most=0),
        ),
    )  # fmt: skip


def _events(folder: str) -> dict[str, dict[str, Any]]:
    asked = {"session_id": "bench", "cwd": folder, "tool_name": "Bash"}
    clone = {"command": "git clone https://github.com/acme/tool"}
    return {
        "non-event": {
            **asked, "hook_event_name": "PostToolUse", "tool_input": {"command": "ls"},
            "tool_response": {"stdout": "a.txt\nb.txt", "stderr": ""},
        },
        "before a call": {**asked, "hook_event_name": "PreToolUse", "tool_input": {"command": "pytest -q"}},
        "diagnosis": {
            **asked, "hook_event_name": "PostToolUseFailure", "tool_input": clone,
            "error": "Exit code 127\n/bin/bash: line 1: git: command not found",
        },
    }  # fmt: skip


def _fresh(folder: str, repeats: int) -> dict[str, list[float]]:
    script = Path(sys.executable).with_name("unstuck")
    program = [sys.executable, *([str(script)] if script.exists() else ["-m", "unstuck"]), "hook", "claude"]
    seconds: dict[str, list[float]] = {BARE: []}
    for number in range(repeats):
        seconds[BARE].append(_seconds([sys.executable, "-c", "pass"], b""))
        for name, event in _events(folder).items():
            other = {
                **event,
                "session_id": f"bench-{name.replace(' ', '-')}-{number}",
            }  # so that nothing was told before
            seconds.setdefault(name, []).append(_seconds(program, json.dumps(other).encode()))
    return seconds


def _long_session(folder: str, calls: int) -> tuple[float, float, int]:
    """Return how much slower the last block is, how memory grew after the first, and how much is kept."""
    blocks, memory = list[float](), list[int]()
    for first in range(0, calls, BLOCK):
        began = time.perf_counter()
        for number in range(first, min(first + BLOCK, calls)):
            name = "diagnosis" if number % ONE_FAILS_IN == 0 else "non-event"
            event = {**_events(folder)[name], "session_id": "long"}
            event["tool_input"] = {"command": f"{event['tool_input']['command']} # {number}"}
            respond(read_event("claude", event))
        blocks.append(time.perf_counter() - began)
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    kept = Path(os.environ["XDG_STATE_HOME"], "unstuck", "hook", "claude-long.json").stat().st_size
    return blocks[-1] / blocks[0], memory[-1] / memory[0], kept


def _two_sessions(folder: str) -> int:
    """Count what two sessions hear of each other: each makes a call twice, together four times."""
    event = _events(folder)["non-event"]
    heard = [respond(read_event("claude", {**event, "session_id": name})) for name in ("left", "right") * 2]
    return sum(bool(answer) for answer in heard)


def _seconds(argv: Sequence[str], given: bytes) -> float:
    began = time.perf_counter()
    subprocess.run(argv, input=given, check=True, capture_output=True)
    return time.perf_counter() - began


def _at(row: Sequence[float], part: float) -> float:
    return row[min(int(part * len(row)), len(row) - 1)]


@contextmanager
def _own_state(folder: str) -> Iterator[None]:
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = f"{folder}/state"
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before


if __name__ == "__main__":
    report = measure()
    marks = [
        f"{'✔' if one.met else '✘'} {one.name}: {one.value:.2f} (at most {one.at_most:g})" for one in report.targets
    ]
    sys.stdout.write("\n".join([*report.lines, "", *marks, ""]))
    sys.exit(0 if report.met else 1)
