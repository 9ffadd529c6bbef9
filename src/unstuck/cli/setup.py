"""Edge: `init` and `doctor`: write a first configuration, and say what is missing."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from unstuck import compose
from unstuck.cli.saying import say

MARKS = {"ok": ("✔", "green"), "note": ("!", "yellow"), "bad": ("✘", "red")}
MISSING = 69


@click.command()
@click.option("--force", is_flag=True, help="Replace an unstuck.toml that is there; the old one is kept beside it.")
def init(*, force: bool) -> None:
    """Write unstuck.toml: the agents found on PATH, the checks and set-up that fit this repository."""
    written = compose.write_config(Path.cwd(), force=force)
    say(written.text)
    for note in written.notes:
        say(f"Note: {note}", err=True)
    say(f"Wrote {written.path}. Read it through, commit it, then: unstuck doctor", err=True)


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
