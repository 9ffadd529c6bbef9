"""Notifications of the user by a command or an Apprise address.

Each cause is reported once: a stuck task, a question, a long wait, the end of a run. No run waits for a delivery.
A command gets the text of a message in its environment and on stdin, never on its command line.
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
"""Seconds. A shorter wait causes no message."""
TEXT_CHARS = 2_000
TITLE_CHARS = 120
EXIT_STUCK = 3
DELIVERY_SECONDS = 60.0
CLOSE_SECONDS = 30.0
"""The end of a run waits this long for messages that are not sent yet."""
REPEAT_CHECK_SECONDS = 30.0
HOUR_SECONDS = 3600.0
ADDRESS = re.compile(r"[a-zA-Z][\w+.-]*://\S+")
VARIABLE = re.compile(r"\$\{?(\w+)\}?")
MISSING = "the extra is not installed. {}"
REASON_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to the user, with the facts that it is about."""

    occasion: Occasion
    cause: str
    """Two messages with the same cause have the same content."""
    title: str
    text: str
    run: str
    plan: str
    tasks: tuple[str, ...] = ()
    exit_code: int | None = None
    until: float | None = None
    command: str = ""
    """The command that the user can run next."""

    def as_json(self) -> dict[str, Any]:
        return {"schema": 1, **asdict(self)}


def messages(entry: Entry, state: RunState) -> Iterator[Message]:
    """Yield the messages to the user about an event."""
    event = entry.event
    if isinstance(event, Acted) and isinstance(event.action, Escalate | Halt):
        yield message_about(state.tasks[event.task], state)
    elif isinstance(event, Acted) and isinstance(event.action, Wait):
        until = event.action.until
        if until - entry.at >= LONG_WAIT:
            what = event.action.what or state.tasks[event.task].current.agent
            yield _message(
                state, "waiting", f"wait {what}", f"unstuck waits for {what}", f"Task {event.task} {waits(what, until)}.",
                tasks=(event.task,), until=until, command="unstuck status",
            )  # fmt: skip
    elif isinstance(event, RunEnded):
        yield _end_message(event, entry, state)


def message_about(task: TaskState, state: RunState) -> Message:
    """Return the message about a stuck task."""
    name, failure = task.task.id, task.attempts[-1].failure if task.attempts else None
    asks = awaits_approval(task) or (failure is not None and failure.kind is Kind.QUESTION)
    title = f"Task {name} {'asks' if asks else 'is stuck'}: {one_line(task.task.title, TITLE_CHARS)}"
    command = f"unstuck approve {name}" if awaits_approval(task) else f"unstuck report {name}"
    occasion: Occasion = "asks" if asks else "stuck"
    return _message(state, occasion, cause_of(task), title, question(task), tasks=(name,), command=command)


def _end_message(event: RunEnded, entry: Entry, state: RunState) -> Message:
    """Return the message about the end of a run. A run that waits for approval asks."""
    statuses = [task.status for task in state.tasks.values()]
    landed, stuck = statuses.count("complete"), statuses.count("stuck")
    figures = f"{landed} of {len(statuses)} landed" + (f", {stuck} stuck" if stuck else "")
    plan = state.started.plan if state.started else ""
    return _message(
        state,
        "asks" if event.exit_code == EXIT_STUCK and not stuck else "ended",
        f"end {entry.seq}",
        f"unstuck: {figures} ({plan})",
        event.reason,
        exit_code=event.exit_code,
        command="unstuck report" if event.exit_code else "git log",
    )


def _message(state: RunState, occasion: Occasion, cause: str, title: str, text: str, **facts: Any) -> Message:
    run, plan = (state.started.run, state.started.plan) if state.started else ("", "")
    short_text, short_title = visible(text)[:TEXT_CHARS], one_line(title, TITLE_CHARS)
    return Message(occasion=occasion, cause=cause, title=short_title, text=short_text, run=run, plan=plan, **facts)


@dataclass(slots=True, kw_only=True)
class Notifier:
    """Sends messages about events from its own thread, each cause once or again after some hours."""

    config: NotifyConfig
    root: Path
    store: Path
    """The folder that records sent messages, so that a resumed run does not repeat them."""
    processes: Processes
    report: Callable[[str], None]
    """Called with a message about a failed delivery."""
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
        """Wait some seconds for messages that are not sent yet."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(CLOSE_SECONDS)

    def _offer(self, message: Message, now: float) -> None:
        """Queue a message, unless one with the same cause was sent lately."""
        if not self._targets(message):
            return
        self._load_sent(message.run)
        sent = self._sent.get(message.cause)
        if sent is not None and (not self.config.repeat_hours or now - sent < self.config.repeat_hours * HOUR_SECONDS):
            return
        self._sent[message.cause] = now
        self._save_sent()
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver_all, name="notify", daemon=True)
            self._thread.start()
        self._queue.put(message)

    def _targets(self, message: Message) -> tuple[str, ...]:
        setting: str | tuple[str, ...] = getattr(self.config, message.occasion)
        targets = (setting,) if isinstance(setting, str) else setting
        return tuple(target for target in targets if target.strip())

    def _deliver_all(self) -> None:
        while True:
            try:
                message = self._queue.get(timeout=REPEAT_CHECK_SECONDS)
            except queue.Empty:
                self._repeat()
                continue
            if message is None:
                return
            for target in self._targets(message):
                if problem := self._delivery_problem(target, message):
                    self._complain(message, problem)

    def _repeat(self) -> None:
        """Send the messages about stuck tasks again after the configured hours."""
        if not self.config.repeat_hours or self._state is None:
            return
        stuck = [task for task in tuple(self._state.tasks.values()) if task.status == "stuck"]
        for task in stuck:
            self._offer(message_about(task, self._state), time.time())

    def _delivery_problem(self, target: str, message: Message) -> str:
        """Send a message and return why that failed, or an empty string."""
        address = VARIABLE.sub(lambda match: self.environment.get(match[1], match[0]), target)
        if ADDRESS.fullmatch(address.strip()):
            return send_to_address(address.strip(), message)
        ended = self.processes.run(
            Command(
                argv=("bash", "-c", target),
                cwd=self.root,
                log=self.store / "logs" / "notify.log",
                env=message_environment(message),
                stdin=json.dumps(message.as_json(), ensure_ascii=False).encode(errors="replace") + b"\n",
                limits=TimeLimits(wall_clock=DELIVERY_SECONDS),
            ),
            stop=_NeverStops(),
        )
        how = f"exit code {ended.exit_code}" if ended.ending == "exited" else ended.ending
        return "" if ended.ok else f"its command ended with {how}: {one_line(ended.tail, REASON_CHARS)}"

    def _complain(self, message: Message, problem: str) -> None:
        if problem not in self._complained:
            self._complained.add(problem)
            self.report(f"Nobody could be told ({message.occasion}): {problem} See logs/notify.log.")

    def _forget(self, task: str | None) -> None:
        """Forget the messages about a task, so that they are sent if it gets stuck again."""
        if self._state is not None and task is not None:
            self._sent.pop(message_about(self._state.tasks[task], self._state).cause, None)
            self._sent.pop(f"task {task}", None)
            self._save_sent()

    @property
    def _file(self) -> Path:
        return self.store / "notified.json"

    def _load_sent(self, run: str) -> None:
        if run == self._run:
            return
        self._run = run
        try:
            kept = json.loads(DiskFiles().read(self._file) or "{}")
            self._sent = {str(cause): float(at) for cause, at in kept["sent"].items()} if kept["run"] == run else {}
        except (ValueError, TypeError, KeyError, AttributeError):
            self._sent = {}

    def _save_sent(self) -> None:
        if self._run:
            DiskFiles().put(self._file, json.dumps({"run": self._run, "sent": self._sent}))


def message_environment(message: Message) -> dict[str, str]:
    """Return the variables that give a message to a command."""
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
    """Send a message with Apprise and return why that failed, or an empty string.

    The reason does not show the address, which may hold a secret.
    """
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


class _NeverStops:
    """A stop signal that never fires, because a delivery has its own time limit."""

    def deadline(self) -> float | None:
        return None
