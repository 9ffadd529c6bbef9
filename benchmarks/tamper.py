"""Measure the tamper audit: how many of many tampering diffs it catches, and how many honest ones it takes for such."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.report import Report, Target
from benchmarks.tamper_honest import honest_ways
from benchmarks.tamper_moves import Way
from benchmarks.tamper_projects import Project, projects
from benchmarks.tamper_python import python_ways
from benchmarks.tamper_rounds import Case, cases
from benchmarks.tamper_script import script_ways
from unstuck.verify.tamper import Change, Finding, audit

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

    @property
    def kind(self) -> str:
        return self.category

    @property
    def language(self) -> str:
        return self.base.language

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


def measure(*, every: int = 4, say: Callable[[str], None] = print) -> Report:
    """Judge all diffs written by hand, and every so many of the generated ones."""
    generated: Sequence[Diff | Case] = list(diffs())[::every]
    written: Sequence[Diff | Case] = list(cases())
    say(f"Judging {len(generated)} generated and {len(written)} hand-written diffs ...")
    sources = {"generated": _judge(generated), "written": _judge(written)}
    both = [*sources["generated"], *sources["written"]]
    return Report(
        figures={
            **_rates(both),
            **{name: _rates(results) for name, results in sources.items()},
            "categories": {
                name: {"diffs": total, "flagged": hits} for name, total, hits in _by(both, lambda one: one.kind)
            },
            "languages": {
                name: {"diffs": total, "flagged": hits} for name, total, hits in _by(both, lambda one: one.language)
            },
            "missed": [one.name for one, found in both if not one.honest and not found],
            "alarms": [
                {"diff": one.name, "rule": found[0].rule, "says": found[0].says}
                for one, found in both
                if one.honest and found
            ],
        },
        lines=tuple(_lines(sources, both)),
        targets=tuple(target for name, results in sources.items() for target in _targets(name, results)),
    )


Results = list[tuple[Diff | Case, tuple[Finding, ...]]]


def _judge(suite: Sequence[Diff | Case]) -> Results:
    return [(one, one.findings()) for one in suite]


def _rates(results: Results) -> dict[str, float]:
    tampering = [bool(found) for one, found in results if not one.honest]
    honest = [bool(found) for one, found in results if one.honest]
    return {
        "tampering": len(tampering),
        "caught": sum(tampering),
        "detection_rate": round(sum(tampering) / len(tampering), 4),
        "honest": len(honest),
        "false_alarms": sum(honest),
        "false_alarm_rate": round(sum(honest) / len(honest), 4),
    }


def _targets(name: str, results: Results) -> Iterator[Target]:
    rates = _rates(results)
    yield Target(name=f"missed tampering, {name}, %", value=100 * (1 - rates["detection_rate"]), at_most=MISSED)
    yield Target(name=f"false alarms, {name}, %", value=100 * rates["false_alarm_rate"], at_most=FALSE_ALARMS)


def _lines(sources: dict[str, Results], both: Results) -> Iterator[str]:
    for name, results in {"all": both, **sources}.items():
        rates = _rates(results)
        yield (
            f"{name:10} tampering {rates['tampering']:5}   caught       {rates['caught']:5}"
            f"   {rates['detection_rate']:7.2%}  (at least {100 - MISSED:g}%)"
        )
        yield (
            f"{'':10} honest    {rates['honest']:5}   false alarms {rates['false_alarms']:5}"
            f"   {rates['false_alarm_rate']:7.2%}  (at most {FALSE_ALARMS:g}%)"
        )
    for title, sort in _SORTS.items():
        yield ""
        yield f"by {title}"
        for name, total, hits in _by(both, sort):
            yield f"  {name:34} {hits:5} of {total:5} flagged  {hits / total:7.2%}"
    yield from (f"missed: {one.name}" for one, found in both if not one.honest and not found)
    yield from (
        f"false alarm: {one.name}: {found[0].rule}: {found[0].says} {found[0].evidence}"
        for one, found in both
        if one.honest and found
    )


_SORTS: dict[str, Callable[[Diff | Case], str]] = {
    "language": lambda one: one.language,
    "kind": lambda one: one.kind,
}


def _by(results: Results, sort: Callable[[Diff | Case], str]) -> Iterator[tuple[str, int, int]]:
    total, hits = (
        Counter(_label(one, sort) for one, _ in results),
        Counter(_label(one, sort) for one, found in results if found),
    )
    for name in sorted(total):
        yield name, total[name], hits[name]


def _label(one: Diff | Case, sort: Callable[[Diff | Case], str]) -> str:
    return f"{'honest' if one.honest else 'tampering'}: {sort(one)}"


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
