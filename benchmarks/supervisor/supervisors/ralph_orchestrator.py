"""ralph-orchestrator (PyPI): one prompt in a loop until the agent says the promised words."""

from dataclasses import dataclass

from benchmarks.supervisor.arena import Trial
from benchmarks.supervisor.peers import find, ticked
from benchmarks.supervisor.supervisors import Told

PROMPT = "Do the next open item of tasks.md, tick it off, commit. When none is left open, say that all is complete.\n"
"""The promised words must not stand here: it would take them for the agent's and stop before it began."""
IGNORED = ".agent/\n.logs/\n"
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class RalphOrchestrator:
    """`ralph run -a gemini`, with the agent as `gemini` on PATH: the one that it calls as a plain command."""

    name: str = "ralph-orchestrator"
    commits: bool = True

    def missing(self) -> str:
        install = "python3 -m venv .peers/ralph && .peers/ralph/bin/pip install ralph-orchestrator"
        return "" if program() else f"not installed: {install}"

    def prepare(self, trial: Trial) -> None:
        trial.agent.with_name("gemini").symlink_to(trial.agent)
        trial.write("PROMPT.md", PROMPT)
        trial.write(".gitignore", (trial.repository / ".gitignore").read_text(encoding="utf-8") + IGNORED)

    def command(self, trial: Trial) -> list[str]:
        rounds = ROUNDS * len(trial.project.tasks)
        return [
            program(), "run", "-a", "gemini", "-P", "PROMPT.md", "-i", str(rounds), "--retry-delay", "1",
            "--completion-promise", "ALL_TASKS_COMPLETE", "--no-metrics",
        ]  # fmt: skip

    def told(self, trial: Trial, output: str) -> Told:  # noqa: ARG002 - the agent ticks the plan
        return Told(done=ticked(trial))


def program() -> str:
    return find("ralph", "Ralph Orchestrator")


def supervisors() -> tuple[RalphOrchestrator, ...]:
    return (RalphOrchestrator(),)
