"""Edge: `status`, `show`, `diff`, `log` and `runs`: look at a run, change nothing."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from unstuck import compose
from unstuck.cli.options import as_json, run_option
from unstuck.cli.screen import render
from unstuck.cli.screen.fitting import patch_line, plain, span
from unstuck.cli.screen.saying import say
from unstuck.journal import Entry, iso, phase
from unstuck.tell import lineage_text

FOLLOW_SECONDS = 0.5
WATCH_SECONDS = 1.0


@click.command()
@click.option("--watch", is_flag=True, help="Show it again whenever something happens; ends with the supervisor.")
@run_option
@as_json
def status(*, watch: bool, run_id: str | None, as_json: bool) -> None:
    """Say where every task of the latest run stands, and who works on it."""
    seen = None
    while True:
        view = compose.look(Path.cwd(), run_id)
        if view.state.seq != seen or sys.stdout.isatty():
            if watch and not as_json:
                click.clear()  # nothing, where nobody looks at a screen
            say(json.dumps(_status_object(view)) if as_json else _status_text(view))
        seen = view.state.seq
        if not watch or view.owner is None:
            return
        run_id = view.run  # the one that was looked at first, whatever starts meanwhile
        time.sleep(WATCH_SECONDS)


def _status_text(view: compose.View) -> str:
    lines = [render.summary(view.summary)]
    if (owner := view.owner) is not None:
        since = span(time.time() - owner.since)
        lines.append(f"Supervisor: pid {owner.pid} on {owner.host.partition('/')[0]}, for {since}.")
    elif view.summary.exit_code is None:
        lines.append("No supervisor works on it. Go on with: unstuck resume")
    return "\n".join(lines)


def _status_object(view: compose.View) -> dict[str, Any]:
    told, owner = view.summary, view.owner
    return {
        "schema": 1,
        "run": view.run,
        "owner": {"pid": owner.pid, "host": owner.host.partition("/")[0], "since": owner.since} if owner else None,
        "exit": told.exit_code,
        "reason": told.reason,
        "seconds": round(told.seconds, 1),
        "cost_usd": told.cost_usd,
        "home": told.home,
        "landed": told.landed,
        "commands": [{"for": what, "type": command} for what, command in told.commands],
        "questions": [{"tasks": cause.tasks, "question": cause.question} for cause in told.questions],
        "cautions": told.cautions,
        "tasks": {row.id: {key: value for key, value in asdict(row).items() if key != "id"} for row in told.rows},
    }


@click.command()
@click.argument("task")
@click.option("--brief", is_flag=True, help="Print what its last session was told.")
@click.option("--diff", "patch", is_flag=True, help="Print what its last attempt changed, or what landed.")
@run_option
@as_json
def show(task: str, *, brief: bool, patch: bool, run_id: str | None, as_json: bool) -> None:
    """Tell the story of TASK: every attempt, what was seen, what was decided and why."""
    view = compose.look(Path.cwd(), run_id)
    task = view.named(task)
    if brief:
        say("\n".join(plain(line) for line in compose.brief_of(Path.cwd(), view, task).splitlines()))
        return
    if patch:
        _show_patch(compose.changed(Path.cwd(), view, task, None, stat=False))
        return
    if as_json:
        say(json.dumps({"schema": 1, **phase(view.state, task)}))
        return
    entries = [entry for entry in view.entries if _about(entry) == task]
    row = next(row for row in view.summary.rows if row.id == task)
    told = compose.tales(Path.cwd(), view, task)
    say(render.story(view.state.tasks[task], row, entries, told, lineage_text(view.state, task)))


@click.command()
@click.argument("task")
@click.argument("attempt", type=click.IntRange(1), required=False)
@click.option("--stat", is_flag=True, help="Only list the files and how much of them changed.")
@run_option
def diff(task: str, attempt: int | None, *, stat: bool, run_id: str | None) -> None:
    """Show the work of TASK as a patch: what landed, or what the last attempt, or the ATTEMPT named, left."""
    view = compose.look(Path.cwd(), run_id)
    _show_patch(compose.changed(Path.cwd(), view, view.named(task), attempt, stat=stat))


def _show_patch(patch: str) -> None:
    """Print a patch: what an agent wrote must not steer a terminal; a file gets it as it is."""
    lines = [patch_line(line) for line in patch.splitlines()] if sys.stdout.isatty() else [patch]
    say("\n".join(lines).removesuffix("\n"))


@click.command()
@as_json
def runs(*, as_json: bool) -> None:
    """List all runs of this repository: plan, how far each came, what it cost, and whether anybody works on it."""
    views = compose.all_runs(Path.cwd())
    if as_json:
        say(json.dumps({"schema": 1, "runs": [_run_object(view) for view in views]}))
        return
    for view in views:
        say(render.run_line(view.summary, view.state, live=view.owner is not None))


def _run_object(view: "compose.View") -> dict[str, Any]:
    started, result = view.state.started, view.summary
    return {
        "run": view.run,
        "plan": started.plan if started else None,
        "started_at": iso(view.state.created),
        "live": view.owner is not None,
        "exit": result.exit_code,
        "tasks": len(result.rows),
        "landed": result.count("complete"),
        "stuck": result.count("stuck"),
        "cost_usd": result.cost_usd,
        "seconds": round(result.seconds, 1),
    }


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on printing as things happen; ends with the run.")
@run_option
@as_json
def log(*, follow: bool, run_id: str | None, as_json: bool) -> None:
    """Print the journal of the latest run, one event per line."""
    for entry in _entries(run_id, follow=follow):
        say(compose.entry_json(entry) if as_json else render.entry_line(entry))


def _entries(run_id: str | None, *, follow: bool) -> Iterator[Entry]:
    seen = 0
    while True:
        view = compose.look(Path.cwd(), run_id)
        new = [entry for entry in view.entries if entry.seq > seen]
        yield from new
        seen = new[-1].seq if new else seen
        if not follow or (view.state.ended is not None and view.owner is None):
            return
        time.sleep(FOLLOW_SECONDS)


def _about(entry: Entry) -> str | None:
    request = getattr(entry.event, "request", None)
    return request.task if request is not None else getattr(entry.event, "task", None)
