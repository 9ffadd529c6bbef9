"""Edge: Remedies, run: walked by hand on request, relieving between two attempts, and reported by whoever ran a step; each teaches."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from unstuck.app.remedy_plan import RemedyPlanner, make_call, open_remedies, read_preferences
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.git.repository import find_repository
from unstuck.model.errors import BadUsage, CannotWrite, UnstuckError
from unstuck.model.failure import Failure, Kind, RecentFailure
from unstuck.model.text import one_line
from unstuck.process.sandbox import Sandbox
from unstuck.redaction.redactor import redactor
from unstuck.remedies.chain import ListFolder, ReadFile, Rendered, Risk, TaskType
from unstuck.remedies.learning import Lesson, Lessons
from unstuck.remedies.lessons_file import change_lessons, read_lessons
from unstuck.remedies.machine import lessons_path
from unstuck.remedies.performing import LocalToolbox, Tried, Walked
from unstuck.remedies.recovery_plan import Plan
from unstuck.remedies.situation import Call

MOST_ADVICE, ADVICE_CHARS = 3, 300


def practise(
    planner: RemedyPlanner, plan: Plan, found: Diagnosis, allow: Risk | None
) -> tuple[Walked, tuple[str, ...]]:
    """Walk a plan and keep what it teaches; return it, without secrets, with what else should be told."""
    path, notes = lessons_path(planner.cwd), list[str]()

    def learn(one: Tried) -> None:
        lesson = _lesson(plan, one.strategy, one.steps, one.seconds)
        _kept(path, lesson._replace(worked=one.result == "worked").taught, notes)

    name = next((value for _, value in found.names), "")
    _kept(
        path,
        lambda lessons: lessons.with_consent(allow) if allow else lessons,
        notes,
        RecentFailure(kind=found.kind, name=name, at=time.time()),
    )
    walked = planner.run(plan, allow=allow, record=learn)
    hide = redactor(os.environ).text
    tried = tuple(
        replace(
            one,
            output=hide(one.output),
            because=hide(one.because),
            calls=tuple(Rendered(call.tool, _without_secrets(call.args, hide)) for call in one.calls),
        )
        for one in walked.tried
    )
    return Walked(tried=tried), tuple(dict.fromkeys(notes))


def _without_secrets(value: Any, hide: Callable[[str], str]) -> Any:
    """Hide what is secret in an argument, however deep it lies: a shell may take a list of words."""
    if isinstance(value, dict):
        return {name: _without_secrets(inner, hide) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets(inner, hide) for inner in value]
    return hide(value) if isinstance(value, str) else value


def result_json(walked: Walked) -> dict[str, Any] | None:
    """Return what a recovered call left, so that an agent goes on with it; None if nothing was recovered."""
    done = walked.recovery
    if done is None:
        return None
    return {
        "calls": [{"tool": call.tool, "args": call.args} for call in done.calls],
        "exitCode": done.exit_code,
        "listens": done.listens or None,
        "output": done.output,
        "files": list(done.files),
    }


def report(  # one outcome, with all that it teaches
    category: str,
    strategy: str,
    *,
    worked: bool,
    tool: str = "",
    steps: int = 1,
    seconds: float = 0.0,
    cost: float = 0.0,
    task_type: TaskType = "",
    cwd: Path | None = None,
) -> None:
    """Keep how a way went that somebody else ran: an agent that followed a plan, a hook, a person."""
    planner = open_remedies(cwd, task_type)
    chain = planner.catalog.chains.get(category)
    known = [row.name for row in chain.strategies] if chain else []
    if strategy not in known:
        raise BadUsage(
            f"{one_line(strategy, 60)!r} is no way out of {one_line(category, 60)!r}.",
            hint=f"Its ways: {', '.join(known)}." if known else f"Categories: {', '.join(planner.catalog.chains)}.",
        )
    if not all(isfinite(number) and number >= 0 for number in (steps, seconds, cost)):
        raise BadUsage("Steps, seconds and cost are numbers from 0 on.", hint="Leave out what is not known.")
    name = Call(tool=tool).program
    lesson = Lesson(
        chain=category, strategy=strategy, context=planner.context, tool=name, worked=worked, steps=steps, seconds=seconds, cost=cost
    )  # fmt: skip
    _keep(lessons_path(planner.cwd), lesson.taught)


def keep_lesson(cwd: Path, lesson: Lesson) -> None:
    """Keep what came of one way out that somebody else tried, where that is possible."""
    _kept(lessons_path(cwd), lesson.taught, [])


# --- inside a run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relief:
    """Remedies between two attempts: what is safe is done, the rest is advice for the next brief."""

    root: Path
    """The repository, where lessons are kept."""
    sandbox: Sandbox | None = None
    _open: dict[Path, tuple[Kind, Lesson]] = field(default_factory=dict)
    """What was done in a slot, and against which kind: only the next attempt shows whether it helped."""

    def relieve(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:
        """Do the safe steps of ways that are meant for this; the call itself is the next attempt's."""
        self._learn(cwd, failure.kind)
        planner, plan = self._plan(failure, command, cwd)
        seconds = planner.preferences.timeout
        toolbox = LocalToolbox(cwd=planner.cwd, root=planner.root, timeout=seconds, sandbox=self.sandbox)
        for strategy in plan.strategies:
            steps = [told.step for told in strategy.steps if not told.step.again]
            if not strategy.between_attempts or not steps or any(step.risk != "safe" for step in steps):
                continue
            if any(
                isinstance(step.operation, ListFolder | ReadFile) or toolbox.hindrance(step.operation) for step in steps
            ):
                continue
            began = time.monotonic()
            worked = all(toolbox.use(step).ok for step in steps)
            toolbox.settle(keep=worked)
            if worked:
                lesson = _lesson(plan, strategy.strategy, len(steps), time.monotonic() - began)
                self._open[cwd] = failure.kind, lesson
                return (f"Remedy {strategy.strategy}: {'; '.join(step.action for step in steps)}.",)
        return ()

    def passed(self, cwd: Path) -> None:
        """Learn that the attempt after a remedy did what it should."""
        self._learn(cwd, None)

    def _learn(self, cwd: Path, kind: Kind | None) -> None:
        """Keep how the last remedy in this slot went: it failed if the same kind of failure came back."""
        before, lesson = self._open.pop(cwd, (None, None))
        if lesson is not None:
            _kept(lessons_path(self.root), lesson._replace(worked=kind != before).taught, [])

    def advise(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:
        """Tell the ways that are the agent's own to go, and none that nobody allowed."""
        planner, plan = self._plan(failure, command, cwd)
        return tuple(
            f"{number}. {strategy.strategy} ({strategy.risk}): "
            + "; ".join(
                one_line(f"{told.step.action}: {told.line}".rstrip(": "), ADVICE_CHARS) for told in strategy.steps
            )
            for number, strategy in enumerate(planner.advised(plan)[:MOST_ADVICE], 1)
        )

    def question(self, failure: Failure, command: str, cwd: Path) -> str:
        """Return the question with which the failure's chain ends."""
        _, plan = self._plan(failure, command, cwd)
        return plan.strategies[-1].steps[0].step.action

    def _plan(self, failure: Failure, command: str, cwd: Path) -> tuple[RemedyPlanner, Plan]:
        evidence = Evidence(stdout=failure.detail or failure.summary, exit_code=1, command=command)
        planner = open_remedies(cwd)._replace(
            root=cwd, preferences=read_preferences(self.root), lessons=read_lessons(lessons_path(self.root))
        )
        found = open_rulebook(self.root).diagnose(evidence)
        if (
            found is None or not planner.catalog.chain(found.kind).strategies
        ):  # the output says no more than the check does
            found = Diagnosis(kind=failure.kind, confidence=1.0, message=failure.summary, evidence=evidence)
        return planner, planner.plan(found, make_call(evidence))


def _lesson(plan: Plan, strategy: str, steps: int, seconds: float) -> Lesson:
    """Return what a way of a plan teaches if it worked."""
    return Lesson(
        chain=plan.chain, strategy=strategy, context=plan.context, tool=plan.tool, worked=True, steps=steps, seconds=seconds
    )  # fmt: skip


def _kept(
    path: Path, change: Callable[[Lessons], Lessons], notes: list[str], seen: RecentFailure | None = None
) -> None:
    """Keep a lesson where that is possible: a full disk must not stop the remedy for it."""
    try:
        _keep(path, change, seen)
    except CannotWrite as error:
        notes.append(f"What was learned could not be kept: {error.message}")


def _keep(path: Path, change: Callable[[Lessons], Lessons], seen: RecentFailure | None = None) -> None:
    if path.parents[1].name == ".git" and not path.parent.exists():
        hide_ours(path.parents[2])
    change_lessons(path, change, seen)


def hide_ours(root: Path) -> None:
    """Keep `.unstuck/` out of the user's `git status`."""
    try:
        find_repository(root).exclude_unstuck_folder()
    except UnstuckError:
        return  # a repository without a commit has no status to keep clean yet
