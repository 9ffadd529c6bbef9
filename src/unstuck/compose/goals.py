"""Edge: A goal without a plan file: one task, kept in git's own folder, so that it is resumed like any other run."""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from unstuck.errors import BadUsage, CannotWrite
from unstuck.git import Repository
from unstuck.journal import GOAL
from unstuck.plans import Check, Insertion, Plan, Task, open_plan
from unstuck.ports import PlanFile
from unstuck.process import load, put
from unstuck.tell import one_line

TASK = "goal"
"""The id of the one task: what people type after `show`, `retry` or `answer`."""
TITLE_CHARS, SLUG_CHARS = 72, 32


class GoalFile:
    """A goal as a plan of one task. It is kept as JSON: nothing in a pasted text can pose as a check of ours."""

    format = GOAL
    companions: tuple[str, ...] = ()
    spec_folder = False
    extensible = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Plan:
        try:
            kept = json.loads(load(self.path))
            goal, checks = str(kept["goal"]), [str(line) for line in kept["checks"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadUsage(
                f"The goal in {self.path} cannot be read.", hint="Give it again with `unstuck go`."
            ) from error
        title = one_line(goal.strip().splitlines()[0], TITLE_CHARS)
        task = Task(id=TASK, title=title, body=goal, checks=tuple(Check(command=line) for line in checks))
        return Plan(path=str(self.path), format=GOAL, tasks=(task,), title=title)

    def mark(self, statuses: Mapping[str, str]) -> bool:  # noqa: ARG002  # the port's signature
        """Leave it as it is: the journal says whether it is done, and the same goal may be set again."""
        return False

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        raise CannotWrite(f"A goal takes no new tasks ({', '.join(insertion.blocks)}).", hint="Use a tasks.md.")


def keep_goal(repository: Repository, goal: str, checks: Sequence[str]) -> GoalFile:
    """Write a goal down; the same goal with the same checks is the same file, and so the same unfinished run."""
    if not goal.strip():
        raise BadUsage("The goal is empty.", hint="Say what should be done: unstuck go 'Add a maxLength option'")
    text = json.dumps({"goal": goal, "checks": list(checks)}, indent=2) + "\n"
    slug = re.sub(r"[^a-z0-9]+", "-", goal.lower())[:SLUG_CHARS].strip("-")
    path = repository.store / "goals" / f"{slug}-{sha256(text.encode(errors='replace')).hexdigest()[:8]}.json"
    put(path, text)
    return GoalFile(path)


def open_either(path: Path, plan_format: str | None, *, root: Path, known: Mapping[str, str] | None = None) -> PlanFile:
    """Open a plan of a person's, or a goal that we keep."""
    return GoalFile(path) if plan_format == GOAL else open_plan(path, plan_format, root=root, known=known)
