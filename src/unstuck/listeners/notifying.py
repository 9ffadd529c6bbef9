"""Edge: Send messages to people: to a command with the facts in its environment, or to an Apprise address; nothing waits for them.

What is worth waking a person for is told once per cause: stuck, asking, waiting for long, ended.
Law: a message's text reaches a command by its environment and its stdin, and never its command line.
"""

import json
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState, awaits_approval
from unstuck.model.action import Escalate, Halt, Wait
from unstuck.model.config import NotifyConfig, TimeLimits
from unstuck.model.errors import with_extra
from unstuck.model.event import Acted, Entry, Operated, RunEnded
from unstuck.model.failure import Kind
from unstuck.model.text import one_line, visible, waits
from unstuck.process.atomic_files import DiskFiles
from unstuck.process.command import Command, Processes
from unstuck.reports.questions import cause_of, question

Occasion = Literal["stuck", "asks", "waiting", "ended"]
LONG_WAIT = 60.0
"""Seconds from which on a wait is worth a message."""
TEXT_CHARS = 2_000
TITLE_CHARS = 120
STUCK = 3
SECONDS = 60.0
"""That one delivery may take."""
FAREWELL_SECONDS = 30.0
"""That the end of a run waits for what is still to be sent."""
LOOK_SECONDS = 30.0
HOUR = 3600.0
ADDRESS = re.compile(r"[a-zA-Z][\w+.-]*://\S+")
VARIABLE = re.compile(r"\$\{?(\w+)\}?")
MISSING = "the extra is not installed. {}"
REASON_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a person is told, with the facts behind it."""

    occasion: Occasion
    cause: str
    """Two messages with the same cause say the same."""
    title: str
    text: str
    run: str
    plan: str
    tasks: tuple[str, ...] = ()
    exit_code: int | None = None
    until: float | None = None
    command: str = ""
    """What to type."""

    def as_json(self) -> dict[str, Any]:
        return {"schema": 1, **asdict(self)}


def messages(entry: Entry, state: RunState) -> Iterator[Message]:
    """Return what a fact is worth telling a person."""
    event = entry.event
    if isinstance(event, Acted) and isinstance(event.action, Escalate | Halt):
        yield about(state.tasks[event.task], state)
    elif isinstance(event, Acted) and isinstance(event.action, Wait):
        until = event.action.until
        if until - entry.at >= LONG_WAIT:
            what = event.action.what or state.tasks[event.task].current.agent
            yield _message(
                state, "waiting", f"wait {what}", f"unstuck waits for {what}", f"Task {event.task} {waits(what, until)}.",
                tasks=(event.task,), until=until, command="unstuck status",
            )  # fmt: skip
    elif isinstance(event, RunEnded):
        yield _ended(event, entry, state)


def about(task: TaskState, state: RunState) -> Message:
    """Say what a stuck task needs."""
    name, failure = task.task.id, task.attempts[-1].failure if task.attempts else None
    asks = awaits_approval(task) or (failure is not None and failure.kind is Kind.QUESTION)
    title = f"Task {name} {'asks' if asks else 'is stuck'}: {one_line(task.task.title, TITLE_CHARS)}"
    command = f"unstuck approve {name}" if awaits_approval(task) else f"unstuck report {name}"
    occasion: Occasion = "asks" if asks else "stuck"
    return _message(state, occasion, cause_of(task), title, question(task), tasks=(name,), command=command)


def _ended(event: RunEnded, entry: Entry, state: RunState) -> Message:
    """Say how the run ended; one that nobody has approved yet asks."""
    statuses = [task.status for task in state.tasks.values()]
    landed, stuck = statuses.count("complete"), statuses.count("stuck")
    figures = f"{landed} of {len(statuses)} landed" + (f", {stuck} stuck" if stuck else "")
    plan = state.started.plan if state.started else ""
    return _message(
        state,
        "asks" if event.exit_code == STUCK and not stuck else "ended",
        f"end {entry.seq}",
        f"unstuck: {figures} ({plan})",
        event.reason,
        exit_code=event.exit_code,
        command="unstuck report" if event.exit_code else "git log",
    )


def _message(state: RunState, occasion: Occasion, cause: str, title: str, text: str, **facts: Any) -> Message:
    run, plan = (state.started.run, state.started.plan) if state.started else ("", "")
    told, name = visible(text)[:TEXT_CHARS], one_line(title, TITLE_CHARS)
    return Message(occasion=occasion, cause=cause, title=name, text=told, run=run, plan=plan, **facts)


@dataclass(slots=True, kw_only=True)
class Notifier:
    """Hears every fact, and sends what is worth it from a thread of its own; each cause once, or again after hours."""

    config: NotifyConfig
    root: Path
    store: Path
    """Where is kept what was sent: a supervisor that takes the run up says nothing twice."""
    processes: Processes
    told: Callable[[str], None]
    """Hears what could not be delivered."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    _sent: dict[str, float] = field(default_factory=dict)
    _run: str = ""
    _state: RunState | None = None
    _queue: "queue.Queue[Message | None]" = field(default_factory=queue.Queue)
    _thread: threading.Thread | None = None
    _complained: set[str] = field(default_factory=set)

    def __call__(self, entry: Entry, state: RunState) -> None:
        self._state = state
        if isinstance(entry.event, Operated) and entry.event.request.task in state.tasks and not entry.event.refused:
            self._forget(entry.event.request.task)
        for message in messages(entry, state):
            self._offer(message, entry.at)

    def close(self) -> None:
        """Wait for what is still to be sent, though not for long."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(FAREWELL_SECONDS)

    # --- below ---------------------------------------------------------------------------------------

    def _offer(self, message: Message, now: float) -> None:
        """Send a message, unless its cause was told already and not long enough ago."""
        if not self._targets(message):
            return
        self._remember(message.run)
        sent = self._sent.get(message.cause)
        if sent is not None and (not self.config.repeat_hours or now - sent < self.config.repeat_hours * HOUR):
            return
        self._sent[message.cause] = now
        self._keep()
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver_all, name="notify", daemon=True)
            self._thread.start()
        self._queue.put(message)

    def _targets(self, message: Message) -> tuple[str, ...]:
        asked: str | tuple[str, ...] = getattr(self.config, message.occasion)
        return tuple(one for one in ((asked,) if isinstance(asked, str) else asked) if one.strip())

    def _deliver_all(self) -> None:
        while True:
            try:
                message = self._queue.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self._again()
                continue
            if message is None:
                return
            for target in self._targets(message):
                if problem := self._delivered(target, message):
                    self._complain(message, problem)

    def _again(self) -> None:
        """Tell again what still stands after hours, where that is asked for."""
        if not self.config.repeat_hours or self._state is None:
            return
        for task in [one for one in tuple(self._state.tasks.values()) if one.status == "stuck"]:
            self._offer(about(task, self._state), time.time())

    def _delivered(self, target: str, message: Message) -> str:
        """Send one message; return why that failed, if it did."""
        address = VARIABLE.sub(lambda found: self.environment.get(found[1], found[0]), target)
        if ADDRESS.fullmatch(address.strip()):
            return send_to_address(address.strip(), message)
        ended = self.processes.run(
            Command(
                argv=("bash", "-c", target),
                cwd=self.root,
                log=self.store / "logs" / "notify.log",
                env=facts(message),
                stdin=json.dumps(message.as_json(), ensure_ascii=False).encode(errors="replace") + b"\n",
                limits=TimeLimits(wall_clock=SECONDS),
            ),
            stop=_Never(),
        )
        how = f"exit code {ended.exit_code}" if ended.ending == "exited" else ended.ending
        return "" if ended.ok else f"its command ended with {how}: {one_line(ended.tail, REASON_CHARS)}"

    def _complain(self, message: Message, problem: str) -> None:
        if problem not in self._complained:
            self._complained.add(problem)
            self.told(f"Nobody could be told ({message.occasion}): {problem} See logs/notify.log.")

    def _forget(self, task: str | None) -> None:
        """Let it be news should a task get stuck again that a person saw to."""
        if self._state is not None and task is not None:
            self._sent.pop(about(self._state.tasks[task], self._state).cause, None)
            self._sent.pop(f"task {task}", None)
            self._keep()

    @property
    def _file(self) -> Path:
        return self.store / "notified.json"

    def _remember(self, run: str) -> None:
        if run == self._run:
            return
        self._run = run
        try:
            kept = json.loads(DiskFiles().read(self._file) or "{}")
            self._sent = {str(cause): float(at) for cause, at in kept["sent"].items()} if kept["run"] == run else {}
        except (ValueError, TypeError, KeyError, AttributeError):
            self._sent = {}

    def _keep(self) -> None:
        if self._run:
            DiskFiles().put(self._file, json.dumps({"run": self._run, "sent": self._sent}))


def facts(message: Message) -> dict[str, str]:
    """Return a message as the environment of a command."""
    return {
        "UNSTUCK_EVENT": message.occasion,
        "UNSTUCK_CAUSE": one_line(message.cause, REASON_CHARS),
        "UNSTUCK_TITLE": message.title,
        "UNSTUCK_TEXT": message.text.replace("\0", ""),
        "UNSTUCK_RUN": message.run,
        "UNSTUCK_PLAN": message.plan,
        "UNSTUCK_TASK": ",".join(message.tasks),
        "UNSTUCK_EXIT": "" if message.exit_code is None else str(message.exit_code),
        "UNSTUCK_COMMAND": message.command,
    }


def send_to_address(address: str, message: Message) -> str:
    """Send a message by Apprise; return why that failed, if it did. The address is not told: it may hold a secret."""
    try:
        import apprise  # noqa: PLC0415  # an extra, and slow to load
    except ImportError:
        return MISSING.format(with_extra("notify"))
    sender: Any = apprise.Apprise()
    scheme = address.partition("://")[0]
    if not sender.add(address):
        return f"Apprise does not know an address that begins with {scheme}://."
    kinds = {"stuck": "failure", "asks": "warning", "waiting": "info", "ended": "info"}
    body = f"{message.text}\n\n{message.command}" if message.command else message.text
    sent = sender.notify(title=message.title, body=body, notify_type=kinds[message.occasion])
    return "" if sent else f"{scheme}:// did not take it."


class _Never:
    """Nobody stops a message: it has a time limit of its own."""

    def deadline(self) -> float | None:
        return None
