"""Edge: `verify`: run the checks and the tamper audit by hand."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from unstuck.cli import json_option, say
from unstuck.cli.terminal_text import ending_on_interrupt, first_few, plain, show_step, span
from unstuck.model.verdict import CheckResult, Verdict
from unstuck.reports.verdict_formats import check_object

EXITS = {"pass": 0, "fail": 1, "inconclusive": 3}
MARKS = {"pass": ("✔", "green"), "fail": ("✘", "red"), "inconclusive": ("·", "yellow")}
COLOURS = {"reject": "red", "ask": "yellow", "warn": "cyan"}
SHOWN_LINES = 15
OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("name", metavar="[TASK|COMMIT]", required=False)
@click.option(
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    help="Judge the commit as the work on a task that names this path.",
)
@click.option("--no-cache", is_flag=True, help="Run every check, though it passed on the same tree before.")
@click.option("--sarif", type=OUTPUT, metavar="FILE", help="Write the audit's findings as SARIF.")
@click.option("--junit", type=OUTPUT, metavar="FILE", help="Write the checks as JUnit XML.")
@json_option
def verify(
    name: str | None, *, files: tuple[str, ...], no_cache: bool, sarif: Path | None, junit: Path | None, as_json: bool
) -> int:
    """Run the checks and the tamper audit in a clean checkout: of a task's last work, of a commit, or of HEAD.

    Exit code 0: everything holds. 1: something fails or is refused. 3: nobody can tell, a person is asked.
    """
    from unstuck.app.verify_command import verify_by_hand, write_findings

    with ending_on_interrupt() as run_stop:
        done = verify_by_hand(Path.cwd(), name, files, run_stop, show_step, cache=not no_cache)
    verdict = done.verdict
    if as_json:
        told = {"what": done.what, **_object(verdict), "uncommitted": [*map(plain, done.unseen)]}
        say(json.dumps({"schema": 1, **told, "seconds": round(done.seconds, 3)}))
    else:
        say(_told(done.what, verdict, done.seconds))
    if done.unseen:
        say(
            f"Not looked at, because no commit holds it: {first_few(done.unseen)}. Commit it, and verify again.",
            err=True,
        )
    write_findings(verdict, done.what, sarif=sarif, junit=junit)
    return EXITS[verdict.status]


def _object(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": verdict.status,
        "reason": verdict.reason or None,
        "base": verdict.base,
        "tree": verdict.tree,
        "checks": [check_object(result) for result in verdict.results],
        "findings": [asdict(remark) for remark in verdict.remarks],
    }


def _told(what: str, verdict: Verdict, seconds: float) -> str:
    lines = [f"{plain(what)} (tree {verdict.tree[:12]} on {verdict.base[:12]})"]
    lines += [""] if verdict.results else ["", "  · nothing to run: name checks under [checks] in unstuck.toml"]
    for result in verdict.results:
        lines += _check(result)
    if verdict.remarks:
        lines += ["", "About the change:"]
        lines += [
            f"  {click.style(remark.severity.ljust(6), fg=COLOURS[remark.severity])}  {plain(str(remark))}  [{remark.rule}]"
            for remark in verdict.remarks
        ]
    why = f": {plain(verdict.reason)}" if verdict.reason else ""
    return "\n".join([*lines, "", f"Verdict: {verdict.status}{why} ({span(seconds)})"])


def _check(result: CheckResult) -> list[str]:
    mark, colour = MARKS[result.status]
    facts = [span(result.ended.seconds)] if result.runs and not result.cached else []
    if result.cached:
        facts.append("passed on this tree before")
    if result.counts:
        counts = result.counts
        facts.append(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    if result.flaky:
        facts.append(f"flaky: run {result.runs} times")
    if result.repaired:
        facts.append(f"it changed {', '.join(plain(path) for path in result.repaired[:SHOWN_LINES])}")
    facts += [part for part in (result.excused_because, result.not_meaningful_because) if part]
    lines = [f"  {click.style(mark, fg=colour)} {plain(result.command)}  ({'; '.join(facts)})"]
    if result.status == "fail":
        lines.append(f"    exit code {result.ended.exit_code}, all of its output: {result.log}")
        lines += [f"    fails: {plain(test)}" for test in result.tests[:SHOWN_LINES]]
        lines += [f"    | {plain(line)}" for line in result.ended.tail.splitlines()[-SHOWN_LINES:]]
    return lines
