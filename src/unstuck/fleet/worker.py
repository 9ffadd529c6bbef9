"""Edge: A worker: it takes jobs as long as it has slots and its lease, does them in its own clone, and leaves in order.

Law: a worker that could not renew its lease ends its sessions by itself, because by then others have its jobs.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from unstuck.engine.local_dispatcher import LocalDispatcher
from unstuck.engine.recorder import redacted
from unstuck.engine.stops import TaskStop
from unstuck.fleet.jobs import WORK, Enlisted, Job
from unstuck.fleet.postgres import Link
from unstuck.fleet.remote import Moved, Remote, worked
from unstuck.fleet.wire import STOPPED, Report, Wanted, read, write
from unstuck.model.errors import Interrupted, UnstuckError
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.text import counted, one_line
from unstuck.process.command import Stop
from unstuck.redaction.redactor import Redactor
from unstuck.verify.checks import SetupFailed

BEATS = 4
"""So often a lease is renewed before it would be over."""
SAY_SECONDS = 1.0
REST_SECONDS = 30.0
"""How long a worker with a fault of its own takes nothing, so that it does not eat the whole queue."""
LIMITED = frozenset({"rate_limited", "billing", "overloaded"})
"""Ends that come from a provider, and that every other worker would meet as well."""
HOLD_SECONDS, MOST_HOLD_SECONDS = 60.0, 6 * 3600.0
"""How long everybody holds back where the provider does not say; and at most, because what says it is an agent's output."""
GRACE_SECONDS = 2.0
MOST_REMEMBERED = 1000
"""Of so many tasks a worker knows in which slot they were."""
LOG_BYTES = 64 * 1024
LATE = "Its place was given to a later session: it came too late."
"""The one fault that says nothing about this machine."""


@dataclass(slots=True)
class Lease:
    """When the store last heard us. Jobs look at it by themselves: whoever renews it may hang in a dead connection."""

    seconds: float
    renewed: float = 0.0

    @property
    def over(self) -> bool:
        return time.monotonic() - self.renewed > self.seconds


@dataclass(slots=True)
class AtWork:
    """A job that is being done."""

    job: Job
    slot: int
    knows: bool
    """The last session of its task was in this slot."""
    lease: Lease
    until: float | None = None
    """By when it must end."""
    stop: TaskStop = field(init=False)
    listens: bool = False
    """What the store knows of whether people's words reach it."""
    heard: int = 0
    """How many of them did."""
    said: float = 0.0
    asked: bool = False
    """Its supervisor wants it to end."""
    abandoned: bool = False
    """It is not ours any more."""

    def __post_init__(self) -> None:
        self.stop = TaskStop(self)

    def deadline(self) -> float | None:
        return 0.0 if self.lease.over else self.until


class Worker:
    """One worker process. `ask_to_leave` may be called from a signal."""

    def __init__(
        self, link: Link, enlisted: Enlisted, doing: "Doing", *, drain: float, told: Callable[[str], None]
    ) -> None:
        self._link, self._enlisted, self._doing, self._told = link, enlisted, doing, told
        self._drain = drain
        self._running: dict[int, AtWork] = {}
        self._last_slots: dict[tuple[str, str], int] = {}
        """In which slot a task was last worked on."""
        self._lease = Lease(enlisted.offer.lease)
        self._lock = threading.Lock()
        self._free = threading.Event()
        """A job has ended."""
        self._news = False
        """The store is to know at once how this worker is."""
        self._leave_at: float | None = None
        self._rests_until, self._fault = 0.0, ""

    def ask_to_leave(self) -> None:
        """Take nothing new and let what runs end within the drain time; asked again, end it at once."""
        now = time.monotonic()
        self._leave_at = now + self._drain if self._leave_at is None else now
        self._news = True
        self._link.wake()

    def work(self) -> None:
        """Work until asked to leave."""
        offer = self._enlisted.offer
        self._enlisted.enlist()
        self._told(
            f"Worker {self._enlisted.id} is ready: {counted(offer.slots, 'slot')}, agents {', '.join(offer.agents) or 'none'}."
        )
        beat = self._lease.renewed = time.monotonic()
        try:
            while self._leave_at is None or self._running:
                now = time.monotonic()
                if now - beat >= offer.lease / BEATS or self._news:
                    beat, self._news = now, False
                    if self._beat():
                        self._lease.renewed = now
                    if self._lease.over:
                        self._abandon("the store could not be reached for as long as its lease")
                self._hurry()
                self._tell_who_listens()
                taken = self._take_one() if self._may_take() else False
                if not taken and self._link.wait(self._pause(beat)) - {WORK}:
                    beat = 0.0  # somebody wants a job ended, or has something to say to it
        finally:
            self._abandon("it leaves")
            try:
                self._enlisted.leave()
            except UnstuckError:
                self._told("The store could not be told that the worker left; its lease runs out by itself.")
            self._link.close()

    def _pause(self, beat: float) -> float:
        """Say how long nothing needs to be done."""
        due = beat + self._enlisted.offer.lease / BEATS - time.monotonic()
        return max(0.0, min(due, 0.1 if self._leave_at is not None else 1.0))

    def _may_take(self) -> bool:
        ready = self._leave_at is None and time.monotonic() >= self._rests_until
        return ready and len(self._running) < self._enlisted.offer.slots

    def _beat(self) -> bool:
        """Renew the lease and learn what to end; False if the store could not be asked."""
        resting = time.monotonic() < self._rests_until
        state = "draining" if self._leave_at is not None else "resting" if resting else "ready"
        before = frozenset(self._running)
        try:
            pulse = self._enlisted.beat(state, self._fault if resting else "")
            if pulse is None:
                self._abandon("its lease was over, and others have its work")
                self._enlisted.enlist()
                return True
            # Only this thread takes jobs, and they stay in `_running` until they are reported.
            if unknown := pulse.mine.keys() - before:
                self._enlisted.lose(unknown)
        except UnstuckError as error:
            self._told(error.message)
            return False
        with self._lock:
            for number, task in self._running.items():
                if number in pulse.stop:
                    task.asked, task.until = True, 0.0
                if number in before and number not in pulse.mine:
                    task.abandoned, task.until = True, 0.0
                for hint in pulse.mine.get(number, ())[task.heard :]:
                    task.stop.send(hint)
                    task.heard += 1
        return True

    def _take_one(self) -> bool:
        try:
            job = self._enlisted.take()
        except UnstuckError:
            return False
        if job is None:
            return False
        with self._lock:
            used = {task.slot for task in self._running.values()}
            free = [number for number in range(self._enlisted.offer.slots) if number not in used]
            last = self._last_slots.pop((job.run, job.task), None)
            slot = last if last is not None and last in free else free[0]
            if job.kind == "session":
                self._last_slots[job.run, job.task] = slot
                for old in list(self._last_slots)[:-MOST_REMEMBERED]:
                    del self._last_slots[old]
            knows = job.prefers == self._enlisted.id and slot == last
            task = self._running[job.id] = AtWork(job=job, slot=slot, knows=knows, lease=self._lease)
        self._told(f"{job.kind} of task {one_line(job.task, 40)} in run {job.run}")
        threading.Thread(target=self._do, args=(task,), name=f"job {job.id}", daemon=True).start()
        with suppress(UnstuckError):  # who is not told looks by itself, a second later
            self._enlisted.wake_another()
        return True

    def _do(self, task: AtWork) -> None:
        try:
            report = self._doing.do(task, lambda line: self._say(task, line))
            if not (task.asked or task.abandoned):  # what was ended for its supervisor says nothing about this machine
                self._rest_after(report)
                report = _cut_short(report)
            if not task.abandoned:
                kept = self._enlisted.report(task.job, write(report), hold=_hold(report, task.job))
                if not kept:
                    self._told(f"The result of task {one_line(task.job.task, 40)} came too late and was refused.")
        except UnstuckError as error:
            self._told(error.message)
        finally:
            with self._lock:
                del self._running[task.job.id]
            self._free.set()
            self._link.wake()

    def _rest_after(self, report: Report) -> None:
        if report.fault not in {"", LATE} and report.session is None and self._leave_at is None:
            self._fault, self._rests_until = one_line(report.fault, 200), time.monotonic() + REST_SECONDS
            self._news = True
            self._told(f"This worker rests for {REST_SECONDS:.0f} s: {self._fault}")

    def _say(self, task: AtWork, line: str) -> None:
        now = time.monotonic()
        if now - task.said < SAY_SECONDS or task.abandoned:
            return
        task.said = now
        with suppress(UnstuckError):  # what an agent does is not worth an error
            self._enlisted.say(task.job, line)

    def _tell_who_listens(self) -> None:
        """Say which sessions hear what people say; not worth an error, either."""
        with self._lock:
            changed = [task for task in self._running.values() if task.stop.takes_messages != task.listens]
        for task in changed:
            task.listens = not task.listens
            with suppress(UnstuckError):
                self._enlisted.listen(task.job, listens=task.listens)

    def _hurry(self) -> None:
        """End what still runs when the time to leave is over."""
        if self._leave_at is not None:
            with self._lock:
                for task in self._running.values():
                    task.until = self._leave_at if task.until is None else min(task.until, self._leave_at)

    def _abandon(self, why: str) -> None:
        """End all jobs at once: nobody waits for them any more."""
        with self._lock:
            tasks = tuple(self._running.values())
            for task in tasks:
                task.abandoned, task.until = True, 0.0
        if tasks:
            self._told(f"{counted(len(tasks), 'job')} given up: {why}.")
        until = time.monotonic() + GRACE_SECONDS
        while self._running and time.monotonic() < until:
            self._free.wait(0.05)
            self._free.clear()


def _cut_short(report: Report) -> Report:
    """Say of a session that ended because its worker left that this is nobody's fault; others go on with it."""
    session = report.session
    if session is None or session.outcome.ended.ending != "stopped":
        return report
    ended = replace(session.outcome.ended, ending="worker_gone")
    return replace(report, session=replace(session, outcome=replace(session.outcome, ended=ended, claim="none")))


def _hold(report: Report, job: Job) -> tuple[str, float, str] | None:
    """Say whose provider lets nobody in, for how many seconds and why."""
    outcome: Outcome | None = report.session.outcome if report.session else None
    if outcome is None or outcome.end not in LIMITED or not job.agent:
        return None
    left = outcome.resets_at - time.time() if outcome.resets_at else HOLD_SECONDS
    seconds = min(max(1.0, left), MOST_HOLD_SECONDS)
    return (job.agent, seconds, f"{outcome.end} met by task {one_line(job.task, 40)}")


class DispatcherOf(Protocol):
    """Makes what does the jobs of a run on this machine."""

    def __call__(
        self, run: str, sheet: str, show_activity: Callable[[str, str], None], *, verifying: bool
    ) -> LocalDispatcher:
        """Return it, made by the run's sheet. For verifying it knows what the run's journal says by now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What a worker does jobs with."""

    dispatcher_of: "DispatcherOf"
    remote: Remote
    redactor: Redactor

    def do(self, task: AtWork, seen: Callable[[str], None]) -> Report:
        """Do a job, and leave no secret of this machine in what is told."""
        report = self._done(task, seen)
        return replace(redacted(replace(report, log=""), self.redactor), log=report.log)

    def _done(self, task: AtWork, seen: Callable[[str], None]) -> Report:
        """Do a job; whatever is wrong with this machine is told, and the job is for another one."""
        try:
            wanted = read(Wanted, task.job.body)
            self.remote.fetch(wanted.fetch, wanted.begin, f"@{task.slot}")
            here = self.dispatcher_of(
                task.job.run,
                task.job.sheet,
                lambda _task, line: seen(line),
                verifying=wanted.subject is not None,
            )
            if wanted.subject is not None:
                return self._verified(here, wanted.subject, task.slot, task.stop)
            assert wanted.session is not None
            order = replace(wanted.session, slot=task.slot, place="")
            if not task.knows:  # the agent's own session is on another machine, or belongs to another folder
                order = replace(order, resume="", word="")
            return self._sent(here, wanted, order, task.stop)
        except UnstuckError as error:
            return Report(fault=error.message)
        except Exception as error:  # noqa: BLE001  # a thread that dies in silence would leave its job at work for ever
            return Report(fault=f"{type(error).__name__}: {error}")

    def _verified(self, here: LocalDispatcher, subject: Subject, slot: int, stop: Stop) -> Report:
        try:
            return Report(verdict=here.verify(subject, slot, stop))
        except SetupFailed as error:
            return Report(failure=error.failure)
        except Interrupted:
            return Report(fault="It was stopped.")

    def _sent(self, here: LocalDispatcher, wanted: Wanted, order: SessionOrder, stop: Stop) -> Report:
        """Run a session. Its work is sent before anybody is told, so that a worker that dies in between has lost nothing."""
        log = here.checks.layout.log(order.task)
        before = _size(log)
        here.checks.workspace.prepare(order.slot, order.base, order.tree)
        done = _run_session(here, order, stop)
        if order.probe:
            return Report(session=done, log=_since(log, before))
        tree = here.checks.workspace.write_tree(order.slot, order.base)
        done = replace(done, notes=(*done.notes, *tree.notes))
        commit = self.remote.commit(tree.id, order.base, f"{worked(order.session)}of attempt {order.attempt}\n")
        try:
            self.remote.put(wanted.ref, commit, wanted.expected)
        except Moved:
            return Report(fault=LATE)
        return Report(session=done, commit=commit, tree=tree.id, log=_since(log, before))


def _run_session(here: LocalDispatcher, order: SessionOrder, stop: Stop) -> SessionDone:
    try:
        failure = None if order.begun else here.ready(order.task, order.slot, stop)
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
