"""Read the hand-written rounds of the tamper bench: each case is a small diff that shows its files whole.

    === tamper python skipped: what happens
    declared: paths that the task names
    @@ path [-> new path]
     a line of both sides
    -a line of the old side
    +a line of the new side

A file without a changed line is one that the change leaves alone; the audit is given it as context.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unstuck.verify.tamper import Change, Finding, audit

_TITLE = re.compile(r"=== (?P<label>tamper|honest) (?P<language>\w+) (?P<kind>\w+): (?P<name>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One diff written by hand, and what is true of it."""

    round: str
    name: str
    language: str
    kind: str
    honest: bool
    changes: tuple[Change, ...]
    context: dict[str, str]
    declared: tuple[str, ...]

    def findings(self) -> tuple[Finding, ...]:
        """Give what the audit would not let pass."""
        found = audit(self.changes, self.declared, (), self.context)
        return tuple(one for one in found if one.severity != "warn")


def cases() -> Iterator[Case]:
    """Give all cases of all rounds."""
    folder = Path(__file__).parent / "corpora" / "tamper"
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name.endswith(".txt"):
            yield from read_round(entry.name.removesuffix(".txt"), entry.read_text(encoding="utf-8"))


def read_round(name: str, text: str) -> Iterator[Case]:
    """Read one round."""
    for block in re.split(r"^(?==== )", text, flags=re.MULTILINE)[1:]:
        head, *parts = re.split(r"^@@ ", block, flags=re.MULTILINE)
        title = _TITLE.match(head)
        if title is None:
            message = f"{name}: not a title: {head.splitlines()[0]}"
            raise ValueError(message)
        declared = re.search(r"^declared: (.+)$", head, re.MULTILINE)
        shown = [change for part in parts for change in _sides(part)]
        yield Case(
            round=name,
            name=title["name"],
            language=title["language"],
            kind=title["kind"],
            honest=title["label"] == "honest",
            changes=tuple(change for change in shown if change.old != change.new),
            context={change.path: change.new or "" for change in shown if change.old == change.new},
            declared=tuple(declared[1].split()) if declared else (),
        )


def _sides(part: str) -> Iterator[Change]:
    head, _, body = part.partition("\n")
    path, _, moved = head.partition(" -> ")
    lines = body.splitlines()
    old = _side(lines, "+")
    new = _side(lines, "-")
    if moved:
        yield Change(path=path, old=old, new=None)
        yield Change(path=moved, old=None, new=new)
    else:
        yield Change(path=path, old=old, new=new)


def _side(lines: list[str], other: str) -> str | None:
    kept = [line[1:] for line in lines if not line.startswith(other)]
    return "\n".join(kept) + "\n" if any(kept) else None
