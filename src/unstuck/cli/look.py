"""Edge: `plan`, `status`, `show` and `log`: look at a plan or a run, change nothing."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from unstuck import compose
from unstuck.cli import render
from unstuck.errors import InvalidPlan
from unstuck.journal import Entry, phase
from unstuck.plans import Plan, execution
from unstuck.tell import lineage_text, problems

FOLLOW_SECONDS = 0.5


def as_json(command: Any) -> Any:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


@click.command(epilog="Example:\n\n\b\n  unstuck plan specs/login")
@click.argument("path", metavar="PLAN", type=click.Path(path_type=Path))
@click.option("--format", "plan_format", metavar="NAME", help="The plan's format, where it is not recognised.")
@as_json
def plan(path: Path, *, plan_format: str | None, as_json: bool) -> None:
    """Read and check PLAN: its tasks in batches, their checks, and what looks odd. Nothing is started."""
    document = compose.read_plan(path, plan_format=plan_format)
    message = problems(document)
    if as_json:
        click.echo(json.dumps(_plan_object(document, valid=not message)))
    if message:
        raise InvalidPlan(message, hint="Correct these lines. Nothing was started.")
    if not as_json:
        click.echo(render.plan(document, compose.gates(Path.cwd(), document.gates)))


@click.command()
@as_json
def status(*, as_json: bool) -> None:
    """Say where every task of the latest run stands, and who works on it."""
    view = compose.look(Path.cwd())
    owner = view.owner
    if as_json:
        rows = {row.id: {key: value for key, value in asdict(row).items() if key != "id"} for row in view.summary.rows}
        who = {"pid": owner.pid, "host": owner.host.partition("/")[0], "since": owner.since} if owner else None
        click.echo(
            json.dumps({"schema": 1, "run": view.run, "owner": who, "exit": view.summary.exit_code, "tasks": rows})
        )
        return
    click.echo(render.summary(view.summary))
    if owner is not None:
        click.echo(
            f"Supervisor: pid {owner.pid} on {owner.host.partition('/')[0]}, for {render.span(time.time() - owner.since)}."
        )
    elif view.summary.exit_code is None:
        click.echo("No supervisor works on it. Go on with: unstuck resume")


@click.command()
@click.argument("task")
@as_json
def show(task: str, *, as_json: bool) -> None:
    """Tell the story of TASK: every attempt, what was seen, what was decided and why."""
    view = compose.look(Path.cwd())
    task = view.named(task)
    if as_json:
        click.echo(json.dumps({"schema": 1, **phase(view.state, task)}))
        return
    entries = [entry for entry in view.entries if _about(entry) == task]
    status = next(row.status for row in view.summary.rows if row.id == task)
    click.echo(render.story(view.state.tasks[task], status, entries, lineage_text(view.state, task)))


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on printing as things happen; ends with the run.")
@as_json
def log(*, follow: bool, as_json: bool) -> None:
    """Print the journal of the latest run, one event per line."""
    for entry in _entries(follow=follow):
        click.echo(compose.entry_json(entry) if as_json else render.entry_line(entry))


def _entries(*, follow: bool) -> Iterator[Entry]:
    seen = 0
    while True:
        view = compose.look(Path.cwd())
        new = [entry for entry in view.entries if entry.seq > seen]
        yield from new
        seen = new[-1].seq if new else seen
        if not follow or (view.state.ended is not None and view.owner is None):
            return
        time.sleep(FOLLOW_SECONDS)


def _about(entry: Entry) -> str | None:
    request = getattr(entry.event, "request", None)
    return request.task if request is not None else getattr(entry.event, "task", None)


def _plan_object(document: Plan, *, valid: bool) -> dict[str, Any]:
    order = execution(document) if valid else ()
    return {
        "schema": 1,
        "path": document.path,
        "format": document.format,
        "valid": valid,
        "tasks": [asdict(task) for task in document.tasks],
        "batches": [one.tasks for one in order],
        "execution": [asdict(one) for one in order],
        "gates": [asdict(one) for one in document.gates],
        "concerns": [asdict(one) for one in document.concerns],
        "problems": [asdict(one) for one in compose.plan_problems(document)],
    }
