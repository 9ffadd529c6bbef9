"""Edge: Open runs: a new one, the unfinished one of a plan, one that is named, or one for a goal, which is kept in git's own folder."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from unstuck.app.config_file import read_config, readable_config
from unstuck.app.inspect import look
from unstuck.app.journal_location import with_last_store, with_store
from unstuck.app.run import Run
from unstuck.app.services import Watcher
from unstuck.app.settings import resolved
from unstuck.compat.smart_ralph import RECOVERY, asked_by
from unstuck.git.repository import Repository, find_repository
from unstuck.journal.run_state import RunState
from unstuck.journal.store import Store
from unstuck.model.config import Config
from unstuck.model.errors import BadUsage, CannotWrite
from unstuck.model.event import GOAL, Options
from unstuck.model.plan import Insertion, Plan, Task
from unstuck.model.text import one_line
from unstuck.model.verdict import Check
from unstuck.plans.plan_file import PlanFile, open_plan
from unstuck.process.atomic_files import read_plan_bytes, write_atomically
from unstuck.process.clock import Clock


def open_run(
    plan: str | Path,
    *,
    agents: Sequence[str] = (),
    options: Options | None = None,
    parallel: int | None = None,
    profile: str | None = None,
    recovery_mode: bool = False,
    cwd: Path | None = None,
    plan_format: str | None = None,
    store: str | None = None,
    priority: int | None = None,
    watcher: Watcher | None = None,
    open_journal: Callable[[Path], Store] | None = None,
    clock: Clock | None = None,
) -> Run:
    """Open a plan's run: its unfinished one with its stored options, or a new one.

    `recovery_mode` is the profile `fix-tasks`; a spec folder whose state file says `recoveryMode` has it, too.
    """
    repository = find_repository(cwd or Path.cwd())
    plan_file = open_plan(_found(Path(plan), repository.root), plan_format, root=repository.root)
    asked = replace(options or Options(agents=()), agents=tuple(agents), parallel=parallel or 0, profile=profile or "")
    config = with_store(repository, read_config(repository.root), store)
    if priority is not None:
        config = replace(config, store=replace(config.store, priority=priority))
    options = _filled_in(asked, config, plan_file, recovery=recovery_mode)
    return Run(repository, config, plan_file, options, watcher or Watcher(), None, open_journal, clock)


def open_goal(
    goal: str,
    *,
    checks: Sequence[str] = (),
    agents: Sequence[str] = (),
    options: Options | None = None,
    profile: str | None = None,
    cwd: Path | None = None,
    watcher: Watcher | None = None,
) -> Run:
    """Open the run of a goal, one task without a plan file: its unfinished one, or a new one."""
    repository = find_repository(cwd or Path.cwd())
    asked = replace(options or Options(agents=()), agents=tuple(agents), profile=profile or "")
    config = with_store(repository, read_config(repository.root))
    kept = keep_goal(repository, goal, checks)
    return Run(repository, config, kept, _filled_in(asked, config, kept), watcher or Watcher())


def _filled_in(asked: Options, config: Config, plan_file: PlanFile, *, recovery: bool = False) -> Options:
    """Take what nobody asked for from the plan and the configuration."""
    wanted = asked_by(plan_file)
    profile = asked.profile or (RECOVERY if recovery or wanted.recovery else config.profile)
    return resolved(replace(asked, parallel=asked.parallel or config.parallel, profile=profile), config, wanted)


def _found(plan: Path, root: Path) -> Path:
    """Return where the plan is: our own summaries name it from the repository's root, wherever they are read."""
    return root / plan if not os.path.lexists(plan) and os.path.lexists(root / plan) else plan


def reopen_run(
    run: str | None = None, *, cwd: Path | None = None, watcher: Watcher | None = None, budget_usd: float | None = None
) -> Run:
    """Open the latest run again, or the one named; it keeps its options, but for a budget that is given anew."""
    view = look(cwd or Path.cwd(), run)
    started = view.state.started
    assert started is not None
    repository = find_repository(cwd or Path.cwd())
    plan_file = plan_of(view.state, repository.root)
    found = readable_config(repository.root)
    if found.refused is not None and view.owner is None:  # a living supervisor works with what it read
        raise found.refused
    config = with_last_store(repository, found.config)
    options = started.options if budget_usd is None else replace(started.options, budget_usd=budget_usd)
    return Run(repository, config, plan_file, options, watcher or Watcher(), view.run)


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
            kept = json.loads(read_plan_bytes(self.path))
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

    def redone(
        self,
        contents: Mapping[str, bytes],
        insertions: Sequence[Insertion],  # noqa: ARG002  # as above
        tasks: Mapping[str, tuple[str, str]],  # noqa: ARG002  # as above
    ) -> Mapping[str, bytes]:
        return contents

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        raise CannotWrite(f"A goal takes no new tasks ({', '.join(insertion.blocks)}).", hint="Use a tasks.md.")


def keep_goal(repository: Repository, goal: str, checks: Sequence[str]) -> GoalFile:
    """Write a goal down; the same goal with the same checks is the same file, and so the same unfinished run."""
    if not goal.strip():
        raise BadUsage("The goal is empty.", hint="Say what should be done: unstuck go 'Add a maxLength option'")
    text = json.dumps({"goal": goal, "checks": list(checks)}, indent=2) + "\n"
    slug = re.sub(r"[^a-z0-9]+", "-", goal.lower())[:SLUG_CHARS].strip("-")
    path = repository.store / "goals" / f"{slug}-{sha256(text.encode(errors='replace')).hexdigest()[:8]}.json"
    write_atomically(path, text)
    return GoalFile(path)


def plan_of(state: RunState, root: Path) -> PlanFile:
    """Open the plan of a run again: a person's, or a goal that we keep."""
    started = state.started
    assert started is not None
    if started.format == GOAL:
        return GoalFile(root / started.plan)
    known = {name: task.task.title for name, task in state.tasks.items()}
    return open_plan(root / started.plan, started.format, root=root, titles=known)
