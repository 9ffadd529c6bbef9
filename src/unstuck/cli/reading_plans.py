"""Edge: `plan`: read and check a plan; nothing of a run is loaded for it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from unstuck import compose
from unstuck.cli.options import as_json
from unstuck.cli.screen import plan_text
from unstuck.cli.screen.saying import say
from unstuck.errors import InvalidPlan
from unstuck.plans import Plan, execution
from unstuck.tell import problems


@click.command(epilog="Example:\n\n\b\n  unstuck plan specs/login")
@click.argument("path", metavar="PLAN", type=click.Path(path_type=Path))
@click.option("--format", "plan_format", metavar="NAME", help="The plan's format, where it is not recognised.")
@click.option("--repair", is_flag=True, help="Let an agent mend what makes it invalid, and show the change first.")
@click.option("--agent", metavar="NAME|COMMAND", help="Who repairs it; the first agent found, if left out.")
@click.option("--yes", is_flag=True, help="Replace the plan, and let proposed checks run, without asking.")
@as_json
def plan(
    path: Path, *, plan_format: str | None, repair: bool, agent: str | None, yes: bool, as_json: bool
) -> int | None:
    """Read and check PLAN: its tasks in batches, their checks, and what looks odd. Nothing is started."""
    if repair:
        from unstuck.cli.draft import repair as mend  # noqa: PLC0415  # few plans need it

        return mend(path, plan_format, agent, yes=yes, as_json=as_json)
    document = compose.read_plan(path, plan_format=plan_format)
    message = problems(document)
    if as_json:
        say(json.dumps(_plan_object(document, valid=not message)))
    if message:
        raise InvalidPlan(
            message, hint=f"Correct these lines, or let an agent: `unstuck plan {path} --repair`. Nothing was started."
        )
    if not as_json:
        say(plan_text.plan(document, compose.gates(Path.cwd(), document.gates)))
    return None


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
