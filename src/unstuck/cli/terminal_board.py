"""Edge: The board of a run: drawn while we work on it, or attached to one that somebody else works on."""

import os
import re
import select
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unstuck.app.services import Watcher
from unstuck.cli.run_text import MARKS, Lines, entry_line, story, tells
from unstuck.cli.terminal_text import cut, cut_agent, price, span
from unstuck.compat.notices import event_notice
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState
from unstuck.model.event import AttemptStarted, Entry
from unstuck.model.text import visible, waits
from unstuck.policy.schedule import blocked_tasks
from unstuck.reports.summaries import STATUS_WORDS

LAST_EVENTS = 3
FEWEST_ROWS = 3
AROUND_ROWS = 6
"""Lines of the terminal that are not for tasks: the bar, the last events, room for a message."""
NARROW, LOW = 60, 12
"""Columns and rows below which a task's line keeps to what it is and how it stands."""
ACTIVE = ("running", "verifying", "waiting")
AGENT_CHARS, WHY_CHARS, ELAPSED_CHARS = 16, 60, 7
ROOM_FOR_CTRL_C = 3
"""A terminal writes `^C` at the end of the last line; if that wrapped, the board could not be drawn over."""
LINE_CHARS = 200
PER_SECOND = 4
TICK_SECONDS = 0.25
KEYS = {
    b"\x1b[A": "up", b"k": "up", b"\x1b[B": "down", b"j": "down", b"\x1b[5~": "page up", b"\x1b[6~": "page down",
    b" ": "page down", b"\r": "enter", b"\n": "enter", b"\x1b": "back", b"\x7f": "back", b"q": "leave", b"\x03": "leave",
}  # fmt: skip
KEY = re.compile(rb"\x1b\[[\d;]*[A-Za-z~]|.", re.DOTALL)
"""One key of those that come in one reading: whoever types fast, or has a busy machine, is read several at once."""
HELP = "↑ ↓ choose   enter its story   q leave (the run goes on)"
STORY_HELP = "↑ ↓ scroll   esc back   q leave"
AROUND_STORY = 2


class Board(Lines):
    """Every task that matters now, with what its agent last did, and a bar over all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = RunState()
        self._did: dict[str, str] = {}
        self._last: deque[str] = deque(maxlen=LAST_EVENTS)
        self._shown: list[str] = []
        self._console = Console(stderr=True)
        self._live = Live(
            console=self._console, refresh_per_second=PER_SECOND, get_renderable=self._draw, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Print a message above the board; safe inside a signal handler, as rich's lock lets its holder in again."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @property
    def watcher(self) -> Watcher:
        return Watcher(entry=self._entry, activity=self._activity)

    def _entry(self, entry: Entry, state: RunState) -> None:
        with self._lock:
            self._state = state
            if tells(entry):
                self._last.append(entry_line(entry))
            block = event_notice(entry, state)
            if isinstance(entry.event, AttemptStarted):
                self._did.pop(entry.event.task, None)
        if block:
            self.say(f"\n{block}\n")

    def _activity(self, task: str, line: str) -> None:
        with self._lock:
            self._did[task] = cut(line, LINE_CHARS)

    def _draw(self) -> Any:
        with self._lock:
            state, last = self._state, list(self._last)
            tasks = dict(state.tasks)
            early = [line for name, line in self._did.items() if name not in tasks]
        width, height = self._console.size
        landed = sum(task.status in ("complete", "skipped") for task in tasks.values())
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column(ratio=1)
        head.add_column(justify="right")
        head.add_row(
            ProgressBar(total=max(len(tasks), 1), completed=landed),
            f"{landed}/{len(tasks)}  {span(state.seconds(time.time()))}{price(state.cost_usd or None)}",
        )
        roomy = width >= NARROW and height >= LOW
        active = sum(task.status in ACTIVE for task in tasks.values()) if roomy else 0
        chosen = _chosen(state, tasks, max(height - AROUND_ROWS - active - roomy, FEWEST_ROWS))
        self._shown = [task.task.id for task in chosen]
        names = max((len(task.task.id) for task in chosen), default=0)
        parts: list[Any] = [head]
        if roomy and state.started is not None:
            about = f"run {state.started.run} of {cut(state.started.about)}"
            parts.append(_beside(about))
        for task in chosen:
            row = Table.grid(padding=(0, 1), expand=True)
            cells: tuple[dict[str, Any], ...] = (
                {}, {"width": names}, {"ratio": 1}, {"justify": "right"}, {"justify": "right", "width": ELAPSED_CHARS}
            )  # fmt: skip
            for cell in cells:
                row.add_column(no_wrap=True, overflow="ellipsis", **cell)
            row.add_row(*self._cells(task))
            parts.append(row)
            if roomy and (doing := self._doing(task)):
                parts.append(_beside(f"{' ' * (names + 3)}{doing}"))
        if early and not any(task.attempts for task in tasks.values()):
            parts.append(_beside(f"  before the first task: {early[-1]}"))
        if len(chosen) < len(tasks):
            parts.append(_beside(f"  … and {len(tasks) - len(chosen)} more"))
        parts += map(_beside, last)
        return Constrain(Group(*parts), width - ROOM_FOR_CTRL_C)

    def _cells(self, task: TaskState) -> tuple[Any, ...]:
        mark, colour = MARKS[task.status]
        current = task.attempts[-1] if task.attempts else None
        elapsed = span(time.time() - current.started) if current and task.status in ACTIVE else ""
        return (
            Text(mark, style=colour),
            Text(task.task.id),
            Text(cut(task.task.title, LINE_CHARS)),
            Text(
                f"{STATUS_WORDS[task.status]}{f' #{current.number}' if current else ''}{price(task.cost_usd)}",
                style=colour,
            ),
            Text(elapsed),
        )

    def _doing(self, task: TaskState) -> str:
        """Say who works on a task, why it is not the first attempt, and what the agent last did; what a stuck one asks."""
        if task.status == "stuck":
            return cut(task.question, LINE_CHARS)
        if task.status not in ACTIVE:
            return ""
        if task.status == "waiting" and task.wait_until:
            return cut(waits(task.waits_on, task.wait_until, time.time()), LINE_CHARS)
        before = task.tries[-2].failure if len(task.tries) > 1 else None
        why = f"after {cut(before.says, WHY_CHARS)}" if before else ""
        parts = (
            cut_agent(task.current.agent, AGENT_CHARS) if task.attempts else "",
            self._did.get(task.task.id, ""),
            why,
        )
        return " · ".join(part for part in parts if part)


def _beside(line: str) -> Text:
    """Return a line that says more to who looks closer; it is cut, never broken."""
    return Text(line, style="dim", no_wrap=True, overflow="ellipsis")


def _chosen(state: RunState, tasks: dict[str, TaskState], room: int) -> list[TaskState]:
    """Choose what fits: first what runs and what is stuck, then what comes next, and the last that landed."""
    if len(tasks) <= room:
        return list(tasks.values())
    hidden = blocked_tasks(state)
    active = [task for task in tasks.values() if task.status in ACTIVE]
    stuck = [task for task in tasks.values() if task.status == "stuck"]
    ready = [
        tasks[name] for name in list(state.open)[: room * 2] if tasks[name].status == "pending" and name not in hidden
    ]
    done = sorted((task for task in tasks.values() if task.status == "complete"), key=lambda task: task.last_seq)[-3:]
    chosen = {task.task.id for task in (*active, *stuck[-4:], *done, *ready)[:room]}
    return [task for name, task in tasks.items() if name in chosen]


class Attached(Board):
    """The board, with a task chosen and its story."""

    def __init__(self, cwd: Path, run: str) -> None:
        from unstuck.app.inspect import Follower

        self._run = run
        self._follower = Follower(cwd)
        self._entries: list[Entry] = []
        self._chosen_task = ""
        self._story: list[str] | None = None
        self._top = 0
        super().__init__()

    def watch(self) -> None:
        """Show the run until a person leaves."""
        self.catch_up()
        tasks = self._state.tasks
        self._chosen_task = next(
            (name for name, task in tasks.items() if task.status == "stuck"), next(iter(tasks), "")
        )
        with suppress(KeyboardInterrupt), _keys() as keys, self:
            for key in keys:
                if key == "leave":
                    return
                self._press(key)
                self.catch_up()
                self._live.refresh()

    def catch_up(self) -> None:
        """Take in what the journal has new; what happened before is told by the board and not again."""
        first = not self._entries
        for entry in self._follower.news(self._run, self._state.seq):
            self._entries.append(entry)
            with self._lock:  # rich draws on a thread of its own
                self._state.apply(entry)
            if first and tells(entry):
                self._last.append(entry_line(entry))
            elif not first:
                self._entry(entry, self._state)
        for name, task in list(self._state.tasks.items()):
            if task.status in ACTIVE and (did := self._follower.doing(name)):
                self._activity(name, did)

    def _press(self, key: str) -> None:
        from unstuck.app.inspect import tools_used

        page = max(1, self._console.size.height - AROUND_STORY)
        moves = {"up": -1, "down": 1, "page up": -page, "page down": page}
        if self._story is not None:
            if key == "back":
                self._story = None
            self._top = max(0, min(self._top + moves.get(key, 0), len(self._story or ()) - page))
            return
        names = self._shown or list(self._state.tasks)
        at = names.index(self._chosen_task) if self._chosen_task in names else -1
        if key in moves and names:
            self._chosen_task = names[max(0, min(at + moves[key], len(names) - 1))]
        elif key == "enter" and self._chosen_task:
            view, name = self._follower.view(self._run, self._entries, self._state), self._chosen_task
            self._story, self._top = visible(story(view, name, tools_used(view, name))).splitlines(), 0

    def _draw(self) -> Any:
        if self._story is None:
            return Group(super()._draw(), _beside(HELP))
        page = max(1, self._console.size.height - AROUND_STORY)
        lines = self._story[self._top : self._top + page]
        shown = [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
        return Group(*shown, _beside(STORY_HELP))

    def _cells(self, task: TaskState) -> tuple[Any, ...]:
        cells = super()._cells(task)
        if task.task.id == self._chosen_task:
            for cell in cells[1:3]:
                cell.stylize("reverse")
        return cells


@contextmanager
def _keys() -> Iterator[Iterator[str]]:
    """Read the terminal key by key; it is as before afterwards."""
    stdin = sys.stdin.fileno()
    before = termios.tcgetattr(stdin)
    try:
        tty.setcbreak(stdin)
        yield _pressed(stdin)
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)


def _pressed(stdin: int) -> Iterator[str]:
    """Yield each key by its name, and an empty name whenever a tick has passed without one."""
    while True:
        ready, _, _ = select.select([stdin], [], [], TICK_SECONDS)
        typed = os.read(stdin, 64) if ready else b""
        if ready and not typed:
            yield "leave"
        yield from (KEYS.get(key, "") for key in KEY.findall(typed) or [b""])
