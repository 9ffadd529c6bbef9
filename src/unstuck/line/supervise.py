"""Supervise one run from the claim to its end: begin or take up, work, bring home, record how it ended."""

from dataclasses import dataclass

from unstuck.journal import Entry, Inherited, Operated, Options, RunEnded, RunStarted
from unstuck.line.homecoming import bring_home
from unstuck.line.operate import Operations
from unstuck.line.parts import Bench
from unstuck.line.pool import ALL_DONE, LIMIT, Pool
from unstuck.line.resume import begin, note_change, note_ticks, start_from, take_edits, take_plan, take_up
from unstuck.line.schedule import settled
from unstuck.line.stopping import Stopper
from unstuck.plans import Plan
from unstuck.ports import Home, Journal, Projections


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a supervisor finds when it starts."""

    entries: tuple[Entry, ...]
    """The run's events so far; none for a new run."""
    plan: Plan
    plan_files: tuple[str, ...]
    head: str
    branch: str | None
    options: Options
    accept_plan_change: bool = False
    start_from: str | None = None
    """Do this task and all that follow it in the plan, whatever was done before."""
    inherited: Inherited | None = None
    """What a predecessor recorded for this plan."""
    warnings: tuple[str, ...] = ()
    """What a person should know before the first task starts."""
    dead_owner: int | None = None
    """The pid of the supervisor whose run this was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """All parts of one run, put together."""

    bench: Bench
    journal: Journal
    projections: Projections
    home: Home
    stopper: Stopper

    def work(self, situation: Situation) -> None:
        """Run the plan, or what is left of it, to the end."""
        bench, options = self.bench, situation.options
        leftovers = bench.processes.end_leftovers(f"UNSTUCK_RUN={bench.run}")
        if situation.dead_owner is not None and situation.entries:
            bench.record.note(
                f"Took the run over from pid {situation.dead_owner}, which died; {leftovers} processes of it were still there and were ended."
            )
        if situation.entries:
            self._take_up(situation)
        else:
            begin(bench.record, bench.workspace, _started(bench.run, situation))
            if situation.inherited is not None:
                bench.record(situation.inherited)
            for warning in situation.warnings:
                bench.record.note(warning)
            start_from(self.operations, situation.start_from, new=True)
        pool = Pool(
            bench=bench,
            journal=self.journal,
            projections=self.projections,
            operations=self.operations,
            stopper=self.stopper,
            parallel=options.parallel,
        )
        try:
            self._finish(pool, pool.run())
        finally:
            pool.project()

    def answer(self) -> dict[int, Operated]:
        """Carry out all waiting requests; return the answers by request."""
        record = self.bench.record
        answers = {
            request.id: self.operations.carry_out(request, live=False)
            for request in self.journal.requests(record.state.seen_request)
        }
        self.projections.write(*record.take_changed())
        return answers

    @property
    def operations(self) -> Operations:
        return Operations(
            record=self.bench.record, journal=self.journal, workspace=self.bench.workspace, stopper=self.stopper
        )

    def _take_up(self, situation: Situation) -> None:
        record = self.bench.record
        take_plan(self.operations, situation.plan, self.bench.redactor, accepted=situation.accept_plan_change)
        take_edits(self.operations, tuple(self.projections.edits(self.bench.run, situation.entries)))
        if situation.dead_owner is None:  # a supervisor that died may not have come to the boxes
            note_ticks(record, situation.plan)
        start_from(self.operations, situation.start_from, new=False)
        take_up(record, self.bench.workspace, self.operations, user_head=situation.head, at=self.bench.clock.now())

    def _finish(self, pool: Pool, ending: RunEnded) -> None:
        record = self.bench.record
        pool.project()  # the plan's ticks are part of what comes home
        note_change(record, self.bench.plan.read(), self.bench.redactor)
        if settled(record.state) and self.stopper.exit_code in (
            ALL_DONE,
            LIMIT,
        ):  # a person who stops it wants no merge now
            record(bring_home(self.bench, self.home))
        record(ending)


def _started(run: str, situation: Situation) -> RunStarted:
    plan = situation.plan
    return RunStarted(
        run=run,
        plan=plan.path,
        format=plan.format,
        base=situation.head,
        branch=situation.branch,
        options=situation.options,
        tasks=tuple(plan.tasks),
        title=plan.title,
        plan_files=situation.plan_files,
    )
