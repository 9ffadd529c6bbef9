"""Run the plan: start the tasks that may start, one thread each, until nothing is left to do."""

import itertools
import queue
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from unstuck.engine.context import RunContext, RunFiles, Services, TaskRun, limit_reached
from unstuck.engine.loop import advance
from unstuck.engine.requests import RequestHandler
from unstuck.engine.stops import RunStop, TaskStop
from unstuck.journal.run_state import RunState
from unstuck.journal.stages import Stage
from unstuck.journal.store import Journal
from unstuck.model.errors import UnstuckError
from unstuck.model.event import RunEnded
from unstuck.model.plan import cleans_up
from unstuck.model.text import one_line
from unstuck.policy.schedule import all_settled, seconds_until_next, startable, waits_for_next_run
from unstuck.verify.examining import load_ahead

TICK_SECONDS = 0.25
RUN_FILES_SECONDS = 1.0
"""Shortest time between two writings of the files that people read."""
RUN_FILES_SHARE = 0.02
"""Largest share of the time that writing these files may take."""
HEARTBEAT_SECONDS = 5.0
IDLE_SECONDS = 1.0
"""Time between two looks at a run in which every task waits for its time."""

ALL_DONE, LIMIT, STUCK, QUOTA = 0, 2, 3, 75
"""Exit codes of a run."""

BETWEEN_SESSIONS = (Stage.VERIFY, Stage.EXECUTE, Stage.WAIT)
"""Stages in which an attempt's work is in its slot and nowhere else."""


@dataclass(slots=True, kw_only=True)
class Pool:
    """The task threads of one run, and the few things that happen once per tick."""

    context: RunContext
    services: Services
    journal: Journal
    run_files: RunFiles
    requests: RequestHandler
    stop: RunStop
    parallel: int
    running: dict[str, tuple[int, TaskStop]] = field(default_factory=dict)
    """Task id → its slot and its stop signal."""
    finished: "queue.Queue[tuple[str, BaseException | None]]" = field(default_factory=queue.Queue)
    fault: BaseException | None = None
    _kept_slots: dict[str, int] = field(default_factory=dict)
    """Slots of tasks that wait in the middle of an attempt, or that an earlier supervisor left there."""
    _next_run_files: float = 0.0
    _last_heartbeat: float = 0.0

    def run(self) -> RunEnded:
        """Work until every task rests, the run is stopped, or a limit is reached. Return how it ended."""
        self._kept_slots = _slots_in_use(self.services.recorder.state)
        try:
            while self._tick():
                self._collect()
        except BaseException as error:
            self._end_all_tasks(error)
            raise
        finally:
            self.services.processes.end_lasting()
        if self.fault is not None:
            raise self.fault
        return self._ending()

    def _tick(self) -> bool:
        """Do what is due. Return whether anything still runs, or will run."""
        now = time.monotonic()
        if now - self._last_heartbeat > HEARTBEAT_SECONDS:
            self.journal.beat()
            self._last_heartbeat = now
        self.requests.take(self.running)
        self._stop_for_pause_file()
        if reason := limit_reached(self.context, self.services):
            self._stop_once(reason, LIMIT)
        if self.stop.deadline() is None:
            room = self.parallel - len(self.running)
            for task_id in startable(self.services.recorder.state, self.running, room, self.services.clock.now()):
                self._start(task_id)
        if now >= self._next_run_files:
            self.write_run_files()
            done = time.monotonic()
            self._next_run_files = done + max(RUN_FILES_SECONDS, (done - now) / RUN_FILES_SHARE)
        return bool(self.running) or self._wait_for_due_task()

    def _stop_for_pause_file(self) -> None:
        """Request a stop if the user created the pause file."""
        text = self.services.own_files.read(self.context.layout.pause)
        if text is None:
            return
        quote = f" It says: {one_line(text, 200)}" if text.strip() else ""
        self._stop_once(f"Paused by the file .unstuck/PAUSE; remove it, then `unstuck resume`.{quote}", STUCK)

    def _wait_for_due_task(self) -> bool:
        """Wait until a waiting task may go on. Return False if no task does, or the run was asked to stop."""
        clock = self.services.clock
        seconds_left = seconds_until_next(self.services.recorder.state, clock.now())
        if seconds_left is None or self.stop.deadline() is not None:
            return False
        clock.wait(min(seconds_left, IDLE_SECONDS))
        return True

    def write_run_files(self) -> None:
        """Update the files that people read.

        The heartbeat forces the events to disk first. After a power cut, a file that knows more than the journal would
        look like a person's edit.
        """
        state, changed = self.services.recorder.take_changed()
        if changed:
            self.journal.beat()
        self.run_files.write(state, changed)

    def _stop_once(self, reason: str, exit_code: int) -> None:
        if self.stop.deadline() is None:
            self.stop.request(reason, exit_code)

    def _start(self, task_id: str) -> None:
        slot = self._kept_slots.pop(task_id, None)
        slot = self._free_slot() if slot is None else slot
        stop = TaskStop(self.stop)
        self.running[task_id] = (slot, stop)
        run = TaskRun(self.context, self.services, task_id, slot, stop)
        threading.Thread(target=self._work, args=(run,), name=f"task {task_id}", daemon=True).start()

    def _free_slot(self) -> int:
        """Return a slot that no task uses and in which no interrupted task has left its work.

        Verification uses the slots from `parallel` to twice as many, so these are passed over.
        """
        taken = {slot for slot, _ in self.running.values()} | set(self._kept_slots.values())
        usable = (slot for slot in itertools.count() if slot < self.parallel or slot >= 2 * self.parallel)
        return next(slot for slot in usable if slot not in taken)

    def _work(self, run: TaskRun) -> None:
        """Advance one task and report to the main thread, whatever happens."""
        fault: BaseException | None = None
        try:
            advance(run)
            self._keep_unfinished_work(run)
        except BaseException as error:  # noqa: BLE001  # the main thread raises it
            fault = error
        self.finished.put((run.task_id, fault))

    def _keep_unfinished_work(self, run: TaskRun) -> None:
        """Keep the work of a stopped session in a snapshot, so that nothing depends on its slot."""
        task = run.services.recorder.task(run.task_id)
        is_waiting = task.stage is Stage.WAIT and run.stop.deadline() is None  # its work was kept before the wait
        if not task.attempts or not task.current.sessions or task.stage not in BETWEEN_SESSIONS or is_waiting:
            return
        snapshot = run.workspace.snapshot(run.slot, str(task.last_seq))
        if snapshot is not None:
            run.note(f"Task {run.task_id} was stopped; its work so far is kept at {snapshot.ref}.")

    def _collect(self) -> None:
        """Wait at most one tick for a task to rest."""
        if not self.running:
            return
        try:
            task_id, fault = self.finished.get(timeout=TICK_SECONDS)
        except queue.Empty:
            load_ahead()
            return
        slot, _ = self.running.pop(task_id)
        stage = self.services.recorder.task(task_id).stage
        if stage is Stage.WAIT:
            self._kept_slots[task_id] = slot
        if cleans_up(self.services.checks.tasks[task_id]) and stage is Stage.REST:
            self.services.processes.end_lasting()
        if fault is not None and self.fault is None:
            self.fault = fault
            reason = fault.message if isinstance(fault, UnstuckError) else repr(fault)
            self.stop.end_at_once(reason, 1)

    def _end_all_tasks(self, error: BaseException) -> None:
        """End every process before a fault of unstuck itself is reported."""
        self.stop.end_at_once(repr(error), 1)
        while self.running:
            task_id, _ = self.finished.get()
            self.running.pop(task_id)

    def _ending(self) -> RunEnded:
        """Return how the run ended and why."""
        state, stop = self.services.recorder.state, self.stop
        if all_settled(state) and stop.exit_code not in (
            ALL_DONE,
            LIMIT,
        ):  # the user who stops a run wants no merge now
            reason = f"{stop.reason} Every task landed; `unstuck resume` brings the work home."
            return RunEnded(exit_code=stop.exit_code, reason=reason)
        if all_settled(state):
            return RunEnded(exit_code=ALL_DONE, reason="Every task landed or was settled by a person.")
        if stop.deadline() is not None:
            return RunEnded(exit_code=stop.exit_code, reason=stop.reason)
        if state.halted:
            return RunEnded(exit_code=STUCK, reason=f"The run is halted: {one_line(state.halted, 300)}")
        now = self.services.clock.now()
        if waiting := [task for task in state.tasks.values() if waits_for_next_run(state, task, now)]:
            until = datetime.fromtimestamp(min(task.wait_until or now for task in waiting), UTC)
            names = ", ".join(task.task.id for task in waiting)
            reason = f"Waiting for a provider's limit until {until:%Y-%m-%d %H:%M} UTC: {names}. Then: unstuck resume"
            return RunEnded(exit_code=QUOTA, reason=reason)
        stuck = [name for name, task in state.tasks.items() if task.status == "stuck"]
        return RunEnded(exit_code=STUCK, reason=f"Waiting for a person: {', '.join(stuck)}.")


def _slots_in_use(state: RunState) -> dict[str, int]:
    tasks = (state.tasks[name] for name in state.open)
    return {task.task.id: task.current.slot for task in tasks if task.attempts and task.stage is not Stage.OPEN}
