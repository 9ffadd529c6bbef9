"""Edge: Supervise one run from the claim to its end: begin or take up, work, bring home, record how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from unstuck.engine.context import Kit, Projections
from unstuck.engine.pool import ALL_DONE, STUCK, Pool
from unstuck.engine.requests import APPROVE, Operations
from unstuck.engine.resume import begin, note_change, note_ticks, start_from, take_edits, take_plan, take_up
from unstuck.engine.stops import Stopper
from unstuck.engine.verification import look_before
from unstuck.git.protocols import Home
from unstuck.journal.run_state import RunState
from unstuck.journal.store import Journal
from unstuck.model.event import BroughtHome, Entry, Inherited, Operated, RunEnded, RunStarted
from unstuck.model.landing import AlreadyMerged, FastForward, Merge, NotPossible, run_branch
from unstuck.model.plan import Plan
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, Verdict
from unstuck.verify.checks import NotSetUp, Site, check_on
from unstuck.verify.probing import landed, lasting_checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a supervisor finds when it starts."""

    entries: tuple[Entry, ...]
    """The run's events so far; none for a new run."""
    plan: Plan
    started: RunStarted
    """How a run of the plan begins here and now."""
    accept_plan_change: bool = False
    start_from: str | None = None
    """Do this task and all that follow it in the plan, whatever was done before."""
    inherited: Inherited | None = None
    """What a predecessor recorded for this plan."""
    warnings: tuple[str, ...] = ()
    """What a person should know before the first task starts."""
    dead_owner: int | None = None
    """The pid of the supervisor whose run this was."""
    awaits_approval: bool = False
    """The plan's own state file says that its loop yields to the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """All parts of one run, put together."""

    kit: Kit
    journal: Journal
    projections: Projections
    home: Home
    stopper: Stopper

    def work(self, situation: Situation) -> None:
        """Run the plan, or what is left of it, to the end."""
        kit = self.kit
        # Workers of a fleet may be on this machine, too: their sessions go on.
        leftovers = kit.processes.end_leftovers(f"UNSTUCK_RUN={kit.run}", but="UNSTUCK_WORKER=1")
        if situation.dead_owner is not None and situation.entries:
            kit.record.note(
                f"Took the run over from pid {situation.dead_owner}, which died; {leftovers} processes of it were still there and were ended."
            )
        if situation.entries:
            self._take_up(situation)
        else:
            begin(kit.record, kit.workspace, situation.started)
            if situation.inherited is not None:
                kit.record(situation.inherited)
            for warning in situation.warnings:
                kit.record.note(warning)
            start_from(self.operations, situation.start_from, new=True)
        if held := self._held(situation):
            kit.record(RunEnded(exit_code=STUCK, reason=held))
            self.projections.write(*kit.record.take_changed())
            return
        look_before(kit)
        pool = Pool(
            kit=kit,
            journal=self.journal,
            projections=self.projections,
            operations=self.operations,
            stopper=self.stopper,
            parallel=situation.started.options.parallel,
        )
        try:
            self._finish(pool, pool.run())
        finally:
            pool.project()

    def _held(self, situation: Situation) -> str:
        """Say why nothing may begin before a person's word; empty if all may."""
        state = self.kit.record.state
        if situation.awaits_approval:
            return f"The plan's .ralph-state.json says awaitingApproval. {APPROVE}"
        wanted = state.started is not None and "plan" in state.started.options.approve
        return f"The plan waits for your approval. {APPROVE}" if wanted and not state.approved else ""

    def answer(self) -> dict[int, Operated]:
        """Carry out all waiting requests; return the answers by request."""
        record = self.kit.record
        answers = {
            request.id: self.operations.carry_out(request, live=False)
            for request in self.journal.requests(record.state.seen_request)
        }
        self.projections.write(*record.take_changed())
        return answers

    @property
    def operations(self) -> Operations:
        return Operations(
            record=self.kit.record, journal=self.journal, workspace=self.kit.workspace, stopper=self.stopper
        )

    def _take_up(self, situation: Situation) -> None:
        record = self.kit.record
        take_plan(self.operations, situation.plan, self.kit.redactor, accepted=situation.accept_plan_change)
        edited = take_edits(self.operations, tuple(self.projections.edits(self.kit.run, situation.entries)))
        if situation.dead_owner is None:  # a supervisor that died may not have come to the boxes
            note_ticks(record, situation.plan, edited)
        start_from(self.operations, situation.start_from, new=False)
        head = situation.started.base
        take_up(record, self.kit.workspace, self.operations, user_head=head, at=self.kit.clock.now())

    def _finish(self, pool: Pool, ending: RunEnded) -> None:
        record = self.kit.record
        pool.project()  # the plan's ticks are part of what comes home
        note_change(record, self.kit.plan.read(), self.kit.redactor)
        if ending.exit_code == ALL_DONE:
            record(bring_home(self.kit, self.home, self.projections))
        record(ending)


MERGED_TREE = "merged"
"""The log's name for checks on the merged tree."""
MOST_NAMES = 10


def bring_home(kit: Kit, home: Home, projections: Projections) -> BroughtHome:
    """Do what the commit mode says; where it cannot be done safely, say why and what to type."""
    brought, unknown = _brought(kit, home, projections), _unknown(kit)
    return replace(brought, text=f"{brought.text} {unknown}") if unknown else brought


def _brought(kit: Kit, home: Home, projections: Projections) -> BroughtHome:
    started = kit.record.state.started
    assert started is not None
    mode, branch = started.options.commit, run_branch(kit.run)
    if not any(task.commit for task in kit.record.state.tasks.values()):
        return BroughtHome(commit=None, text=_with_plan(kit, home, projections, "There was nothing to commit."))
    if mode == "message-only":
        return BroughtHome(
            commit=None, text=f"The commits are on {branch}; make them yours with: sh {home.write_script()}"
        )
    way = home.plan_merge(message=_message(kit.record.state), at=kit.record.state.began)
    if isinstance(way, Merge) and (red := _red_together(kit, way.commit, way.tree)):
        way = NotPossible(reason=f"Merged with your new commits, `{red}` fails.", command=f"git merge {branch}")
    elif isinstance(way, FastForward) and (red := _red_together(kit, *_end(kit))):
        reason = f"`{red}` held when its task landed, and fails with all that landed after it."
        way = NotPossible(reason=reason, command=f"git merge {branch}")
    if isinstance(way, FastForward | Merge):
        way = home.apply_merge(way.commit)
    if isinstance(way, AlreadyMerged):
        name = (started.branch or "").removeprefix("refs/heads/")
        text = _with_plan(kit, home, projections, f"Everything is on your branch {name}.")
        return BroughtHome(commit=way.commit, text=text)
    return BroughtHome(commit=None, text=f"The work is on {branch}. {way.reason} To bring it home: {way.command}")


def _unknown(kit: Kit) -> str:
    """Say which tasks a person wrote into the plan while the run worked: it knows nothing of them."""
    new = [task.shown for task in kit.plan.read().tasks if task.id not in kit.record.state.tasks and not task.done]
    more = f" and {len(new) - MOST_NAMES} more" if len(new) > MOST_NAMES else ""
    told = f"Written into the plan meanwhile, and not done: {', '.join(new[:MOST_NAMES])}{more}."
    return f"{told} Run the plan again to have them done." if new else ""


def _end(kit: Kit) -> tuple[str, str]:
    """Return the commit at which the run's branch stands, and its tree."""
    tip = kit.workspace.tip()
    return tip, kit.workspace.tree_of(tip)


def _red_together(kit: Kit, commit: str, tree: str) -> str:
    """Run every check of the run on what comes home; return the first that fails. The last task's were run on it."""
    checks: dict[str, tuple[str, Check]] = {}
    for name, _ in landed(kit):
        verdict = kit.record.state.tasks[name].current.verdict
        if verdict is None or verdict.tree != tree:
            checks |= {check.command: (name, check) for check in lasting_checks(kit, name)}
    if any(verdict is not None and verdict.tree != tree for verdict in _verdicts(kit)):
        checks |= {gate.command: (MERGED_TREE, gate) for gate in kit.gates}
    try:
        for name, check in checks.values():
            site = Site(kit=kit, name=name, slot=kit.spare)
            if check_on(site, check, commit).status == "fail" and _was_green(kit, check):
                return check.command
    except NotSetUp as error:
        return error.failure.summary
    return ""


def _was_green(kit: Kit, check: Check) -> bool:
    """Whether a check held by itself when its task landed; a gate that was red all along tells nothing new."""
    verdicts = _verdicts(kit)
    command = kit.redactor.text(check.command)
    results = [one for verdict in verdicts if verdict for one in verdict.results if one.command == command]
    return all(one.status == "pass" and not one.excused_because for one in results)


def _verdicts(kit: Kit) -> list[Verdict | None]:
    return [task.current.verdict for task in kit.record.state.tasks.values() if task.commit and task.attempts]


def _message(state: RunState) -> str:
    """Write the text of a single or a merge commit."""
    assert state.started is not None
    rows = [f"- {task.task.id} {one_line(task.task.subject, 70)}" for task in state.tasks.values() if task.commit]
    title = one_line(state.started.title, 72) or f"Merge {run_branch(state.started.run)}"
    return "\n".join([title, "", *rows]) + "\n"


def _with_plan(kit: Kit, home: Home, projections: Projections, text: str) -> str:
    """Commit what we wrote into the plan as the last commit, where HEAD has it; one that somebody is writing is theirs."""
    state = kit.record.state
    if state.started is None or not state.started.plan_files:
        return text
    if kit.plan.read().problems:
        return f"{text} The plan cannot be read as it lies there now, so it is neither ticked nor committed."

    def redone(contents: Mapping[str, bytes]) -> dict[str, bytes]:
        done = projections.redone(state, {PurePath(path).name: content for path, content in contents.items()})
        return {path: done[PurePath(path).name] for path in contents if PurePath(path).name in done}

    committed = home.commit_plan(state.started.plan_files, redone, message="Tick the plan\n", at=kit.clock.now())
    return f"{text} {committed.reason}" if isinstance(committed, NotPossible) else text
