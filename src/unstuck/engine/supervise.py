"""Supervise one run: begin or resume it, work, merge it back, record how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from unstuck.engine.context import RunContext, RunFiles, Services
from unstuck.engine.pool import ALL_DONE, STUCK, Pool
from unstuck.engine.requests import APPROVE, RequestHandler
from unstuck.engine.resume import begin, note_change, note_ticks, start_from, take_edits, take_plan, take_up
from unstuck.engine.stops import RunStop
from unstuck.engine.verification import check_base_before_first_session
from unstuck.git.merge_back import MergeBack
from unstuck.journal.run_state import RunState
from unstuck.journal.store import Journal
from unstuck.model.event import BroughtHome, Entry, Inherited, Operated, RunEnded, RunStarted
from unstuck.model.landing import AlreadyMerged, FastForward, Merge, NotPossible, run_branch
from unstuck.model.plan import Plan
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, Verdict
from unstuck.verify.checks import CleanCheckout, SetupFailed, check_on
from unstuck.verify.probing import landed, lasting_checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The run and the plan as a supervisor meets them at its start."""

    entries: tuple[Entry, ...]
    """The run's events so far; none for a new run."""
    plan: Plan
    started: RunStarted
    """The first event of a new run of this plan."""
    accept_plan_change: bool = False
    start_from: str | None = None
    """Do this task and all that follow it in the plan, whatever was done before."""
    inherited: Inherited | None = None
    """Attempts that a predecessor recorded for this plan."""
    warnings: tuple[str, ...] = ()
    """Notes for the user before the first task starts."""
    dead_owner: int | None = None
    """The pid of the supervisor whose run this was."""
    awaits_approval: bool = False
    """The plan's own state file says that its loop yields to the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """All parts of one run, put together."""

    context: RunContext
    services: Services
    journal: Journal
    run_files: RunFiles
    home: MergeBack
    stop: RunStop

    def work(self, situation: Situation) -> None:
        """Run the plan, or what is left of it, to the end."""
        services = self.services
        # Workers of a fleet may run on this machine as well, and their sessions go on.
        leftovers = services.processes.end_leftovers(f"UNSTUCK_RUN={services.checks.run_id}", but="UNSTUCK_WORKER=1")
        if situation.dead_owner is not None and situation.entries:
            services.recorder.note(
                f"Took the run over from pid {situation.dead_owner}, which died; {leftovers} processes of it were still there and were ended."
            )
        if situation.entries:
            self._resume(situation)
        else:
            begin(services.recorder, services.workspace, situation.started)
            if situation.inherited is not None:
                services.recorder.record(situation.inherited)
            for warning in situation.warnings:
                services.recorder.note(warning)
            start_from(self.requests, situation.start_from, new=True)
        if reason := self._waits_for_approval(situation):
            services.recorder.record(RunEnded(exit_code=STUCK, reason=reason))
            self.run_files.write(*services.recorder.take_changed())
            return
        check_base_before_first_session(services)
        pool = Pool(
            context=self.context,
            services=self.services,
            journal=self.journal,
            run_files=self.run_files,
            requests=self.requests,
            stop=self.stop,
            parallel=situation.started.options.parallel,
        )
        try:
            self._finish(pool, pool.run())
        finally:
            pool.write_run_files()

    def _waits_for_approval(self, situation: Situation) -> str:
        """Return why the run waits for the user's approval, or an empty string."""
        state = self.services.recorder.state
        if situation.awaits_approval:
            return f"The plan's .ralph-state.json says awaitingApproval. {APPROVE}"
        wanted = state.started is not None and "plan" in state.started.options.approve
        return f"The plan waits for your approval. {APPROVE}" if wanted and not state.approved else ""

    def answer(self) -> dict[int, Operated]:
        """Carry out all waiting requests. Return the answers by request id."""
        recorder = self.services.recorder
        answers = {
            request.id: self.requests.carry_out(request, live=False)
            for request in self.journal.requests(recorder.state.seen_request)
        }
        self.run_files.write(*recorder.take_changed())
        return answers

    @property
    def requests(self) -> RequestHandler:
        return RequestHandler(
            recorder=self.services.recorder,
            journal=self.journal,
            workspace=self.services.workspace,
            stop_signal=self.stop,
        )

    def _resume(self, situation: Situation) -> None:
        recorder = self.services.recorder
        take_plan(self.requests, situation.plan, self.services.redactor, accepted=situation.accept_plan_change)
        edited = take_edits(self.requests, tuple(self.run_files.edits(self.context.run_id, situation.entries)))
        if situation.dead_owner is None:  # a supervisor that died may not have written the ticks
            note_ticks(recorder, situation.plan, edited)
        start_from(self.requests, situation.start_from, new=False)
        head = situation.started.base
        take_up(recorder, self.services.workspace, self.requests, user_head=head, at=self.services.clock.now())

    def _finish(self, pool: Pool, ending: RunEnded) -> None:
        recorder = self.services.recorder
        pool.write_run_files()  # the ticks are merged back with the work
        note_change(recorder, self.services.plan_file.read(), self.services.redactor)
        if ending.exit_code == ALL_DONE:
            recorder.record(merge_back(self.services, self.home, self.run_files))
        recorder.record(ending)


MERGED_TREE_LOG = "merged"
"""Name of the log of checks on the merged tree."""
MOST_NAMES = 10


def merge_back(services: Services, home: MergeBack, run_files: RunFiles) -> BroughtHome:
    """Merge the work into the user's branch as the commit mode says. Otherwise return why not and what to type."""
    result, note = _merge_work_back(services, home, run_files), _new_tasks_note(services)
    return replace(result, text=f"{result.text} {note}") if note else result


def _merge_work_back(services: Services, home: MergeBack, run_files: RunFiles) -> BroughtHome:
    started = services.recorder.state.started
    assert started is not None
    mode, branch = started.options.commit, run_branch(services.checks.run_id)
    if not any(task.commit for task in services.recorder.state.tasks.values()):
        return BroughtHome(commit=None, text=_with_plan(services, home, run_files, "There was nothing to commit."))
    if mode == "message-only":
        return BroughtHome(
            commit=None, text=f"The commits are on {branch}; make them yours with: sh {home.write_script()}"
        )
    way = home.plan_merge(message=_message(services.recorder.state), at=services.recorder.state.began)
    if isinstance(way, Merge) and (failing := _failing_check(services, way.commit, way.tree)):
        way = NotPossible(reason=f"Merged with your new commits, `{failing}` fails.", command=f"git merge {branch}")
    elif isinstance(way, FastForward) and (failing := _failing_check(services, *_tip_and_tree(services))):
        reason = f"`{failing}` held when its task landed, and fails with all that landed after it."
        way = NotPossible(reason=reason, command=f"git merge {branch}")
    if isinstance(way, FastForward | Merge):
        way = home.apply_merge(way.commit)
    if isinstance(way, AlreadyMerged):
        name = (started.branch or "").removeprefix("refs/heads/")
        text = _with_plan(services, home, run_files, f"Everything is on your branch {name}.")
        return BroughtHome(commit=way.commit, text=text)
    return BroughtHome(commit=None, text=f"The work is on {branch}. {way.reason} To bring it home: {way.command}")


def _new_tasks_note(services: Services) -> str:
    """Return a note about tasks that a person wrote into the plan while the run worked, or an empty string."""
    new = [
        task.shown
        for task in services.plan_file.read().tasks
        if task.id not in services.recorder.state.tasks and not task.done
    ]
    more = f" and {len(new) - MOST_NAMES} more" if len(new) > MOST_NAMES else ""
    sentence = f"Written into the plan meanwhile, and not done: {', '.join(new[:MOST_NAMES])}{more}."
    return f"{sentence} Run the plan again to have them done." if new else ""


def _tip_and_tree(services: Services) -> tuple[str, str]:
    """Return the tip of the run's branch and its tree."""
    tip = services.workspace.tip()
    return tip, services.workspace.tree_of(tip)


def _failing_check(services: Services, commit: str, tree: str) -> str:
    """Run every check of the run on the merged tree. Return the first that fails, or an empty string."""
    checks: dict[str, tuple[str, Check]] = {}
    for name, _ in landed(services.checks):
        verdict = services.recorder.state.tasks[name].current.verdict
        if verdict is None or verdict.tree != tree:
            checks |= {check.command: (name, check) for check in lasting_checks(services.checks, name)}
    if any(verdict is not None and verdict.tree != tree for verdict in _verdicts(services)):
        checks |= {gate.command: (MERGED_TREE_LOG, gate) for gate in services.checks.gates}
    try:
        for name, check in checks.values():
            site = CleanCheckout(context=services.checks, name=name, slot=services.checks.first_checkout_slot)
            if check_on(site, check, commit).status == "fail" and _passed_before(services, check):
                return check.command
    except SetupFailed as error:
        return error.failure.summary
    return ""


def _passed_before(services: Services, check: Check) -> bool:
    """Return whether a check passed whenever it ran. A gate that failed all along shows nothing new."""
    verdicts = _verdicts(services)
    command = services.redactor.text(check.command)
    results = [result for verdict in verdicts if verdict for result in verdict.results]
    same = [result for result in results if result.command == command]
    return all(result.status == "pass" and not result.excused_because for result in same)


def _verdicts(services: Services) -> list[Verdict | None]:
    return [task.current.verdict for task in services.recorder.state.tasks.values() if task.commit and task.attempts]


def _message(state: RunState) -> str:
    """Return the message of a single or a merge commit."""
    assert state.started is not None
    rows = [f"- {task.task.id} {one_line(task.task.subject, 70)}" for task in state.tasks.values() if task.commit]
    title = one_line(state.started.title, 72) or f"Merge {run_branch(state.started.run)}"
    return "\n".join([title, "", *rows]) + "\n"


def _with_plan(services: Services, home: MergeBack, run_files: RunFiles, text: str) -> str:
    """Commit the ticks of the plan as the last commit, if HEAD holds the plan. A plan that the user edits now is left alone."""
    state = services.recorder.state
    if state.started is None or not state.started.plan_files:
        return text
    if services.plan_file.read().problems:
        return f"{text} The plan cannot be read as it lies there now, so it is neither ticked nor committed."

    def redone(contents: Mapping[str, bytes]) -> dict[str, bytes]:
        done = run_files.redone(state, {PurePath(path).name: content for path, content in contents.items()})
        return {path: done[PurePath(path).name] for path in contents if PurePath(path).name in done}

    committed = home.commit_plan(state.started.plan_files, redone, message="Tick the plan\n", at=services.clock.now())
    return f"{text} {committed.reason}" if isinstance(committed, NotPossible) else text
