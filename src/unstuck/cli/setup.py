"""Edge: `init` and `doctor`: write a first configuration, and say what is missing."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from unstuck import compose
from unstuck.cli.screen.fitting import plain
from unstuck.cli.screen.saying import say
from unstuck.cli.screen.steps import ending_on_interrupt, show_step
from unstuck.line import Stopper

MARKS = {"ok": ("✔", "green"), "note": ("!", "yellow"), "bad": ("✘", "red")}
MISSING = 69


@click.command()
@click.option("--force", is_flag=True, help="Replace an unstuck.toml that is there; the old one is kept beside it.")
@click.option("--no-run", is_flag=True, help="Write what fits without setting anything up or running it.")
def init(*, force: bool, no_run: bool) -> None:
    """Write unstuck.toml: the set-up and the checks that fit this repository, each run on HEAD in a slot of its own."""
    initiation = compose.Initiation(Path.cwd(), force=force)
    with ending_on_interrupt(initiation.stopper):
        written = initiation.write(None if no_run else show_step)
    say(written.text)
    for note in written.notes:
        say(f"Note: {plain(note)}", err=True)
    say(f"Wrote {written.path}. Read it through and commit it, then: unstuck go 'What should be done'", err=True)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--no-run", is_flag=True, help="Set no slot up to look where the checks run.")
def doctor(*, as_json: bool, no_run: bool) -> int:
    """Say what a run would miss here, what an earlier one left over, and what to do about each."""
    stopper = Stopper(drain=0.0)
    with ending_on_interrupt(stopper):
        findings = compose.examine(Path.cwd(), stopper=stopper, seen=None if no_run else show_step)
    if as_json:
        say(json.dumps({"schema": 1, "findings": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            mark, colour = MARKS[finding.grade]
            say(f"{click.style(mark, fg=colour)} {finding.about}: {finding.says}")
            if finding.remedy:
                say(f"    {finding.remedy}")
    return MISSING if any(finding.grade == "bad" for finding in findings) else 0
