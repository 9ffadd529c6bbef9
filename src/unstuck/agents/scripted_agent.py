"""Run one session of a scripted agent in the current folder.

This is a program of its own, which imports nothing of the package.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Step = Mapping[str, Any]
ENDLESS_SECONDS = 10**6


def load(script: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the scripts of each task's attempts."""
    text = script.read_text(encoding="utf-8")
    if script.suffix == ".json":
        import json

        content = json.loads(text)
    else:
        import tomllib

        content = tomllib.loads(text)
    tasks: Mapping[str, Sequence[Mapping[str, Any]]] = content.get("task", {})
    return tasks


def sessions(attempt: Mapping[str, Any]) -> Sequence[Sequence[Step]]:
    """Return the steps of each session of an attempt. Most attempts have one session."""
    return attempt.get("sessions") or (attempt.get("steps", ()),)


def all_steps(attempts: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    """Yield the steps of all sessions of all attempts."""
    for attempt in attempts:
        for steps in sessions(attempt):
            yield from steps


def run_steps(steps: Sequence[Step]) -> None:
    for step in steps:
        action = next(action for verb, action in STEP_ACTIONS.items() if verb in step)
        action(step)


def _write(step: Step) -> None:
    path = Path(step["write"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.get("text", ""), encoding="utf-8")


def _append(step: Step) -> None:
    with Path(step["append"]).open("a", encoding="utf-8") as file:
        file.write(step.get("text", ""))


def _run(step: Step) -> None:
    import shlex
    import subprocess

    subprocess.run(shlex.split(step["run"]), check=False)


def _start(step: Step) -> None:
    """Start a process that goes on after the session, as agents do with servers and daemons."""
    import shlex
    import subprocess

    subprocess.Popen(shlex.split(step["start"]), start_new_session=True)


def _kill(step: Step) -> None:
    import signal

    os.kill(os.getpid(), signal.Signals[f"SIG{step['signal']}"])


def _sleep(seconds: float) -> None:
    import time

    time.sleep(seconds)


STEP_ACTIONS: Mapping[str, Callable[[Step], None]] = {
    "write": _write,
    "append": _append,
    "delete": lambda step: Path(step["delete"]).unlink(),
    "print": lambda step: print(step["print"], flush=True),
    "error": lambda step: print(step["error"], file=sys.stderr, flush=True),
    "cost": lambda step: print(f"COST: {step['cost']} {step.get('session', '')}", flush=True),
    "run": _run,
    "start": _start,
    "sleep": lambda step: _sleep(step["sleep"]),
    "hang": lambda _: _sleep(ENDLESS_SECONDS),
    "exit": lambda step: sys.exit(step["exit"]),
    "signal": _kill,
}


def main(script: str) -> None:
    """Run the steps of this session. A task without a script ends well at once."""
    attempts = load(Path(script)).get(os.environ.get("UNSTUCK_TASK", ""), ())
    if attempts:
        attempt = int(os.environ.get("UNSTUCK_ATTEMPT", "1"))
        session = int(os.environ.get("UNSTUCK_SESSION", "1"))
        scripts = sessions(attempts[min(attempt, len(attempts)) - 1])
        run_steps(scripts[min(session, len(scripts)) - 1])


if __name__ == "__main__":
    main(sys.argv[1])
