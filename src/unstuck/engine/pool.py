"""Edge: Run the plan: start what may start, one thread per running task, until nothing is left to do."""

import itertools
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from unstuck.engine.context import Kit, Projections, used_up
from unstuck.engine.loop import advance
from unstuck.engine.requests import Operations
from unstuck.engine.stops import OneTask, Stopper
from unstuck.journal.run_state import RunState
from unstuck.journal.stages import Stage
from unstuck.journal.store import Journal
from unstuck.model.errors import UnstuckError
from unstuck.model.event import RunEnded
from unstuck.model.plan import cleans_up
from unstuck.model.text import one_line
from unstuck.policy.schedule import due, parked, settled, startable
from unstuck.verify.examining import load_ahead

TICK_SECONDS = 0.25
PROJECT_SECONDS, PROJECT_SHARE = 1.0, 0.02
"""Between two writings of the files that people read: a second, or so long that they take this share of the time."""
BEAT_SECONDS = 5.0
REST_SECONDS = 1.0
"""Between two looks at a run in which every task waits for its time."""

ALL_DONE, LIMIT, STUCK, QUOTA = 0, 2, 3, 75

BETWEEN_SESSIONS = (Stage.VERIFY, Stage.EXECUTE, Stage.WAIT)
"""Stages in which an attempt's work is in its worktree and nowhere else."""


@dataclass(slots=True, kw_only=True)
class Pool:
    """The threads of one run, and the few things that happen once per tick."""

    kit: Kit
    journal: Journal
    projections: Projections
    operations: Operations
    stopper: Stopper
    parallel: int
    running: dict[str, tuple[int, OneTask]] = field(default_factory=dict)
    finished: "queue.Queue[tuple[str, BaseException | None]]" = field(default_factory=queue.Queue)
    fault: BaseException | None = None
    _kept: dict[str, int] = field(default_factory=dict)
    """The worktrees of tasks that wait, or that an earlier supervisor left, in the middle of an attempt."""
    _next_projection: float = 0.0
    _beaten: float = 0.0

    def run(self) -> RunEnded:
        """Work until every task rests, the run is stopped, or a limit is reached; say how it ended."""
        self._kept = _slots_in_use(self.kit.record.state)
        try:
            while self._tick():
                self._collect()
        except BaseException as error:
            self._drain(error)
            raise
        finally:
            self.kit.processes.end_lasting()
        if self.fault is not None:
            raise self.fault
        return self._ending()

    def _tick(self) -> bool:
        """Do what is due; return whether anything still runs, or will."""
        state = self.kit.record.state
        now = time.monotonic()
        if now - self._beaten > BEAT_SECONDS:
            self.journal.beat()
            self._beaten = now
        self.operations.take(self.running)
        if (said := self.kit.own_files.read(self.kit.layout.pause)) is not None:
            because = f" It says: {one_line(said, 200)}" if said.strip() else ""
            self._ask_once(f"Paused by the file .unstuck/PAUSE; remove it, then `unstuck resume`.{because}", STUCK)
        if reason := used_up(self.kit):
            self._ask_once(reason, LIMIT)
        if self.stopper.deadline() is None:
            room = self.parallel - len(self.running)
            for name in startable(state, self.running, room, self.kit.clock.now()):
                self._start(name)
        if now >= self._next_projection:
            self.project()
            done = time.monotonic()
            self._next_projection = done + max(PROJECT_SECONDS, (done - now) / PROJECT_SHARE)
        return bool(self.running) or self._rest()

    def _rest(self) -> bool:
        """Let time pass until a waiting task goes on; False where none does, or the run was asked to stop."""
        left = due(self.kit.record.state, self.kit.clock.now())
        if left is None or self.stopper.deadline() is not None:
            return False
        self.kit.clock.wait(min(left, REST_SECONDS))
        return True

    def project(self) -> None:
        """Bring the files that people read up to date.

        What they say is forced to the disk first: after a power cut, a file that knows more would pass for an edit of a person.
        """
        state, changed = self.kit.record.take_changed()
        if changed:
            self.journal.beat()
        self.projections.write(state, changed)

    def _ask_once(self, reason: str, exit_code: int) -> None:
        if self.stopper.deadline() is None:
            self.stopper.ask(reason, exit_code)

    def _start(self, name: str) -> None:
        slot = self._kept.pop(name, None)
        slot = self._free_slot() if slot is None else slot
        stop = OneTask(self.stopper)
        self.running[name] = (slot, stop)
        kit = replace(self.kit, stop=stop)
        threading.Thread(target=self._work, args=(kit, name, slot), name=f"task {name}", daemon=True).start()

    def _free_slot(self) -> int:
        """Return a worktree that nobody works in, and in which no interrupted task has left its work.

        The slots beyond `parallel`, which look at bases, are passed over when there are that many interrupted tasks.
        """
        taken = {slot for slot, _ in self.running.values()} | set(self._kept.values())
        usable = (slot for slot in itertools.count() if slot < self.parallel or slot >= 2 * self.parallel)
        return next(slot for slot in usable if slot not in taken)

    def _work(self, kit: Kit, name: str, slot: int) -> None:
        """Advance one task; whatever happens, tell the main thread."""
        fault: BaseException | None = None
        try:
            advance(kit, name, slot)
            self._keep_unfinished(kit, name, slot)
        except BaseException as error:  # noqa: BLE001  # handed to the main thread, which raises it
            fault = error
        self.finished.put((name, fault))

    def _keep_unfinished(self, kit: Kit, name: str, slot: int) -> None:
        """Put the work of a stopped session away, so that nothing depends on its worktree."""
        task = kit.record.task(name)
        waits_on = task.stage is Stage.WAIT and kit.stop.deadline() is None  # kept when that was decided
        if task.attempts and task.current.sessions and task.stage in BETWEEN_SESSIONS and not waits_on:
            snapshot = kit.workspace.snapshot(slot, str(task.last_seq))
            if snapshot is not None:
                kit.record.note(f"Task {name} was stopped; its work so far is kept at {snapshot.ref}.", name)

    def _collect(self) -> None:
        """Wait for a task to come to rest, one tick at the most."""
        if not self.running:
            return
        try:
            name, fault = self.finished.get(timeout=TICK_SECONDS)
        except queue.Empty:
            load_ahead()
            return
        slot, _ = self.running.pop(name)
        if self.kit.record.task(name).stage is Stage.WAIT:
            self._kept[name] = slot  # its work is there
        if cleans_up(self.kit.tasks[name]) and self.kit.record.task(name).stage is Stage.REST:
            self.kit.processes.end_lasting()
        if fault is not None and self.fault is None:
            self.fault = fault
            reason = fault.message if isinstance(fault, UnstuckError) else repr(fault)
            self.stopper.at_once(reason, 1)

    def _drain(self, error: BaseException) -> None:
        """Something of ours failed: end every process before it is reported."""
        self.stopper.at_once(repr(error), 1)
        while self.running:
            name, _ = self.finished.get()
            self.running.pop(name)

    def _ending(self) -> RunEnded:
        state = self.kit.record.state
        if settled(state) and self.stopper.exit_code not in (ALL_DONE, LIMIT):  # who stops it wants no merge now
            reason = f"{self.stopper.reason} Every task landed; `unstuck resume` brings the work home."
            return RunEnded(exit_code=self.stopper.exit_code, reason=reason)
        if settled(state):
            return RunEnded(exit_code=ALL_DONE, reason="Every task landed or was settled by a person.")
        if self.stopper.deadline() is not None:
            return RunEnded(exit_code=self.stopper.exit_code, reason=self.stopper.reason)
        if state.halted:
            return RunEnded(exit_code=STUCK, reason=f"The run is halted: {one_line(state.halted, 300)}")
        now = self.kit.clock.now()
        if waiting := [task for task in state.tasks.values() if parked(state, task, now)]:
            until = datetime.fromtimestamp(min(task.wait_until or now for task in waiting), UTC)
            names = ", ".join(task.task.id for task in waiting)
            return RunEnded(
                exit_code=QUOTA,
                reason=f"Waiting for a provider's limit until {until:%Y-%m-%d %H:%M} UTC: {names}. Then: unstuck resume",
            )
        stuck = [name for name, task in state.tasks.items() if task.status == "stuck"]
        return RunEnded(exit_code=STUCK, reason=f"Waiting for a person: {', '.join(stuck)}.")


def _slots_in_use(state: RunState) -> dict[str, int]:
    tasks = (state.tasks[name] for name in state.open)
    return {task.task.id: task.current.slot for task in tasks if task.attempts and task.stage is not Stage.OPEN}
