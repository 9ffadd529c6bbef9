"""The loops of `naive_loops.py` as supervisors: none, loop, retry."""

import sys
from dataclasses import dataclass

from benchmarks.supervisor.arena import ROOT, Trial
from benchmarks.supervisor.supervisors import Told


@dataclass(frozen=True, slots=True)
class Naive:
    """One of the loops that everybody has written once."""

    name: str
    commits: bool = False

    def missing(self) -> str:
        return ""

    def prepare(self, trial: Trial) -> None:
        """Need nothing."""

    def command(self, trial: Trial) -> list[str]:
        start = "import sys; sys.path.insert(0, sys.argv[3]); from benchmarks.supervisor.naive_loops import main; main(*sys.argv[1:3])"
        return [sys.executable, "-c", start, self.name, str(trial.folder), str(ROOT)]

    def told(self, trial: Trial, output: str) -> Told:  # noqa: ARG002 - its output says all
        words = output.split()
        return Told(done=frozenset(words[words.index("DONE") + 1 :] if "DONE" in words else ()))


def supervisors() -> tuple[Naive, ...]:
    return Naive("none"), Naive("loop", commits=True), Naive("retry")
