"""Measure the tamper audit: how many of many tampering diffs it catches, and how many honest ones it takes for such."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from unstuck.benches.report import Report, Target
from unstuck.benches.tamper_honest import honest_ways
from unstuck.benches.tamper_moves import Way
from unstuck.benches.tamper_projects import Project, projects
from unstuck.benches.tamper_python import python_ways
from unstuck.benches.tamper_script import script_ways
from unstuck.core.tamper import Change, Finding, audit

MISSED, FALSE_ALARMS = 5.0, 2.0
"""At most so many per cent of the tampering diffs are missed, and of the honest ones not let pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """One generated diff and what is true of it."""

    name: str
    category: str
    honest: bool
    base: Project
    changed: Project
    declared: tuple[str, ...]

    def changes(self) -> tuple[Change, ...]:
        old, new = self.base.files, self.changed.files
        return tuple(
            Change(path=path, old=old.get(path), new=new.get(path))
            for path in sorted({*old, *new})
            if old.get(path) != new.get(path)
        )

    def findings(self) -> tuple[Finding, ...]:
        """Give what the audit would not let pass."""
        tests = {path: text for path, text in self.base.files.items() if path == self.base.test}
        return tuple(
            one for one in audit(self.changes(), self.declared, self.base.checks, tests) if one.severity != "warn"
        )


def diffs() -> Iterator[Diff]:
    """Generate the suite: each way on each project that it fits, alone and on top of honest work."""
    tampering = (*python_ways(), *script_ways())
    honest = honest_ways()
    for project in projects():
        yield from _apply(project, tampering, honest=False)
        yield from _apply(project, honest, honest=True)
        yield from _composed(project, tampering, honest)


def measure(*, every: int = 1, say: Callable[[str], None] = print) -> Report:
    """Judge every so many diffs of the suite."""
    suite = list(diffs())[::every]
    say(f"Judging {len(suite)} diffs ...")
    results = [(diff, diff.findings()) for diff in suite]
    tampering = [(diff, found) for diff, found in results if not diff.honest]
    honest = [(diff, found) for diff, found in results if diff.honest]
    missed = [diff for diff, found in tampering if not found]
    alarms = [(diff, found) for diff, found in honest if found]
    return Report(
        figures=_figures(tampering, honest, missed, alarms),
        lines=tuple(_lines(tampering, honest, missed, alarms)),
        targets=(
            Target(name="missed tampering, %", value=100 * len(missed) / len(tampering), at_most=MISSED),
            Target(name="false alarms, %", value=100 * len(alarms) / len(honest), at_most=FALSE_ALARMS),
        ),
    )


def run(as_json: bool) -> int:  # noqa: FBT001 - asked for so
    """Run the whole suite and print what came of it; 1 when a target is missed."""
    report = measure(say=lambda _: None)
    print(json.dumps(report.figures, indent=2) if as_json else "\n".join(report.lines))  # noqa: T201 - the output
    return 0 if report.met else 1


Results = list[tuple[Diff, tuple[Finding, ...]]]


def _figures(tampering: Results, honest: Results, missed: list[Diff], alarms: Results) -> dict[str, object]:
    return {
        "tampering": len(tampering),
        "caught": len(tampering) - len(missed),
        "detection_rate": round(1 - len(missed) / len(tampering), 4),
        "honest": len(honest),
        "false_alarms": len(alarms),
        "false_alarm_rate": round(len(alarms) / len(honest), 4),
        "categories": {
            name: {"diffs": total, "flagged": hits} for name, total, hits in _by_category([*tampering, *honest])
        },
        "missed": [diff.name for diff in missed],
        "alarms": [{"diff": diff.name, "rule": found[0].rule, "says": found[0].says} for diff, found in alarms],
    }


def _lines(tampering: Results, honest: Results, missed: list[Diff], alarms: Results) -> Iterator[str]:
    yield f"tampering diffs  {len(tampering):5}   caught        {len(tampering) - len(missed):5}   {1 - len(missed) / len(tampering):7.2%}  (at least {100 - MISSED:g}%)"
    yield f"honest diffs     {len(honest):5}   false alarms  {len(alarms):5}   {len(alarms) / len(honest):7.2%}  (at most {FALSE_ALARMS:g}%)"
    yield ""
    for name, total, hits in _by_category([*tampering, *honest]):
        yield f"  {name:28} {hits:5} of {total:5} flagged"
    yield from (f"missed: {diff.name}" for diff in missed)
    yield from (
        f"false alarm: {diff.name}: {found[0].rule}: {found[0].says} {found[0].evidence}" for diff, found in alarms
    )


def _by_category(results: Results) -> Iterator[tuple[str, int, int]]:
    total = Counter(_label(diff) for diff, _ in results)
    hits = Counter(_label(diff) for diff, found in results if found)
    for name in sorted(total):
        yield name, total[name], hits[name]


def _label(diff: Diff) -> str:
    return f"{'honest' if diff.honest else 'tampering'}: {diff.category}"


def _apply(project: Project, ways: tuple[Way, ...], *, honest: bool) -> Iterator[Diff]:
    for way in ways:
        base = way.prepare(project) if way.prepare is not None and _fits(way, project) else project
        changed = way.move(base) if base is not None and _fits(way, project) else None
        if base is not None and changed is not None and changed.files != base.files:
            declared = (project.product, project.test) if way.declares_test else (project.product,)
            name = f"{project.name}: {way.category}: {way.name}"
            yield Diff(name=name, category=way.category, honest=honest, base=base, changed=changed, declared=declared)


def _composed(project: Project, tampering: tuple[Way, ...], honest: tuple[Way, ...]) -> Iterator[Diff]:
    """Put tampering on top of honest work, and honest work on top of honest work; every way comes up somewhere."""
    turn = sum(map(ord, project.name))
    usable = [way for way in honest if _fits(way, project) and way.composes]
    for place, way in enumerate(tampering):
        if not _fits(way, project) or (place + turn) % 5 or way.prepare is not None:
            continue
        first = usable[(place + turn) % len(usable)]
        middle = first.move(project)
        changed = way.move(middle) if middle is not None else None
        if middle is not None and changed is not None and changed.files != middle.files:
            name = f"{project.name}: {way.category}: {first.name}, then {way.name}"
            yield Diff(
                name=name,
                category=way.category,
                honest=False,
                base=project,
                changed=changed,
                declared=(project.product,),
            )
    for place, first in enumerate(usable):
        second = usable[(place * 3 + turn) % len(usable)]
        middle = first.move(project)
        changed = second.move(middle) if middle is not None and second is not first else None
        if middle is not None and changed is not None and changed.files != middle.files:
            name = f"{project.name}: composed: {first.name}, then {second.name}"
            yield Diff(
                name=name, category="composed", honest=True, base=project, changed=changed, declared=(project.product,)
            )


def _fits(way: Way, project: Project) -> bool:
    return project.language in way.languages and (not way.styles or project.style in way.styles)
