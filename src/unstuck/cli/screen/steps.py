"""Edge: Show what is run in a slot, step by step, and let Ctrl-C end it."""

import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from unstuck.cli.screen.columns import cut_columns
from unstuck.cli.screen.fitting import plain
from unstuck.cli.screen.saying import say
from unstuck.line import Stopper

INTERRUPTED = 130


def show_step(_task: str, line: str) -> None:
    """Show a set-up command or a check as it starts and ends; beside the result, which others may read."""
    say(click.style(to_width(f"  … {plain(line)}"), dim=True), err=True)


def to_width(line: str) -> str:
    """Cut a line to the width of the terminal that it goes to, if it goes to one."""
    return cut_columns(line, shutil.get_terminal_size().columns) if sys.stderr.isatty() else line


@contextmanager
def ending_on_interrupt(stopper: Stopper) -> Iterator[None]:
    """Let Ctrl-C end what runs in a slot, and then the command."""
    before = signal.signal(signal.SIGINT, lambda *_: stopper.at_once("It was interrupted.", INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
