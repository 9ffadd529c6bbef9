"""Edge: `python -m benchmarks.supervisor`: choose, run, print, write the page and the figures."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.supervisor.contest import Cell, Rules, contest
from benchmarks.supervisor.courses import PATHOLOGIES
from benchmarks.supervisor.figures import Estimate, Summary, Target, summaries, targets
from benchmarks.supervisor.page import page
from benchmarks.supervisor.project import Project, projects
from benchmarks.supervisor.score import Result
from benchmarks.supervisor.supervisors import Supervisor, known
from benchmarks.supervisor.supervisors.unstuck import DEFAULT, OURS

QUICK = ("none", "loop", "retry", OURS)
QUICK_PROJECTS = ("rings", "textkit", "shop")
"""The first that can be run here: compiled checks take the least time."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.supervisor", description=__doc__)
    parser.add_argument("--pathology", action="append", metavar="NAME", help="only these; see --list")
    parser.add_argument("--supervisor", action="append", metavar="NAME", help="only these; see --list")
    parser.add_argument("--policy", action="append", metavar="NAME", help="only our supervisor, with these profiles")
    parser.add_argument("--project", action="append", metavar="NAME", help="only these; see --list")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="how many draws of each cell (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one seed, one project, no profiles and no peers")
    parser.add_argument(
        "--patience", type=float, default=3.0, metavar="SECONDS", help="what stands for a long time limit"
    )
    parser.add_argument("--deadline", type=float, default=180.0, metavar="SECONDS", help="the end of a trial")
    parser.add_argument(
        "--flood", type=int, default=0, metavar="MB", help="what a flooder prints (default: 1024; quick: 32)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=(os.cpu_count() or 1) + 1,
        metavar="N",
        help="trials side by side: one of them mostly waits",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the trials there")
    parser.add_argument("--list", action="store_true", help="name what there is, and what is missing")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the bench; 1 if our own supervisor does not show what it must."""
    chosen = arguments(words)
    contenders, places = known(), projects()
    if chosen.list:
        listing(contenders, places)
        return 0
    if wrong := unknown(chosen, contenders, places):
        sys.stderr.write(f"{wrong}\nHint: see what there is with  python -m benchmarks.supervisor --list\n")
        return 64
    cells = list(select(chosen, contenders, places))
    rules = Rules(
        patience=chosen.patience,
        flood=chosen.flood or (32 if chosen.quick else 1024),
        deadline=chosen.deadline,
        jobs=chosen.jobs,
        keep=chosen.keep,
    )
    results = contest(cells, rules, seen(len(cells)))
    found = summaries(results)
    held = targets(found, OURS)
    sys.stdout.write(table(found, held))
    if chosen.json:
        figures = {"results": [asdict(one) for one in results], "cells": [asdict(one) for one in found]}
        figures["targets"] = [asdict(one) for one in held]
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if chosen.html:
        chosen.html.write_text(page(found, held), encoding="utf-8")
    return int(not all(target.met for target in held))


def listing(contenders: dict[str, Supervisor], places: dict[str, Project]) -> None:
    """Name what there is."""
    rows = [("pathology", name, text) for name, text in PATHOLOGIES.items()]
    rows += [("supervisor", name, one.missing()) for name, one in contenders.items()]
    rows += [("project", name, one.missing) for name, one in places.items()]
    sys.stdout.write("".join(f"{kind:<11} {name:<22} {text}\n" for kind, name, text in rows))


def unknown(chosen: argparse.Namespace, contenders: dict[str, Supervisor], places: dict[str, Project]) -> str:
    """Say which name is none of ours."""
    for names, there in (
        (chosen.pathology, PATHOLOGIES),
        (chosen.supervisor, contenders),
        (policies(chosen), contenders),
        (chosen.project, places),
    ):
        for name in names or ():
            if name not in there:
                return f"There is no {name!r}."
    return ""


def policies(chosen: argparse.Namespace) -> list[str]:
    """Return the supervisors that `--policy` names."""
    return [OURS if name == DEFAULT else f"{OURS}:{name}" for name in chosen.policy or ()]


def select(chosen: argparse.Namespace, contenders: dict[str, Supervisor], places: dict[str, Project]) -> Iterator[Cell]:
    """Return the trials to run; what cannot be run here is named with the reason."""
    names = [*(chosen.supervisor or ()), *policies(chosen)] or (QUICK if chosen.quick else list(contenders))
    runners = [contenders[name] for name in names if can_run(name, contenders[name].missing())]
    here = [places[name] for name in chosen.project or places if can_run(name, places[name].missing)]
    if chosen.quick and not chosen.project:
        here = [one for name in QUICK_PROJECTS for one in here if one.name == name][:1]
    for seed in range(1, (1 if chosen.quick else chosen.seeds) + 1):
        for pathology in chosen.pathology or PATHOLOGIES:
            for project in here:
                for runner in runners:
                    yield Cell(supervisor=runner, project=project, pathology=pathology, seed=seed)


def can_run(name: str, reason: str) -> bool:
    if reason:
        sys.stderr.write(f"skipped {name}: {reason}\n")
    return not reason


class seen:  # noqa: N801 - a function with a counter
    """Tell how far the bench has come."""

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0

    def __call__(self, one: Result) -> None:
        self.count += 1
        cell = f"{one.supervisor} {one.pathology} {one.project} {one.seed}"
        sys.stderr.write(f"{self.count}/{self.total} {cell}: {one.done} of {one.curable} in {one.wall:.0f} s\n")


def table(found: Sequence[Summary], held: Sequence[Target]) -> str:
    """Print the sums of all pathologies, what each pathology came to, and the targets."""
    head = ("supervisor", "solved", "false", "regr.", "lost B", "orphans", "pushed", "att./task", "$/task", "questions")
    rows = [head, *(row(cell) for cell in found if not cell.pathology)]
    rows += [(), ("pathology", *head[:9])]
    rows += [(cell.pathology, cell.supervisor, *row(cell)[1:9]) for cell in found if cell.pathology]
    lines = [
        "  ".join(
            f"{word:<20}" if at == 0 else f"{word:<18}" if at == 1 else f"{word:>9}" for at, word in enumerate(row)
        )
        for row in rows
    ]
    marks = [f"{'met   ' if target.met else 'MISSED'}  {target.text}" for target in held]
    return "\n".join([*lines, "", *marks]) + "\n"


def row(cell: Summary) -> tuple[str, ...]:
    return (
        cell.supervisor,
        share(cell.solved),
        str(cell.false_dones),
        str(cell.regressions),
        str(cell.bytes_lost),
        str(cell.orphans),
        str(cell.pushed),
        number(cell.attempts),
        number(cell.dollars),
        f"{cell.right_questions}/{cell.questions}",
    )


def share(one: Estimate | None) -> str:
    return f"{one.value:.0%} ({one.low:.0%}-{one.high:.0%})" if one else "-"


def number(one: Estimate | None) -> str:
    return f"{one.value:.2f}" if one else "-"


if __name__ == "__main__":
    sys.exit(main())
