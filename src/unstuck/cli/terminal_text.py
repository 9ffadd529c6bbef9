"""Edge: Fit text to a terminal: how wide it is, short enough or broken between words, and without what would steer it; show steps there."""

import os
import re
import shutil
import signal
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from unstuck.cli import say
from unstuck.model.text import one_line

if TYPE_CHECKING:
    from unstuck.engine.stops import RunStop

LINE_CHARS = 300
TITLE_CHARS = 56
TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
SHOWN_FILES = 5
COMMAND = "      "
WHOLE = re.compile(rf"  \| |{COMMAND}|- .*`")
"""What is not broken: a program's output, a command on its own line, an item that names one."""
BEFORE_TEXT = re.compile(r"  \d\d:\d\d:\d\d +\d+  |  \d[\w., ]*: | *(?:- |\d+\. )?")
"""What stands before the text of a line: a time and a number, a task, or blanks and a bullet."""
PATCH = {"+++": None, "---": None, "+": "green", "-": "red", "@@": "cyan"}
INTERRUPTED = 130


def clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def price(cost_usd: float | None) -> str:
    """Return what something cost, behind a blank; nothing where nobody says."""
    return "" if cost_usd is None else f" ${cost_usd:.2f}"


def span(seconds: float) -> str:
    """Say how long something took: 7 s, 3:05, 2:14:09."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}" if minutes else f"{seconds:.1f} s" if seconds < 10 else f"{rest} s"  # noqa: PLR2004  # one decimal where it tells something


def cut(text: str, limit: int = TITLE_CHARS) -> str:
    """Fold text into one line that takes at most `limit` columns of a terminal."""
    return cut_columns(one_line(TERMINAL_CODES.sub("", text), limit), limit)


def cut_agent(command: str, limit: int) -> str:
    """Shorten an agent's command: of a long path its end tells more."""
    program, _, rest = command.partition(" ")
    short = len(command) <= limit or not program.startswith(("/", ".", "~"))
    return cut(command if short else f"…/{program.rpartition('/')[2]} {rest}".rstrip(), limit)


def plain(line: str, limit: int = LINE_CHARS) -> str:
    """Return a line of a program's output without what would steer a terminal; its indentation stays."""
    clean = TERMINAL_CODES.sub("", line).expandtabs()
    return "".join(char for char in clean if char.isprintable())[:limit]


def first_few(names: Sequence[str]) -> str:
    """Name the first few files, and how many more there are."""
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return ", ".join(plain(name) if name.isprintable() else repr(name) for name in names[:SHOWN_FILES]) + more


def width() -> int:
    """Return the width to keep to; a file may be as wide as it likes, unless somebody says otherwise."""
    return shutil.get_terminal_size().columns if _is_known() else 200


def _is_known() -> bool:
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def fitted(lines: Iterable[str]) -> str:
    """Join lines; on a terminal, break those that are too long between words. Commands and quotations stay whole."""
    room, fenced, told = width() if _is_known() else sys.maxsize, False, []
    for line in lines:
        fenced ^= line.startswith("```")
        whole = fenced or columns(TERMINAL_CODES.sub("", line)) <= room or WHOLE.match(line)
        told += [line] if whole else _broken(line, room)
    return "\n".join(told)


def _broken(line: str, room: int) -> list[str]:
    head = BEFORE_TEXT.match(line)
    margin = " " * min(len(head[0]) if head else 0, room // 2)
    return textwrap.wrap(line, room, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)


def patch_line(line: str) -> str:
    """Return a line of a patch for a terminal."""
    colour = next((colour for sign, colour in PATCH.items() if line.startswith(sign)), None)
    return click.style(plain(line, sys.maxsize), fg=colour)


def columns(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def cut_columns(line: str, limit: int) -> str:
    """Shorten a line until it takes at most `limit` columns."""
    while columns(line) > limit:
        line = line.rstrip("…")[:-1] + "…"
    return line


def show_step(_task: str, line: str) -> None:
    """Show a set-up command or a check as it starts and ends; beside the result, which others may read."""
    say(click.style(to_width(f"  … {plain(line)}"), dim=True), err=True)


def to_width(line: str) -> str:
    """Cut a line to the width of the terminal that it goes to, if it goes to one."""
    return cut_columns(line, shutil.get_terminal_size().columns) if sys.stderr.isatty() else line


@contextmanager
def ending_on_interrupt() -> Iterator["RunStop"]:
    """Let Ctrl-C end what runs in a slot, and then the command; give what stops it."""
    from unstuck.engine.stops import RunStop

    run_stop = RunStop(drain_seconds=0.0)
    before = signal.signal(signal.SIGINT, lambda *_: run_stop.end_at_once("It was interrupted.", INTERRUPTED))
    try:
        yield run_stop
    finally:
        signal.signal(signal.SIGINT, before)
