"""Edge: Play one session of a script in the current folder. A program of its own: it loads nothing of the package."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Step = Mapping[str, Any]
ENDLESS = 10**6


def load(script: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Read what each task's attempts do."""
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
    """Return the steps of each session of an attempt; most attempts have one."""
    return attempt.get("sessions") or (attempt.get("steps", ()),)


def play(steps: Sequence[Step]) -> None:
    """Play the steps in order."""
    for step in steps:
        next(act for verb, act in PLAY.items() if verb in step)(step)


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
    """Leave a process of its own session behind, as agents do with servers and daemons."""
    import shlex
    import subprocess

    subprocess.Popen(shlex.split(step["start"]), start_new_session=True)


def _kill(step: Step) -> None:
    import signal

    os.kill(os.getpid(), signal.Signals[f"SIG{step['signal']}"])


def _sleep(seconds: float) -> None:
    import time

    time.sleep(seconds)


PLAY: Mapping[str, Callable[[Step], None]] = {
    "write": _write,
    "append": _append,
    "delete": lambda step: Path(step["delete"]).unlink(),
    "print": lambda step: print(step["print"], flush=True),
    "error": lambda step: print(step["error"], file=sys.stderr, flush=True),
    "cost": lambda step: print(f"COST: {step['cost']} {step.get('session', '')}", flush=True),
    "run": _run,
    "start": _start,
    "sleep": lambda step: _sleep(step["sleep"]),
    "hang": lambda _: _sleep(ENDLESS),
    "exit": lambda step: sys.exit(step["exit"]),
    "signal": _kill,
}


def main(script: str) -> None:
    """Play this session's part; a task without a part ends well at once."""
    attempts = load(Path(script)).get(os.environ.get("UNSTUCK_TASK", ""), ())
    if attempts:
        attempt = int(os.environ.get("UNSTUCK_ATTEMPT", "1"))
        session = int(os.environ.get("UNSTUCK_SESSION", "1"))
        parts = sessions(attempts[min(attempt, len(attempts)) - 1])
        play(parts[min(session, len(parts)) - 1])


if __name__ == "__main__":
    main(sys.argv[1])
