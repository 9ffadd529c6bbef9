"""ralphy (npm: ralphy-cli): every box of a list goes to Claude Code, which is believed; errors are tried again."""

from dataclasses import dataclass

from benchmarks.supervisor.arena import Trial
from benchmarks.supervisor.peers import find, ticked
from benchmarks.supervisor.supervisors import Told


@dataclass(frozen=True, slots=True)
class Ralphy:
    """`ralphy --prd tasks.md`, with the agent as `claude` on PATH."""

    name: str = "ralphy"
    commits: bool = True

    def missing(self) -> str:
        return "" if program() else "not installed: npm install --prefix .peers ralphy-cli"

    def prepare(self, trial: Trial) -> None:
        """Need nothing: the plan's boxes are its list."""

    def command(self, trial: Trial) -> list[str]:  # noqa: ARG002 - it runs in the repository
        return [program(), "--prd", "tasks.md", "--max-retries", "3", "--retry-delay", "1"]

    def told(self, trial: Trial, output: str) -> Told:  # noqa: ARG002 - it ticks the plan
        return Told(done=ticked(trial))


def program() -> str:
    return find("ralphy", "Autonomous AI Coding Loop")


def supervisors() -> tuple[Ralphy, ...]:
    return (Ralphy(),)
