"""Edge: our own supervisor, once with its default profile and once with each other one, through its command line."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.supervisor.arena import Trial
from benchmarks.supervisor.supervisors import Told

OURS = "unstuck"
DEFAULT = "adaptive"
SETTINGS = """\
agent = ["sim"]
parallel = 2

[agents.sim]
program = "{agent}"
arguments = ["-p", "--output-format", "stream-json", "--verbose"]
resume = ["--resume", "{{session}}"]
output = "claude"
capabilities = ["resume", "cost"]

[checks]
test = "{gate}"

[limits]
silence = {patience}
wall_clock = {wall}
drain = 1

# The bench's hours are seconds: what is waited for a provider, too.
[profiles.timed]
like = "{profile}"
limits = {{ first_wait = 1, longest_wait = 2, reset_margin = 0 }}
"""


@dataclass(frozen=True, slots=True)
class Unstuck:
    """`unstuck run` with one of its profiles."""

    name: str
    profile: str
    commits: bool = False

    def missing(self) -> str:
        return "" if program() else "`unstuck` is neither beside this Python nor on PATH"

    def prepare(self, trial: Trial) -> None:
        patience = trial.world.patience
        settings = SETTINGS.format(
            agent=trial.agent, gate=trial.project.gate, patience=patience, wall=2 * patience, profile=self.profile
        )
        trial.write("unstuck.toml", settings)

    def command(self, trial: Trial) -> list[str]:  # noqa: ARG002 - it runs in the repository
        return [program(), "run", "tasks.md", "--profile", "timed", "--agent", "sim", "--quiet", "--json"]

    def told(self, trial: Trial, output: str) -> Told:
        """Read what it printed at its end, or else what it says when it is asked: a deadline may have ended it."""
        status = _object(output) or _object(self._asked(trial))
        if not status:
            return Told(done=frozenset())
        rows = {task: row["status"] for task, row in status["tasks"].items()}
        branch = f"unstuck/{status['run']}"
        return Told(
            done=frozenset(task for task, state in rows.items() if state == "complete"),
            questions=frozenset(task for task, state in rows.items() if state == "stuck"),
            branch=branch if trial.git("rev-parse", "-q", "--verify", branch) else "main",
        )

    def _asked(self, trial: Trial) -> str:
        return subprocess.run(
            (program(), "status", "--json"),
            cwd=trial.repository,
            env=trial.environment,
            capture_output=True,
            text=True,
            check=False,
        ).stdout


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object that stands on a line of its own."""
    line = next((line for line in reversed(text.splitlines()) if line.startswith('{"schema"')), "{}")
    found: dict[str, Any] = json.loads(line)
    return found


def program() -> str:
    """Return where `unstuck` is."""
    beside = Path(sys.executable).with_name("unstuck")
    return str(beside) if beside.exists() else shutil.which("unstuck") or ""


def profiles() -> list[str]:
    """Return the names of the profiles, as the program lists them."""
    if not program():
        return []
    listed = subprocess.run((program(), "policy"), capture_output=True, text=True, check=False).stdout
    return re.findall(r"^([a-z][a-z-]*): ", listed, re.MULTILINE)


def supervisors() -> tuple[Unstuck, ...]:
    others = (Unstuck(f"{OURS}:{profile}", profile) for profile in profiles() if profile != DEFAULT)
    return Unstuck(OURS, DEFAULT), *others
