"""Edge: The dispatcher of a run whose work is done by workers: it gives jobs out, waits for them, and takes their work in."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

from unstuck.engine.local_dispatcher import LocalDispatcher
from unstuck.engine.recorder import Recorder, redacted
from unstuck.engine.stops import TaskStop
from unstuck.fleet.jobs import OVER, Ending, Job, Jobs
from unstuck.fleet.postgres import Link
from unstuck.fleet.remote import NEVER, Moved, Placed, Remote, Shelf, check_ref, tip_ref, work_ref, worked
from unstuck.fleet.wire import STOPPED, Report, Sheet, Wanted, read, write
from unstuck.model.errors import GitFailed, Interrupted, Unavailable, UnstuckError
from unstuck.model.failure import Failure
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Task
from unstuck.model.text import one_line
from unstuck.model.verdict import Verdict
from unstuck.process.command import Stop
from unstuck.verify.check_context import CheckContext
from unstuck.verify.checks import SetupFailed

LOOK_SECONDS, BURY_SECONDS, TELL_SECONDS = 1.0, 1.0, 5.0
GRACE_SECONDS = 20.0
"""How long a job that was asked to end may take until it is given up."""
TIMES = 3
"""How often a verification is given out before this machine does it."""
FAULT_CHARS = 300
NEVER_GIVEN = Ended(ending="supervisor_died", tail="The supervisor died before this session was given to a worker.")


class Office:
    """What all threads of a run share: one connection, and one thread that hears of jobs that are over."""

    def __init__(self, store: str, pattern: Job, seen: Callable[[str, str], None], note: Callable[[str], None]) -> None:
        self.pattern = pattern
        """What all jobs of the run have in common."""
        self._seen, self._note = seen, note
        self._noted = ""
        self._link = Link(store, name=f"run {pattern.run}")
        self.jobs = Jobs(self._link)
        self._changed = threading.Condition()
        self._waiting: set[int] = set()
        self._ended: dict[int, Ending] = {}
        self._said: dict[int, str] = {}
        self._listening: frozenset[int] = frozenset()
        """Jobs whose sessions hear what people say."""
        self._fault: UnstuckError | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._listen, name="fleet", daemon=True)
        self._plain: dict[str, tuple[Task, bool]] = {}

    def key(self, name: str) -> str:
        return f"{self.pattern.project}/{self.pattern.run}/{name}"

    def open(self, sheet: Sheet) -> None:
        self._link.listen(f"unstuck {self.pattern.run}")
        self.jobs.describe(self.pattern.project, self.pattern.run, write(sheet))
        self._thread.start()

    def close(self, *, over: bool) -> None:
        """Stop listening; forget the jobs of a run that is over."""
        self._closed = True
        self._link.wake()
        self._thread.join()
        try:
            if over:
                self.jobs.clear(self.pattern.project, self.pattern.run)
        finally:
            self._link.close()

    def is_plain(self, checks: CheckContext) -> bool:
        """Whether no check holds a secret: those are not put into the store, and are run here."""
        tasks = tuple(checks.tasks.items())
        for name, task in tasks:
            if name not in self._plain or self._plain[name][0] is not task:
                self._plain[name] = (task, redacted(task.checks, checks.redactor) == task.checks)
        return all(self._plain[name][1] for name, _ in tasks)

    def put(self, job: Job) -> int:
        """Give a job out, and listen for its end from now on: whoever waits for it may have something to do before."""
        number = self.jobs.put(job)
        with self._changed:
            self._waiting.add(number)
        return number

    def wait(self, job: int, task: str, stop: Stop) -> Ending:
        """Wait until a job is over; ask for its end when the run must end."""
        asked, told, stopping = 0.0, time.monotonic() + TELL_SECONDS, False
        person = stop if isinstance(stop, TaskStop) else None
        with self._changed:
            self._waiting.add(job)
        try:
            while True:
                with self._changed:
                    if job not in self._ended:
                        self._changed.wait(0.25)
                    if self._fault is not None:
                        raise self._fault
                    if job in self._ended:
                        return self._ended.pop(job)
                if person is not None:
                    person.takes_messages = job in self._listening
                    if hints := person.take_messages():
                        self.jobs.tell(job, hints)
                now, deadline = time.monotonic(), stop.deadline()
                if deadline is not None and not stopping:
                    stopping = True
                    self.jobs.take_back(job)  # what nobody has begun needs no time to end
                if deadline is not None and now >= deadline:
                    if not asked:
                        self.jobs.ask_to_stop(job)
                        asked = now
                    elif now - asked > GRACE_SECONDS:
                        self.jobs.give_up(job)
                if now >= told:
                    told = now + TELL_SECONDS
                    self._tell_why(job, task)
        finally:
            if person is not None:
                person.takes_messages = False
            with self._changed:
                self._waiting.discard(job)

    def _tell_why(self, job: int, task: str) -> None:
        """Say why nobody has a job yet; what only a person can change is put down, once."""
        why, missing = self.jobs.why_queued(job)
        if why:
            self._seen(task, why)
        if missing and missing != self._noted:
            self._noted = missing
            self._note(missing)

    def _listen(self) -> None:
        buried = 0.0
        while not self._closed:
            try:
                self._link.wait(LOOK_SECONDS)
                if time.monotonic() - buried > BURY_SECONDS:
                    self.jobs.bury()
                    buried = time.monotonic()
                waiting = tuple(self._waiting)
                ended = self._look(waiting) if waiting else {}
            except UnstuckError as error:
                with self._changed:
                    self._fault = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._ended |= ended
                self._waiting -= ended.keys()
                self._changed.notify_all()

    def _look(self, waiting: tuple[int, ...]) -> dict[int, Ending]:
        """Say which jobs are over; pass on what the agents of the others do."""
        found = self.jobs.look(waiting)
        for number, job in found.items():
            if job.state == "running" and job.said and self._said.get(number) != job.said:
                self._said[number] = job.said
                self._seen(job.task, job.said)
        self._listening = frozenset(number for number, job in found.items() if job.listens and job.state == "running")
        return {number: job for number, job in found.items() if job.state in OVER}


@dataclass(frozen=True, slots=True)
class Far:
    """The `Dispatcher` on a fleet."""

    local: LocalDispatcher
    recorder: Recorder
    office: Office
    shelf: Shelf

    @property
    def checks(self) -> CheckContext:
        return self.local.checks

    @property
    def remote(self) -> Remote:
        return self.shelf.remote

    def expect(self, name: str, slot: int) -> None:
        """Do nothing: whoever takes the job starts it."""

    def ready(self, name: str, slot: int, stop: Stop) -> Failure | None:  # noqa: ARG002  # the port's signature
        return None

    def run(self, order: SessionOrder, stop: Stop) -> SessionDone:
        office, ref = self.office, work_ref(order.run, order.task, order.attempt)
        key = office.key(f"{order.task}/{order.attempt}/{order.session}{'/probe' if order.probe else ''}")
        if order.begun:
            number = office.jobs.find(key)
            if number is None:
                return SessionDone(outcome=Outcome(ended=NEVER_GIVEN))
        else:
            job = replace(office.pattern, key=key, task=order.task, agent=order.agent, only=order.place or None)
            number = office.put(replace(job, body=write(self._begin(order, ref))))
        ending = office.wait(number, order.task, stop)
        if ending.state == "lost" and not ending.worker and stop.deadline() is not None:
            return SessionDone(outcome=Outcome(ended=STOPPED))
        return self._taken_in(order, ref, ending, _report(ending))

    def verify(self, subject: Subject, slot: int, stop: Stop) -> Verdict:
        """Let a worker verify; who merged a tree verifies it, because others wait for it to land and it is here already."""
        office, name, deadline = self.office, subject.task.id, stop.deadline()
        if deadline is not None and time.monotonic() >= deadline:
            raise Interrupted
        if (subject.base, subject.tree) in self.shelf.merged or not office.is_plain(self.checks):
            self.shelf.collect(slot)
            return self.local.verify(subject, slot, stop)
        for _ in range(TIMES):
            body = write(self._published(redacted(subject, self.checks.redactor), slot))
            key = office.key(f"{name}/verify/{uuid4().hex}")
            number = office.put(replace(office.pattern, key=key, task=name, kind="verify", body=body))
            self.shelf.collect(slot)  # meanwhile: it is needed here when it lands
            report = _report(office.wait(number, name, stop)) or Report()
            if report.failure is not None:
                raise SetupFailed(report.failure)
            if report.verdict is not None:
                return report.verdict
            if stop.deadline() is not None:
                raise Interrupted
        return self.local.verify(subject, slot, stop)

    def _begin(self, order: SessionOrder, ref: str) -> Wanted:
        """Put what the session begins with where every worker finds it; from then on an older session's work is refused."""
        plain = order.tree is None and order.session == 1 and not order.probe
        if plain and order.base in self.shelf.tips:
            return Wanted(ref=ref, fetch=tip_ref(order.run), begin=order.base, expected=NEVER, session=order)
        self.shelf.collect(order.slot)
        tree = order.tree or self.checks.workspace.tree_of(order.base)
        text = f"session {order.session} of attempt {order.attempt}{' (probe)' if order.probe else ''}\n"
        begin = self.remote.commit(tree, order.base, text)
        self._place(ref, begin)
        return Wanted(ref=ref, fetch=ref, begin=begin, expected=begin, session=order)

    def _published(self, subject: Subject, slot: int) -> Wanted:
        """Make sure that the remote has the tree; say with which ref and commit it has it."""
        known = self.shelf.placed.get((subject.base, subject.tree))
        if known is not None and not subject.start:
            return Wanted(ref=known.ref, fetch=known.ref, begin=known.commit, subject=subject)
        self.shelf.collect(slot)
        ref, base, text = check_ref(self.checks.run_id, subject.task.id), subject.base, f"verify {subject.task.id}\n"
        start = (self.remote.commit(subject.start, base, text),) if subject.start else ()
        begin = self.remote.commit(subject.tree, base, text, *start)
        self._place(ref, begin)
        return Wanted(ref=ref, fetch=ref, begin=begin, subject=subject)

    def _place(self, ref: str, begin: str) -> None:
        """Move a place of work on, whatever came there late; a supervisor that was taken over moves nothing."""
        placed = self.shelf.placed
        for key in [key for key, place in placed.items() if place.ref == ref]:
            del placed[key]
        for _ in range(TIMES):
            try:
                self.remote.put(ref, begin, self.remote.seen.get(ref, NEVER))
            except Moved:
                self.remote.look(ref)
                self.recorder.still_ours()
            else:
                return
        raise GitFailed(f"{ref} is moved by somebody else again and again.", hint="See who else writes to the remote.")

    def _taken_in(self, order: SessionOrder, ref: str, ending: Ending, report: Report | None) -> SessionDone:
        """Take the work in that arrived, however the session ended; a worker that died may have sent it before."""
        commit = report.commit if report is not None else ""
        if not commit and not order.probe:
            commit = self._arrived(order, ref)
        if commit:
            self.remote.seen[ref] = commit
            tree = (report.tree if report is not None else "") or self.checks.workspace.tree_of(commit)
            self.checks.workspace.prepare(order.slot, order.base, tree)
            work = Placed(ref, commit, spent=report is not None and bool(report.commit) and order.session == 1)
            self.shelf.placed[order.base, tree] = self.shelf.owed[order.slot] = work
        if report is None:
            who = f"The worker {ending.worker}" if ending.worker else "A worker"
            arrived = "its work had arrived" if commit else "nothing of its work had arrived"
            return SessionDone(outcome=_gone(f"{who} was lost while this session ran; {arrived}."))
        if report.log:
            self.checks.own_files.append(self.checks.layout.log(order.task), report.log)
        if report.session is None:
            fault = one_line(report.fault, FAULT_CHARS)
            self.recorder.note(f"The worker {ending.worker} could not do it: {fault}", order.task)
            return SessionDone(outcome=_gone(fault))
        return replace(report.session, place=ending.worker)

    def _arrived(self, order: SessionOrder, ref: str) -> str:
        """Return what is at the place of the attempt's work, if it is not what the session began with."""
        there = self.remote.look(ref)
        if not there:
            return ""
        self.remote.bring(ref)
        text = self.remote.git.attempt("log", "-1", "--format=%s", there).stdout
        return there if text.startswith(worked(order.session)) else ""


def _report(ending: Ending) -> Report | None:
    """Read what a worker says; one of another version cannot be understood, which is its own fault."""
    try:
        return read(Report, ending.result) if ending.state == "done" else None
    except Unavailable as error:
        return Report(fault=f"{error.message} {error.hint}")


def _gone(text: str) -> Outcome:
    return Outcome(ended=Ended(ending="worker_gone", tail=text))
