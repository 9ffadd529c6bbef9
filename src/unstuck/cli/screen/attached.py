"""Edge: The board of a run that somebody else works on, or nobody any more; the story of a task on enter."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from unstuck import compose
from unstuck.cli.screen.board import ACTIVE, Board, Lines, tells
from unstuck.cli.screen.render import entry_line, story
from unstuck.journal import Entry, RunState, TaskState
from unstuck.tell import lineage_text, visible

TICK_SECONDS = 0.25
KEYS = {
    b"\x1b[A": "up", b"k": "up", b"\x1b[B": "down", b"j": "down", b"\x1b[5~": "page up", b"\x1b[6~": "page down",
    b" ": "page down", b"\r": "enter", b"\n": "enter", b"\x1b": "back", b"\x7f": "back", b"q": "leave", b"\x03": "leave",
}  # fmt: skip
HELP = "↑ ↓ choose   enter its story   q leave (the run goes on)"
STORY_HELP = "↑ ↓ scroll   esc back   q leave"
AROUND_STORY = 2


class Attached(Board):
    """The board, with a task chosen and its story."""

    def __init__(self, cwd: Path, run: str) -> None:
        self._cwd, self._run = cwd, run
        self._follower = compose.Follower(cwd)
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
            self._story, self._top = self._tell(self._chosen_task), 0

    def _tell(self, name: str) -> list[str]:
        view = compose.View(
            run=self._run, entries=tuple(self._entries), state=self._state, owner=self._follower.owner(self._run)
        )
        row = next(row for row in view.summary.rows if row.id == name)
        told = story(
            self._state.tasks[name],
            row,
            [entry for entry in self._entries if getattr(entry.event, "task", None) == name],
            compose.tales(self._cwd, view, name),
            lineage_text(self._state, name),
        )
        return visible(told).splitlines()

    def _draw(self) -> Any:
        from rich.console import Group  # noqa: PLC0415  # rich is heavy and only needed here
        from rich.text import Text  # noqa: PLC0415  # as above

        if self._story is None:
            return Group(super()._draw(), Text(HELP, style="dim", no_wrap=True, overflow="ellipsis"))
        page = max(1, self._console.size.height - AROUND_STORY)
        lines = self._story[self._top : self._top + page]
        shown = [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
        return Group(*shown, Text(STORY_HELP, style="dim", no_wrap=True, overflow="ellipsis"))

    def _cells(self, task: TaskState) -> tuple[Any, ...]:
        cells = super()._cells(task)
        if task.task.id == self._chosen_task:
            for cell in cells[1:3]:
                cell.stylize("reverse")
        return cells


def follow_lines(cwd: Path, run: str) -> None:
    """Print a run's events as lines until its supervisor is gone: for who has no terminal to draw on."""
    follower, state, lines = compose.Follower(cwd), RunState(), Lines()
    while True:
        owner = follower.owner(run)
        for entry in follower.news(run, state.seq):
            state.apply(entry)
            lines.watcher.entry(entry, state)
        if owner is None:
            return
        time.sleep(TICK_SECONDS)


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
        yield KEYS.get(typed, KEYS.get(typed[:1], "") if not typed.startswith(b"\x1b") else "")
