"""Read the adversarial diffs: each case is a small diff that shows its files whole.

=== tamper python skipped: what happens
declared: paths that the task names
@@ path [-> new path]
 a line of both sides
-a line of the old side
+a line of the new side
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Report
from unstuck.model.changes import Change
from unstuck.model.verdict import Remark
from unstuck.verify.audit.auditing import audit

FOLDER = Path(__file__).parent / "corpora" / "tamper"
_TITLE = re.compile(r"=== (?P<label>tamper|honest) (?P<language>\w+) (?P<kind>\w+): (?P<name>.+)")


@dataclass(frozen=True)
class Case:
    """One diff written by hand, and what is true of it."""

    name: str
    language: str
    kind: str
    honest: bool
    changes: tuple[Change, ...]
    declared: tuple[str, ...]

    def stops(self) -> tuple[Remark, ...]:
        return tuple(one for one in audit(self.changes, self.declared) if one.severity != "warn")


def cases() -> Iterator[Case]:
    """Give all cases of all rounds."""
    for path in sorted(FOLDER.glob("*.txt")):
        for block in re.split(r"^(?==== )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, *parts = re.split(r"^@@ ", block, flags=re.MULTILINE)
            title = _TITLE.match(head)
            if title is None:
                message = f"{path.name}: not a title: {head.splitlines()[0]}"
                raise ValueError(message)
            declared = re.search(r"^declared: (.+)$", head, re.MULTILINE)
            shown = [change for part in parts for change in _sides(part)]
            yield Case(
                name=f"{path.stem} {title['language']} {title['kind']}: {title['name']}",
                language=title["language"],
                kind=title["kind"],
                honest=title["label"] == "honest",
                changes=tuple(change for change in shown if change.old != change.new),
                declared=tuple(declared[1].split()) if declared else (),
            )


def judge_rounds(every: int = 1) -> Report:
    """Judge all cases, or one in so many: how many were caught, and how many of the honest ones stopped."""
    total: Counter[tuple[bool, str]] = Counter()
    stopped: Counter[tuple[bool, str]] = Counter()
    wrong: list[str] = []
    for case in list(cases())[::every]:
        found = case.stops()
        total[case.honest, case.kind] += 1
        stopped[case.honest, case.kind] += bool(found)
        if case.honest == bool(found):
            why = f": {found[0].rule} {found[0].says}" if found else ""
            wrong.append(f"{'stopped' if case.honest else 'missed'}: {case.name}{why}")
    lines: list[str] = []
    for honest in (False, True):
        name = "honest" if honest else "tampering"
        kinds = sorted(kind for label, kind in total if label == honest)
        lines += [f"{name:10} {kind:20} {stopped[honest, kind]:4} of {total[honest, kind]:4} stopped" for kind in kinds]
        hits, number = (sum(count for (label, _), count in one.items() if label == honest) for one in (stopped, total))
        lines.append(f"{name:10} {'all':20} {hits:4} of {number:4} stopped  {hits / max(1, number):.1%}")
    figures = {
        "tampering": sum(count for (honest, _), count in total.items() if not honest),
        "caught": sum(count for (honest, _), count in stopped.items() if not honest),
    }
    return Report(figures=figures, lines=(*wrong, *lines), targets=())


def _sides(part: str) -> Iterator[Change]:
    head, _, body = part.partition("\n")
    path, _, moved = head.partition(" -> ")
    lines = body.splitlines()
    old, new = _side(lines, "+"), _side(lines, "-")
    if moved:
        yield Change(path=path, old=old, new=None)
        yield Change(path=moved, old=None, new=new)
    else:
        yield Change(path=path, old=old, new=new)


def _side(lines: list[str], other: str) -> str | None:
    kept = [line[1:] for line in lines if not line.startswith(other)]
    return "\n".join(kept) + "\n" if any(kept) else None
