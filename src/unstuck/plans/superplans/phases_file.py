"""Edge: Plans whose tasks carry a status: superplans, in one file or several, and the lists in JSON of other tools."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unstuck.errors import CannotWrite
from unstuck.plans import implementation_plan, prd_json, task_master
from unstuck.plans.plan import Insertion, Plan, Problem, Task
from unstuck.plans.superplans import phase_marks, superplan
from unstuck.plans.tasks_md import decode
from unstuck.process import LARGEST, load, rewrite
from unstuck.tools import Runnable

_PART = re.compile(r"\bPart[ \t]+(\d{1,3})[ \t]+of[ \t]+(\d{1,3})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)(\d{1,3})(\.\w+)", re.DOTALL)
_HEAD_CHARS = 4000

Reader = Callable[[str, str, str, Runnable], Plan]
Marker = Callable[[str, Mapping[str, str], str], tuple[str, frozenset[str]]]
JSON: Mapping[str, tuple[Reader, Marker]] = {
    implementation_plan.FORMAT: (
        lambda text, path, *_: implementation_plan.read(text, path),
        lambda text, statuses, _: implementation_plan.mark(text, statuses),
    ),
    prd_json.FORMAT: (
        lambda text, path, _, runnable: prd_json.read(text, path, runnable),
        lambda text, statuses, _: prd_json.mark(text, statuses),
    ),
    task_master.FORMAT: (task_master.read, task_master.mark),
}
"""The formats in JSON: how each is read and marked, given the tag that is current where lists have tags, and what can be run."""


def plan_parts(file: Path, content: bytes) -> tuple[Path, ...]:
    """Return all files of a plan that says `Part N of M`, in order; the file alone if it says nothing of the kind."""
    said = _PART.search(content[:_HEAD_CHARS].decode(errors="replace"))
    name = _NUMBERED.fullmatch(file.name)
    if said is None or name is None or int(said[1]) != int(name[2]):
        return (file,)
    return tuple(file.with_name(f"{name[1]}{number}{name[3]}") for number in range(1, int(said[2]) + 1))


class PhasesFile:
    """Such a plan on disk. Implements `unstuck.ports.PlanFile`."""

    spec_folder = False
    extensible = False

    def __init__(self, parts: Sequence[Path], plan_format: str, *, runnable: Runnable, tag: str = "") -> None:
        self.path = parts[0]
        self.format = plan_format
        self.companions = tuple(part.name for part in parts[1:])
        """The further parts of the plan, in the same folder."""
        self.missing: tuple[str, ...] = ()
        """The tasks that the last `mark` did not find."""
        self._parts = tuple(parts)
        self._runnable = runnable
        self._tag = tag

    def read(self) -> Plan:
        present = [part for part in self._parts if part.is_file()]
        lost = [part.name for part in self._parts if part not in present]
        contents = [load(part) for part in present]
        problems = [
            Problem(message=f"The part {name} of the plan is missing.", hint="Put it beside the others.")
            for name in lost
        ]
        for part, content in zip(present, contents, strict=True):
            if len(content) > LARGEST or b"\0" in content:
                what = (
                    f"is larger than {LARGEST // 1_000_000} MB"
                    if len(content) > LARGEST
                    else "is not text: it has NUL bytes"
                )
                problems.append(Problem(message=f"{part.name} {what}.", hint="Name the plan itself, as UTF-8 text."))
        path = str(self.path)
        if any(len(content) > LARGEST or b"\0" in content for content in contents):
            return Plan(path=path, format=self.format, tasks=(), problems=tuple(problems))
        if self.format in JSON:
            return JSON[self.format][0](_readable(contents[0]), path, self._tag, self._runnable)
        parts = [
            superplan.Part("" if part == self.path else part.name, decode(content))
            for part, content in zip(present, contents, strict=True)
        ]
        return superplan.read(parts, path, runnable=self._runnable, problems=problems)

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Refuse: only a tasks.md takes new tasks."""
        raise CannotWrite(f"{self.path} takes no new tasks ({', '.join(insertion.blocks)}).", hint="Use a tasks.md.")

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Write the statuses of tasks in place, atomically, file by file; return whether anything changed."""
        known: set[str] = set()

        def change(content: bytes) -> bytes:
            text = decode(content)
            after, found = (
                JSON[self.format][1](text, statuses, self._tag)
                if self.format in JSON
                else phase_marks.mark(text, statuses)
            )
            known.update(found)
            return after.encode("utf-8", "surrogateescape")

        changed = [rewrite(part, change) for part in self._parts if part.is_file()]
        self.missing = tuple(name for name in statuses if name not in known)
        return any(changed)


def _readable(content: bytes) -> str:
    return content.decode("utf-8", "replace")
