"""Edge: `init` and `doctor`: write a first configuration, and say what is missing."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from unstuck import compose
from unstuck.cli.screen.fitting import plain
from unstuck.cli.screen.saying import say, show_step
from unstuck.line import Stopper

MARKS = {"ok": ("✔", "green"), "note": ("!", "yellow"), "bad": ("✘", "red")}
MISSING, INTERRUPTED = 69, 130


@click.command()
@click.option("--force", is_flag=True, help="Replace an unstuck.toml that is there; the old one is kept beside it.")
@click.option("--no-run", is_flag=True, help="Write what fits without setting anything up or running it.")
def init(*, force: bool, no_run: bool) -> None:
    """Write unstuck.toml: the set-up and the checks that fit this repository, each run on HEAD in a slot of its own."""
    initiation = compose.Initiation(Path.cwd(), force=force)
    with _ending_on_interrupt(initiation.stopper):
        written = initiation.write(None if no_run else show_step)
    say(written.text)
    for note in written.notes:
        say(f"Note: {plain(note)}", err=True)
    say(f"Wrote {written.path}. Read it through and commit it, then: unstuck go 'What should be done'", err=True)


@contextmanager
def _ending_on_interrupt(stopper: Stopper) -> Iterator[None]:
    """Let Ctrl-C end what runs in a slot, and then the command."""
    before = signal.signal(signal.SIGINT, lambda *_: stopper.at_once("It was interrupted.", INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(*, as_json: bool) -> int:
    """Say what a run would miss here, what an earlier one left over, and what to do about each."""
    findings = compose.examine(Path.cwd())
    if as_json:
        say(json.dumps({"schema": 1, "findings": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            mark, colour = MARKS[finding.grade]
            say(f"{click.style(mark, fg=colour)} {finding.about}: {finding.says}")
            if finding.remedy:
                say(f"    {finding.remedy}")
    return MISSING if any(finding.grade == "bad" for finding in findings) else 0
