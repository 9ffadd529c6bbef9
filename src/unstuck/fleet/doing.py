"""Edge: Do one job in a worker's own clone: fetch what it begins with, run it as a run on one machine would, send the work."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from unstuck.errors import UnstuckError
from unstuck.fleet.jobs import Job
from unstuck.fleet.remote import Moved, Remote, tip_ref, worked
from unstuck.fleet.wire import Report, Wanted, read_wanted
from unstuck.git import merge_trees
from unstuck.journal import Ended, Outcome, Redactor
from unstuck.line import Bench, Here, Interrupted, redacted
from unstuck.orders import SessionDone, SessionOrder, Subject
from unstuck.ports import Stop
from unstuck.verify import NotSetUp

LOG_BYTES = 64 * 1024
STOPPED = Ended(ending="stopped", tail="The run was stopped before the session began.")


class BenchOf(Protocol):
    """Gives the workbench of a run."""

    def __call__(self, run: str, *, verifying: bool) -> Bench:
        """Return it; for verifying, with what the run's journal says by now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What a worker does jobs with."""

    bench_of: "BenchOf"
    remote: Remote
    redactor: Redactor

    def do(self, job: Job, slot: int, stop: Stop, seen: Callable[[str], None], *, knows: bool) -> Report:
        """Do a job, and leave no secret of this machine in what is told; `knows`: the slot is its last session's."""
        report = self._done(job, slot, stop, seen, knows=knows)
        return replace(redacted(replace(report, log=""), self.redactor), log=report.log)

    def _done(self, job: Job, slot: int, stop: Stop, seen: Callable[[str], None], *, knows: bool) -> Report:
        """Do a job; whatever is wrong with this machine is told, and the job is for another one."""
        try:
            wanted = read_wanted(job.body)
            tip = ((tip_ref(job.run), wanted.onto),) if wanted.onto else ()
            self.remote.fetch((wanted.fetch, wanted.begin), *tip)
            bench = self.bench_of(job.run, verifying=wanted.subject is not None)
            bench = replace(bench, stop=stop, seen=lambda _task, line: seen(line))
            if wanted.subject is not None:
                if wanted.onto and merge_trees(self.remote.git, wanted.onto, wanted.begin) != wanted.subject.tree:
                    return Report()  # another git merges in another way: it is to be sent as it is
                return self._verified(bench, wanted.subject, slot, stop)
            assert wanted.session is not None
            order = replace(wanted.session, slot=slot, place="")
            if not knows:  # the agent's own session is on another machine, or belongs to another folder
                order = replace(order, resume="", word="")
            return self._sat(bench, wanted, order, stop)
        except UnstuckError as error:
            return Report(fault=error.message)
        except Exception as error:  # noqa: BLE001  # a thread that dies in silence would leave its job at work for ever
            return Report(fault=f"{type(error).__name__}: {error}")

    def _verified(self, bench: Bench, subject: Subject, slot: int, stop: Stop) -> Report:
        try:
            return Report(verdict=Here(bench).verify(subject, slot, stop))
        except NotSetUp as error:
            return Report(failure=error.failure)
        except Interrupted:
            return Report(fault="It was stopped.")

    def _sat(self, bench: Bench, wanted: Wanted, order: SessionOrder, stop: Stop) -> Report:
        """Run a session. Its work is sent before anybody is told, so that a worker that dies in between has lost nothing."""
        log = bench.layout.log(order.task)
        before = _size(log)
        bench.workspace.prepare(order.slot, order.base, order.tree)
        done = _done(bench, order, stop)
        if order.probe:
            return Report(session=done, log=_since(log, before))
        tree = bench.workspace.tree(order.slot, order.base)
        done = replace(done, notes=(*done.notes, *tree.notes))
        commit = self.remote.commit(tree.id, order.base, f"{worked(order.session)}of attempt {order.attempt}\n")
        try:
            self.remote.put(wanted.ref, commit, wanted.expected)
        except Moved:
            return Report(fault="Its place was given to a later session: it came too late.")
        return Report(session=done, commit=commit, tree=tree.id, log=_since(log, before))


def _done(bench: Bench, order: SessionOrder, stop: Stop) -> SessionDone:
    here = Here(bench)
    try:
        failure = None if order.begun else here.ready(order.task, order.slot)
    except Interrupted:
        return SessionDone(outcome=Outcome(ended=STOPPED))
    if failure is None:
        return here.run(order, stop)
    return SessionDone(outcome=Outcome(ended=Ended(ending="not_started", tail=failure.summary)), failure=failure)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _since(log: Path, start: int) -> str:
    """Return the end of what was printed since then."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(start, _size(log) - LOG_BYTES))
        return file.read().decode(errors="replace")
