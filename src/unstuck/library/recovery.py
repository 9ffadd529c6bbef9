"""Edge: `unstuck.Recovery`, the recovery manager of a loop of one's own; its facts are kept in memory, or in a file that several processes share."""

import math
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unstuck.app.remedy_plan import NOTHING_FAILED, Remedy, judged, make_call, open_remedies
from unstuck.diagnosis.classifying import failed_call
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rule_files import catalog_guidance
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.journal.run_state import RunState
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import TaskState
from unstuck.library.advice import Advice, Attempt, Past, advice, past
from unstuck.library.ledger import Ledger
from unstuck.model.action import Accept, Escalate, Fix
from unstuck.model.errors import BadUsage
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    Noted,
    Operated,
    Options,
    PlanChanged,
    Request,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.failure import Failure, Kind
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import TASK_ID, Task
from unstuck.model.text import one_line, shown
from unstuck.model.verdict import Verdict
from unstuck.policy.decision import decide
from unstuck.policy.history import footprint, history
from unstuck.policy.loops import Footprint, repeated_approach
from unstuck.policy.plan_changes import exceeded_fix_limit, fix_block
from unstuck.policy.profiles import profile as named_profile
from unstuck.redaction.redactor import redactor
from unstuck.remedies.chain import TaskType
from unstuck.remedies.learning import Lessons
from unstuck.remedies.lessons_file import change_lessons, read_lessons
from unstuck.remedies.machine import lessons_path
from unstuck.remedies.recovery_plan import Plan, Strategy, plan_json
from unstuck.report.briefs import hints
from unstuck.report.questions import stuck_report

TAIL_CHARS, APPROACH_CHARS = 4000, 300
SAME_ATTEMPT = (Stage.EXECUTE, Stage.WAIT)
"""What was interrupted goes on: another session, and no attempt more."""


class Recovery:
    """Remember attempts, say what to do after each, and learn which remedies work.

    It needs no git, no journal and no command line. With a `path` all is kept in that file, for the next process or
    for several at once; without one it lives in memory. The same history gives the same decisions.
    """

    def __init__(
        self,
        *,
        profile: str = "adaptive",
        path: str | Path | None = None,
        agents: Sequence[str] = (),
        cwd: str | Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._policy = named_profile(profile)
        self._agents = tuple(agents)
        self._cwd = Path(cwd).absolute() if cwd is not None else None
        self._clock = clock
        self._lock = threading.Lock()
        self._redact = redactor(os.environ).text
        self._ledger = Ledger(Path(path) if path is not None else None)
        self._lessons_file: Path | None = None
        if path is not None:  # what is learned in a folder is one with what `unstuck remedy` and the hook learn there
            self._lessons_file = lessons_path(self._cwd) if self._cwd else Path(path).with_suffix(".remedies.json")
        self._lessons = Lessons()
        self._plans: list[Plan] = []
        with self._lock, self._ledger.held() as state:
            if state.started is None:
                options = Options(agents=self._agents, profile=profile)
                begun = RunStarted(run="recovery", plan="", format="", base="", branch=None, options=options, tasks=())
                self._ledger.add(begun, clock())

    # --- attempts ------------------------------------------------------------------------------------------------

    def attempt(
        self, task: str, approach: str = "", *, title: str = "", agent: str = "", checkpoint: str = ""
    ) -> Attempt:
        """Begin a try at a task; `approach` is one line on how, `checkpoint` the last commit that passed.

        After `continue` and `wait` it is the same attempt, in a new session.
        """
        with self._lock, self._ledger.held() as state:
            now = self._clock()
            if task not in state.tasks:
                self._ledger.add(_with_task(state, Task(id=task, title=one_line(title, 200) or task)), now)
            known = state.tasks[task]
            same = bool(known.attempts) and known.status != "stuck" and known.stage in SAME_ATTEMPT
            if not same:
                number, who = len(known.attempts) + 1, agent or known.agent or (self._agents or ("",))[0]
                begun = AttemptStarted(
                    task=task, attempt=number, agent=who, base=checkpoint or state.tip, slot=0, tree=_last_tree(known)
                )
                self._ledger.add(begun, now)
            session = state.tasks[task].current.sessions + 1
            self._ledger.add(SessionStarted(task=task, session=session), now)
            line = one_line(self._redact(approach), APPROACH_CHARS)
            return Attempt(
                recovery=self,
                task=task,
                number=state.tasks[task].current.number,
                session=session,
                approach=line,
                hints=hints(known, catalog_guidance()) if known.attempts else "",
                circular=_circular(known, line),
                began=now,
            )

    def ended(self, attempt: Attempt, found: Diagnosis | None, *, tree: str, commit: str) -> Advice:
        """Record how an attempt ended, and decide; `Attempt.failed` and `Attempt.passed` call this."""
        name = attempt.task
        with self._lock, self._ledger.held() as state:
            current, under_way = state.tasks[name].current, isinstance(state.tasks[name].last, SessionStarted)
            if not under_way or (current.number, current.sessions) != (attempt.number, attempt.session):
                raise BadUsage(
                    f"Attempt {attempt.number} at task {name} has ended already.", hint="Begin another one: attempt(…)."
                )
            now = self._clock()
            failure = self._failure(found, now) if found is not None else None
            tail = failure.detail if failure else ""
            code = found.evidence.exit_code if found is not None else 0
            ended = Ended(ending="exited", exit_code=code, seconds=max(now - attempt.began, 0.0), tail=tail)
            claim = "none" if failure else "done"
            outcome = Outcome(ended=ended, claim=claim, approach=attempt.approach)  # type: ignore[arg-type]  # one of two
            verdict = Verdict(status="fail" if failure else "pass", tree=tree, base=current.base)
            for event in (
                SessionEnded(task=name, outcome=outcome),
                Verified(task=name, verdict=verdict),
                Classified(task=name, failure=failure),
            ):
                self._ledger.add(event, now)
            self._decide(state, name, now, commit)
            return advice(state.tasks[name], found, catalog_guidance(), now)

    def _decide(self, state: RunState, name: str, now: float, commit: str) -> None:
        known = replace(
            history(state, name, self._agents, now), green_base=bool(state.tasks[name].current.base)
        )  # whoever names a checkpoint says that it passed
        decision = decide(state.tasks[name].current.failure, known, self._policy)
        self._ledger.add(Decided(task=name, decision=decision), now)
        action = decision.action
        added = (_fix_task(state.tasks[name].task, action),) if isinstance(action, Fix) else ()
        landed = (commit or None) if isinstance(action, Accept) else None
        self._ledger.add(Acted(task=name, action=action, commit=landed, added=added), now)

    def _failure(self, found: Diagnosis, now: float) -> Failure:
        """Return the failure as it is kept: no secret in it, and no more than its end."""
        judged = failed_call(found)
        until = open_rulebook(self._cwd).resets_at(found, now) if found.resets else None
        return replace(
            judged,
            summary=self._redact(judged.summary),
            detail=self._redact(shown(judged.detail))[-TAIL_CHARS:],
            resets_at=until,
        )

    def diagnose(self, evidence: Evidence, kind: Kind | None = None) -> Diagnosis:
        """Say how something failed that did fail, whatever its output looks like."""
        found = open_rulebook(self._cwd).diagnose(evidence)
        if found is None:
            lines = f"{evidence.stdout}\n{evidence.stderr}".strip().splitlines()
            last = one_line(lines[-1], TAIL_CHARS) if lines else ""
            found = Diagnosis(kind=Kind.UNKNOWN, confidence=0.3, message=last, evidence=evidence)
        return replace(found, kind=kind) if kind is not None else found

    # --- looking back ----------------------------------------------------------------------------------------------

    def history(self, task: str) -> tuple[Past, ...]:
        """Return the attempts at a task, oldest first."""
        with self._lock, self._ledger.held() as state:
            known = state.tasks.get(task)
            return tuple(map(past, known.attempts)) if known is not None else ()

    def hints(self, task: str) -> str:
        """Return what to tell the next attempt: what was tried, how it failed, what to do differently."""
        with self._lock, self._ledger.held() as state:
            known = state.tasks.get(task)
            return hints(known, catalog_guidance()) if known is not None and known.attempts else ""

    def circular(self, task: str, approach: str) -> str:
        """Warn of an approach that is like those that failed before; empty if it is not."""
        with self._lock, self._ledger.held() as state:
            known = state.tasks.get(task)
            return _circular(known, approach) if known is not None else ""

    def last(self, task: str) -> Advice | None:
        """Return the last decision about a task; None before there is one."""
        with self._lock, self._ledger.held() as state:
            known = state.tasks.get(task)
            if known is None or not known.attempts or known.current.decision is None:
                return None
            return advice(known, None, catalog_guidance(), self._clock())

    def report(self, task: str) -> str:
        """Write what a person should know about a task: attempts, error, files, and the one question."""
        with self._lock, self._ledger.held() as state:
            return stuck_report(self._task(state, task), supervised=False)

    @property
    def stuck(self) -> tuple[str, ...]:
        """The tasks that wait for a person."""
        with self._lock, self._ledger.held() as state:
            return tuple(name for name, task in state.tasks.items() if task.status == "stuck")

    # --- a person's part -------------------------------------------------------------------------------------------

    def ask(self, task: str, question: str) -> str:
        """Leave a question for a person: the task is stuck until `reset`. Return the report to show."""
        with self._lock, self._ledger.held() as state:
            now, text = self._clock(), one_line(self._redact(question), 1000)
            if task not in state.tasks:
                self._ledger.add(_with_task(state, Task(id=task, title=task)), now)
            if not state.tasks[task].attempts:
                self._ledger.add(AttemptStarted(task=task, attempt=1, agent="", base=state.tip, slot=0), now)
            self._ledger.add(Noted(text=f"Asked: {text}", task=task), now)
            self._ledger.add(Acted(task=task, action=Escalate(question=text)), now)
            return stuck_report(state.tasks[task], supervised=False)

    def reset(self, task: str, hint: str = "") -> None:
        """Give a task a fresh budget; the hint, a person's answer, stands in the next attempt's hints."""
        with self._lock, self._ledger.held() as state:
            self._task(state, task)
            request = Request(id=state.seen_request + 1, verb="retry", task=task, text=one_line(hint, 1000))
            self._ledger.add(Operated(request=request, reopened=(task,)), self._clock())

    def fix_task(
        self, original: Task, error: str, attempted_fix: str = "", kind: Kind | None = None
    ) -> tuple[str, str]:
        """Return id and Markdown of a task that repairs this one, within the profile's limits."""
        with self._lock, self._ledger.held() as state:
            now = self._clock()
            if original.id not in state.tasks:
                self._ledger.add(_with_task(state, original), now)
            lineage = state.lineage(original.id)
            if (limit := exceeded_fix_limit(lineage, self._policy.limits)) is not None:
                raise BadUsage(limit[1], hint="Ask a person: more repairs of repairs will not help.")
            fix = Fix(id=lineage.next_id, error=error, attempted_fix=attempted_fix or "No fix attempted", kind=kind)
            if not state.tasks[original.id].attempts:
                self._ledger.add(AttemptStarted(task=original.id, attempt=1, agent="", base=state.tip, slot=0), now)
            self._ledger.add(Acted(task=original.id, action=fix, added=(_fix_task(original, fix),)), now)
            return fix.id, fix_block(original, fix)

    # --- remedies --------------------------------------------------------------------------------------------------

    def remedy(
        self,
        failure: Diagnosis | None,
        *,
        tools: Collection[Any] | Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        task_type: TaskType = "",
    ) -> Remedy:
        """Return the ways out of a failed call, in the order that experience gives them; `tools` are the caller's."""
        call = make_call(failure.evidence if failure else Evidence(), tools=tools, args=args, schema=schema)
        failure = judged(failure, call, self._cwd)
        if failure is None:
            return Remedy(NOTHING_FAILED, None)
        planner = open_remedies(self._cwd, task_type)._replace(lessons=self._learned())
        made = planner.plan(failure, call, tools)
        with self._lock:
            self._plans = [*self._plans[-9:], made]
        return Remedy(plan_json(made), made)

    def worked(self, step: Strategy | str, *, seconds: float = 0.0, cost: float = 0.0) -> None:
        """Learn that a way out worked, and what it took and cost in dollars where that is known."""
        self._learn(step, worked=True, seconds=seconds, cost=cost)

    def failed(self, step: Strategy | str, *, seconds: float = 0.0, cost: float = 0.0) -> None:
        """Learn that a way out did not work, and what it took and cost in dollars where that is known."""
        self._learn(step, worked=False, seconds=seconds, cost=cost)

    def _learn(self, step: Strategy | str, *, worked: bool, seconds: float, cost: float) -> None:
        if not all(math.isfinite(number) and number >= 0 for number in (seconds, cost)):
            raise BadUsage("Seconds and cost are numbers from 0 on.", hint="Leave out what is not known.")
        name = step if isinstance(step, str) else step.strategy
        with self._lock:
            found = (one for one in reversed(self._plans) if name in {way.strategy for way in one.strategies})
            plan = next(found, None)
            if plan is None:
                raise BadUsage(f"No remedy named {name!r} was proposed.", hint="Ask for remedies first: remedy(…).")

            def learned(lessons: Lessons) -> Lessons:
                way = next(one for one in plan.strategies if one.strategy == name)
                return lessons.after(
                    plan.chain, name, plan.context, worked=worked, tool=plan.tool, steps=len(way.steps),
                    seconds=seconds, cost=cost,
                )  # fmt: skip

            if self._lessons_file is not None:
                change_lessons(self._lessons_file, learned)
            else:
                self._lessons = learned(self._lessons)

    def _learned(self) -> Lessons:
        return read_lessons(self._lessons_file) if self._lessons_file is not None else self._lessons

    def _task(self, state: RunState, name: str) -> TaskState:
        if name not in state.tasks:
            raise BadUsage(f"Nothing was recorded of task {name[:80]}.", hint="Begin with attempt(task, approach).")
        return state.tasks[name]


def _with_task(state: RunState, task: Task) -> PlanChanged:
    """Take in a task; files are named after it, so its name must be one."""
    if not TASK_ID.fullmatch(task.id):
        raise BadUsage(f"{task.id[:80]!r} is no name of a task.", hint="Use letters, digits and - _ . as in 1.3.")
    return PlanChanged(tasks=(*(one.task for one in state.tasks.values()), task), reopened=())


def _fix_task(original: Task, fix: Fix) -> Task:
    return Task(id=fix.id, title=one_line(fix.error, 200), body=fix_block(original, fix), fixes=original.id)


def _last_tree(task: TaskState) -> str | None:
    return task.current.verdict.tree or None if task.attempts and task.current.verdict else None


def _circular(task: TaskState, approach: str) -> str:
    """Compare an approach with those that failed."""
    failed = [footprint(one) for one in task.tries if one.failure is not None and one.failure.charged]
    signal = (
        repeated_approach(Footprint(attempt=len(task.attempts) + 1, approach=approach), failed) if approach else None
    )
    return signal.sentence if signal is not None else ""
