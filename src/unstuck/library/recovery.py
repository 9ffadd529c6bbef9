"""`unstuck.Recovery`, the recovery manager for a loop that the caller runs."""

import math
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unstuck.app.remedy_plan import NOTHING_FAILED, Remedy, judged, make_call, open_remedies
from unstuck.diagnosis.classifying import call_failure
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rule_files import catalog_guidance
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.journal.run_state import RunState
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import TaskState
from unstuck.library.advice import Advice, Attempt, Past, advice_of, past_attempt
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
from unstuck.reports.briefs import hints
from unstuck.reports.questions import stuck_report

TAIL_CHARS, APPROACH_CHARS = 4000, 300
SAME_ATTEMPT = (Stage.EXECUTE, Stage.WAIT)
"""Stages after which the same attempt continues in a new session."""


class Recovery:
    """A recovery manager for a loop that the caller runs.

    It records attempts, decides what comes after each, and learns which remedies work. The same history gives the same
    decisions. With a `path`, everything is kept in that file, which several processes can share.
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
        if path is not None:  # `unstuck remedy` and the hook use the same file in a folder
            self._lessons_file = lessons_path(self._cwd) if self._cwd else Path(path).with_suffix(".remedies.json")
        self._lessons = Lessons()
        self._plans: list[Plan] = []
        with self._lock, self._ledger.held() as state:
            if state.started is None:
                options = Options(agents=self._agents, profile=profile)
                begun = RunStarted(run="recovery", plan="", format="", base="", branch=None, options=options, tasks=())
                self._ledger.add(begun, clock())

    def attempt(
        self, task: str, approach: str = "", *, title: str = "", agent: str = "", checkpoint: str = ""
    ) -> Attempt:
        """Begin an attempt at a task, or a new session of the same attempt after `continue` and `wait`.

        `approach` is one line on how to do it. `checkpoint` is the last commit that passed.
        """
        with self._lock, self._ledger.held() as state:
            now = self._clock()
            if task not in state.tasks:
                self._ledger.add(_with_task(state, Task(id=task, title=one_line(title, 200) or task)), now)
            task_state = state.tasks[task]
            same = bool(task_state.attempts) and task_state.status != "stuck" and task_state.stage in SAME_ATTEMPT
            if not same:
                number, agent_name = (
                    len(task_state.attempts) + 1,
                    agent or task_state.agent or (self._agents or ("",))[0],
                )
                begun = AttemptStarted(
                    task=task,
                    attempt=number,
                    agent=agent_name,
                    base=checkpoint or state.tip,
                    slot=0,
                    tree=_last_tree(task_state),
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
                hints=hints(task_state, catalog_guidance()) if task_state.attempts else "",
                circular=_circular(task_state, line),
                began=now,
            )

    def ended(self, attempt: Attempt, diagnosis: Diagnosis | None, *, tree: str, commit: str) -> Advice:
        """Record the end of an attempt and return the decision. `Attempt` calls this."""
        name = attempt.task
        with self._lock, self._ledger.held() as state:
            current, under_way = state.tasks[name].current, isinstance(state.tasks[name].last, SessionStarted)
            if not under_way or (current.number, current.sessions) != (attempt.number, attempt.session):
                raise BadUsage(
                    f"Attempt {attempt.number} at task {name} has ended already.", hint="Begin another one: attempt(…)."
                )
            now = self._clock()
            failure = self._failure(diagnosis, now) if diagnosis is not None else None
            tail = failure.detail if failure else ""
            code = diagnosis.evidence.exit_code if diagnosis is not None else 0
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
            return advice_of(state.tasks[name], diagnosis, catalog_guidance(), now)

    def _decide(self, state: RunState, name: str, now: float, commit: str) -> None:
        task_state = replace(
            history(state, name, self._agents, now), green_base=bool(state.tasks[name].current.base)
        )  # a checkpoint of the caller has passed
        decision = decide(state.tasks[name].current.failure, task_state, self._policy)
        self._ledger.add(Decided(task=name, decision=decision), now)
        action = decision.action
        added = (_fix_task(state.tasks[name].task, action),) if isinstance(action, Fix) else ()
        landed = (commit or None) if isinstance(action, Accept) else None
        self._ledger.add(Acted(task=name, action=action, commit=landed, added=added), now)

    def _failure(self, diagnosis: Diagnosis, now: float) -> Failure:
        """Return the failure to record: without secrets, with the end of the output only."""
        judged = call_failure(diagnosis)
        until = open_rulebook(self._cwd).resets_at(diagnosis, now) if diagnosis.resets else None
        return replace(
            judged,
            summary=self._redact(judged.summary),
            detail=self._redact(shown(judged.detail))[-TAIL_CHARS:],
            resets_at=until,
        )

    def diagnose(self, evidence: Evidence, kind: Kind | None = None) -> Diagnosis:
        """Return the diagnosis of a failed call, even if its output shows no failure."""
        diagnosis = open_rulebook(self._cwd).diagnose(evidence)
        if diagnosis is None:
            lines = f"{evidence.stdout}\n{evidence.stderr}".strip().splitlines()
            last = one_line(lines[-1], TAIL_CHARS) if lines else ""
            diagnosis = Diagnosis(kind=Kind.UNKNOWN, confidence=0.3, message=last, evidence=evidence)
        return replace(diagnosis, kind=kind) if kind is not None else diagnosis

    def history(self, task: str) -> tuple[Past, ...]:
        """Return the attempts at a task, the oldest first."""
        with self._lock, self._ledger.held() as state:
            task_state = state.tasks.get(task)
            return tuple(map(past_attempt, task_state.attempts)) if task_state is not None else ()

    def hints(self, task: str) -> str:
        """Return a text for the next attempt: earlier attempts, their errors, what to change."""
        with self._lock, self._ledger.held() as state:
            task_state = state.tasks.get(task)
            return hints(task_state, catalog_guidance()) if task_state is not None and task_state.attempts else ""

    def circular(self, task: str, approach: str) -> str:
        """Return a warning if an approach is like earlier ones that failed, else an empty string."""
        with self._lock, self._ledger.held() as state:
            task_state = state.tasks.get(task)
            return _circular(task_state, approach) if task_state is not None else ""

    def last(self, task: str) -> Advice | None:
        """Return the last decision on a task, or None."""
        with self._lock, self._ledger.held() as state:
            task_state = state.tasks.get(task)
            if task_state is None or not task_state.attempts or task_state.current.decision is None:
                return None
            return advice_of(task_state, None, catalog_guidance(), self._clock())

    def report(self, task: str) -> str:
        """Return a report on a task for the user: attempts, error, files, question."""
        with self._lock, self._ledger.held() as state:
            return stuck_report(self._task(state, task), supervised=False)

    @property
    def stuck(self) -> tuple[str, ...]:
        """The tasks that wait for the user."""
        with self._lock, self._ledger.held() as state:
            return tuple(name for name, task in state.tasks.items() if task.status == "stuck")

    def ask(self, task: str, question: str) -> str:
        """Mark a task as stuck with a question to the user, and return the report to show."""
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
        """Reset the budget of a task. The hint of the user is part of the next attempt's hints."""
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

    def remedy(
        self,
        failure: Diagnosis | None,
        *,
        tools: Collection[Any] | Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        task_type: TaskType = "",
    ) -> Remedy:
        """Return the remedies for a failed call, ordered by experience. `tools` are those of the caller."""
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
        """Record that a remedy worked, with its duration and its cost in dollars if known."""
        self._learn(step, worked=True, seconds=seconds, cost=cost)

    def failed(self, step: Strategy | str, *, seconds: float = 0.0, cost: float = 0.0) -> None:
        """Record that a remedy did not work, with its duration and its cost in dollars if known."""
        self._learn(step, worked=False, seconds=seconds, cost=cost)

    def _learn(self, step: Strategy | str, *, worked: bool, seconds: float, cost: float) -> None:
        if not all(math.isfinite(number) and number >= 0 for number in (seconds, cost)):
            raise BadUsage("Seconds and cost are numbers from 0 on.", hint="Leave out what is not known.")
        name = step if isinstance(step, str) else step.strategy
        with self._lock:
            plan = next((plan for plan in reversed(self._plans) if _strategy(plan, name) is not None), None)
            if plan is None:
                raise BadUsage(f"No remedy named {name!r} was proposed.", hint="Ask for remedies first: remedy(…).")

            def learned(lessons: Lessons) -> Lessons:
                strategy = _strategy(plan, name)
                assert strategy is not None
                return lessons.after(
                    plan.chain, name, plan.context, worked=worked, tool=plan.tool, steps=len(strategy.steps),
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


def _strategy(plan: Plan, name: str) -> Strategy | None:
    return next((strategy for strategy in plan.strategies if strategy.strategy == name), None)


def _with_task(state: RunState, task: Task) -> PlanChanged:
    """Return the event that adds a task. Files are named after it, so its id must be a plain name."""
    if not TASK_ID.fullmatch(task.id):
        raise BadUsage(f"{task.id[:80]!r} is no name of a task.", hint="Use letters, digits and - _ . as in 1.3.")
    return PlanChanged(tasks=(*(other.task for other in state.tasks.values()), task), reopened=())


def _fix_task(original: Task, fix: Fix) -> Task:
    return Task(id=fix.id, title=one_line(fix.error, 200), body=fix_block(original, fix), fixes=original.id)


def _last_tree(task: TaskState) -> str | None:
    return task.current.verdict.tree or None if task.attempts and task.current.verdict else None


def _circular(task: TaskState, approach: str) -> str:
    """Return a warning if an approach is like those that failed, else an empty string."""
    failed = [footprint(attempt) for attempt in task.tries if attempt.failure is not None and attempt.failure.charged]
    if not approach:
        return ""
    signal = repeated_approach(Footprint(attempt=len(task.attempts) + 1, approach=approach), failed)
    return signal.sentence if signal is not None else ""
