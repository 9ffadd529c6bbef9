r"""An agent that plays a script: edits, outputs, exits, hangs and crashes, for demos, documentation and tests.

The script is TOML or JSON. Each task has a list of attempts, each attempt a list of steps; the last attempt of the
list is played again when there are more:

    [[task."1.1"]]
    steps = [{ print = "Working…" }, { write = "a.py", text = "x = 1\n" }, { exit = 0 }]

It runs as a process of its own, like every agent.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unstuck.adapters.agents.command import CommandAgent
from unstuck.errors import BadUsage

Step = Mapping[str, Any]
ENDLESS = 10**6


def scripted(name: str, script: Path) -> CommandAgent:
    """Return the agent that plays the script; a script that cannot be played is refused here."""
    read(script)
    return CommandAgent(name, (sys.executable, "-P", "-m", "unstuck.adapters.agents.scripted", str(script.resolve())))


def read(script: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Read a script and check that every step is one that can be played."""
    try:
        text = script.read_text(encoding="utf-8")
        content = json.loads(text) if script.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise BadUsage(
            f"The agent's script {script} cannot be read: {error}.", hint="It is TOML, or JSON if it ends in .json."
        ) from error
    tasks = content.get("task", {})
    for task, attempts in tasks.items():
        for attempt in attempts:
            for step in attempt.get("steps", ()):
                if not step.keys() & PLAY.keys():
                    raise BadUsage(
                        f"The script of task {task} has an unknown step {dict(step)}.",
                        hint=f"Steps are: {', '.join(PLAY)}.",
                    )
    return tasks  # type: ignore[no-any-return]  # checked above as far as it is used


def play(steps: Sequence[Step]) -> None:
    """Play the steps in order, in the current folder."""
    for step in steps:
        next(act for verb, act in PLAY.items() if verb in step)(step)


def _write(step: Step) -> None:
    path = Path(step["write"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.get("text", ""), encoding="utf-8")


def _append(step: Step) -> None:
    with Path(step["append"]).open("a", encoding="utf-8") as file:
        file.write(step.get("text", ""))


def _print(step: Step) -> None:
    print(step["print"], flush=True)  # noqa: T201  # an agent's output


def _error(step: Step) -> None:
    print(step["error"], file=sys.stderr, flush=True)  # noqa: T201  # an agent's output


def _run(step: Step) -> None:
    subprocess.run(shlex.split(step["run"]), check=False)


def _start(step: Step) -> None:
    """Leave a process of its own session behind, as agents do with servers and daemons."""
    subprocess.Popen(shlex.split(step["start"]), start_new_session=True)


def _kill(step: Step) -> None:
    os.kill(os.getpid(), signal.Signals[f"SIG{step['signal']}"])


PLAY: Mapping[str, Callable[[Step], None]] = {
    "write": _write,
    "append": _append,
    "delete": lambda step: Path(step["delete"]).unlink(),
    "print": _print,
    "error": _error,
    "run": _run,
    "start": _start,
    "sleep": lambda step: time.sleep(step["sleep"]),
    "hang": lambda _: time.sleep(ENDLESS),
    "exit": lambda step: sys.exit(step["exit"]),
    "signal": _kill,
}


def main(script: str) -> None:
    """Play this session's part; a task without a part ends well at once."""
    attempts = read(Path(script)).get(os.environ.get("UNSTUCK_TASK", ""), ())
    if attempts:
        number = int(os.environ.get("UNSTUCK_ATTEMPT", "1"))
        play(attempts[min(number, len(attempts)) - 1].get("steps", ()))


if __name__ == "__main__":
    main(sys.argv[1])
