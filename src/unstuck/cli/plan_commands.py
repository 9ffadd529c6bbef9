"""Edge: `plan` and `draft`: read and check a plan, let an agent write or mend one, and ask a person before anything of it runs."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unstuck.cli import json_option, say
from unstuck.cli.terminal_text import columns, cut, ending_on_interrupt, patch_line, plain
from unstuck.model.errors import BadUsage, InvalidPlan
from unstuck.model.plan import Plan, Problem, Task, execution_batches, plan_problems
from unstuck.model.text import counted
from unstuck.model.verdict import Check
from unstuck.plans.tasks_md import NOT_TEXT

if TYPE_CHECKING:
    from unstuck.app.draft import Draft, Drafting
    from unstuck.engine.stops import RunStop
    from unstuck.plans.review import Proposal
WAITS_FOR_A_PERSON = 3
PROOFS = {
    "red": ("✔", "green", "red on HEAD, as new work must be"),
    "guard": ("✔", "green", "a guard"),
    "green": ("✘", "red", "passes before any work"),
    "absent": ("✘", "red", "a program is missing"),
    "wavers": ("✘", "red", "not the same twice"),
    "changes": ("✘", "red", "changes files"),
}


@click.command()
@click.argument("path", metavar="PLAN", type=click.Path(path_type=Path))
@click.option("--format", "plan_format", metavar="NAME", help="The plan's format, where it is not recognised.")
@click.option("--repair", is_flag=True, help="Let an agent mend what makes it invalid, and show the change first.")
@click.option("--agent", metavar="NAME|COMMAND", help="Who repairs it; the first agent found, if left out.")
@click.option("--yes", is_flag=True, help="Replace the plan, and let proposed checks run, without asking.")
@json_option
def plan(
    path: Path, *, plan_format: str | None, repair: bool, agent: str | None, yes: bool, as_json: bool
) -> int | None:
    """Read and check PLAN: its tasks in batches, their checks, and what looks odd. Nothing is started."""
    from unstuck.app import settings
    from unstuck.app.settings import read_plan

    if repair:
        return _repaired(path, plan_format, agent, yes=yes, as_json=as_json)
    document = read_plan(path, plan_format=plan_format)
    found, gates = plan_problems(document), settings.gates(Path.cwd(), document.gates)
    if as_json:
        say(json.dumps(_plan_object(document, gates, found)))
    if found:
        readable = not any(NOT_TEXT in one.message for one in document.problems)
        mend = f"Correct these lines, or let an agent: `unstuck plan {path} --repair`. " if readable else ""
        from unstuck.compat.notices import plan_problems_text

        raise InvalidPlan(plan_problems_text(document, found), hint=f"{mend}Nothing was started.")
    if not as_json:
        say(plan_lines(document, gates))
    return None


def _plan_object(document: Plan, gates: Sequence[Check], found: Sequence[Problem]) -> dict[str, Any]:
    order = () if found else execution_batches(document)
    return {
        "schema": 1,
        "path": document.path,
        "format": document.format,
        "valid": not found,
        "tasks": [_task_object(task) for task in document.tasks],
        "batches": [one.tasks for one in order],
        "execution": [asdict(one) for one in order],
        "gates": [_check_object(gate) for gate in gates],
        "concerns": [asdict(one) for one in document.concerns],
        "problems": [asdict(one) for one in found],
    }


def _task_object(task: Task) -> dict[str, Any]:
    return asdict(task) | {"checks": [_check_object(check) for check in task.checks]}


def _check_object(check: Check) -> dict[str, Any]:
    """Return a check with the keys of the published schema."""
    values = asdict(check)
    values["found"] = values.pop("detected")
    return values


@click.command()
@click.argument("goal", metavar="GOAL|FILE|-")
@click.option("--agent", metavar="NAME|COMMAND", help="Who writes the plan; the first agent found, if left out.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default="tasks.md", show_default=True, help="Where the plan goes."
)  # fmt: skip
@click.option("--format", "plan_format", default="tasks.md", show_default=True, help="tasks.md, kiro or spec-kit.")
@click.option(
    "--yes", is_flag=True, help="Let the proposed checks run without asking: in a clone, and none that deletes."
)
@json_option
def draft(goal: str, *, agent: str | None, output: Path, plan_format: str, yes: bool, as_json: bool) -> int:
    """Let an agent write a plan from a GOAL, a FILE (a PRD, an issue), or standard input.

    Every check it proposes is listed for your yes, then run on HEAD, where it must be red, or be called a guard. What is
    wrong is handed back, in three rounds at most. Exit code 3: the plan is written, and its checks wait for your yes.
    """
    from unstuck.app.draft import difference, keep_patch, marked_text, put_plan

    if os.path.lexists(output):
        raise BadUsage(f"{output} is there already.", hint="Name another file with -o; nothing was started.")
    wanted = _wanted(goal)
    with ending_on_interrupt() as run_stop:
        made = _drafting(output, plan_format, agent, run_stop, yes=yes).write(wanted)
    if made.problems:
        kept = keep_patch(Path.cwd(), str(output), difference("", made, str(output)))
        return _refused(made, kept, as_json=as_json)
    text = made.text if made.approved else marked_text(Path.cwd(), made)
    put_plan(output, text)
    _tell_draft(made, str(output), as_json=as_json)
    if made.approved:
        say(f"Wrote {output}. Nothing of it was started. Next: unstuck run {output}", err=True)
        return _started(output, agent) if not (yes or as_json) else 0
    say(f"Wrote {output} with its checks marked as proposed: none of them was run, and none will be.", err=True)
    say(f"Read them, then say yes: unstuck plan {output} --repair", err=True)
    return WAITS_FOR_A_PERSON


def _started(plan: Path, agent: str | None) -> int:
    """Run the plan, if a person at a terminal wants that now."""
    if not (_at_terminal() and click.confirm("Start it now?", err=True)):
        return 0
    from unstuck.cli.run_commands import run  # only for a yes

    code: int = click.get_current_context().invoke(run, plan=plan, agents=(agent,) if agent else ())
    return code


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _repaired(path: Path, plan_format: str | None, agent: str | None, *, yes: bool, as_json: bool) -> int:
    """Let an agent mend a plan; a person sees the change before it replaces the file."""
    from unstuck.app.draft import difference, existing_plan, keep_patch, put_plan

    there = existing_plan(path, plan_format)
    if there.sound:
        say(f"{path} is a sound plan: nothing to repair.", err=True)
        return 0
    with ending_on_interrupt() as run_stop:
        made = _drafting(there.path, there.format, agent, run_stop, yes=yes).repair(there.text, there.own)
    patch = difference(there.text, made, str(path))
    if made.problems or not made.approved or not _may_replace(patch, path, yes=yes):
        kept = keep_patch(Path.cwd(), path.name, patch)
        if made.problems:
            return _refused(made, kept, as_json=as_json)
        _tell_draft(made, str(path), as_json=as_json)
        say(f"{path} is as it was: nobody has said yes. What would change is in {kept}", err=True)
        return WAITS_FOR_A_PERSON
    put_plan(there.path, made.text)
    _tell_draft(made, str(path), as_json=as_json)
    say(f"Repaired {path}. Nothing of it was started. Next: unstuck run {path}", err=True)
    return 0


def _drafting(output: Path, plan_format: str, agent: str | None, run_stop: "RunStop", *, yes: bool) -> "Drafting":
    from unstuck.app.draft import Drafting, place_of

    cwd = Path.cwd()
    return Drafting(
        cwd=cwd,
        file=place_of(cwd, output),
        format=plan_format,
        agents=(agent,) if agent else (),
        run_stop=run_stop,
        consent=lambda asked: _consents(asked, yes=yes),
        seen=lambda _, line: say(click.style(f"  … {plain(line)}", dim=True), err=True),
    )


def _wanted(goal: str) -> str:
    """Return the goal: what stands in a file of that name, on standard input, or the words themselves."""
    from unstuck.app.draft import goal_in

    found = sys.stdin.read() if goal == "-" else goal_in(goal)
    text = goal if found is None else found
    if not text.strip():
        raise BadUsage("There is no goal to make a plan for.", hint="Say in a sentence what should be true afterwards.")
    return text


def _consents(asked: "Sequence[Proposal]", *, yes: bool) -> bool:
    """List the commands in full, and ask; without a terminal only --yes is a yes."""
    safe = [one for one in asked if not one.effect]
    say(f"The agent proposes {counted(len(asked), 'command')} to check the work by:", err=True)
    for one in asked:
        warning = click.style(f"  ! {one.effect}; it is not run", fg="red") if one.effect else ""
        first, *rest = one.command.splitlines() or [""]
        say(f"  {one.task or 'gate':<6} {first}{warning}", err=True)
        for line in rest:
            say(f"         {line}", err=True)
    if yes:
        return True
    if not _at_terminal():
        say("Nobody is here to say yes, and --yes was not given: none of them is run.", err=True)
        return False
    what = "it" if len(safe) == 1 else f"these {len(safe)}"
    return click.confirm(f"Run {what} in a clone of HEAD, to see what they say before any work?", err=True)


def _may_replace(patch: str, path: Path, *, yes: bool) -> bool:
    if yes or not patch:
        return True
    say("\n".join(patch_line(line) for line in patch.splitlines()), err=True)
    return _at_terminal() and click.confirm(f"Change {path} like this?", err=True)


def _refused(made: "Draft", kept: Path, *, as_json: bool) -> int:
    """Say what is still wrong after the last round; the draft is kept as a patch, which nobody runs by mistake."""
    if as_json:
        say(json.dumps(_draft_object(made, None)))
    lines = [f"  {concern(one)}" for one in made.problems]
    many = counted(len(made.problems), "problem")
    draft = f"The last draft is in {kept}: correct it by hand, say" if made.text.strip() else "Say"
    raise InvalidPlan(
        "\n".join([f"After {made.rounds} rounds the plan still has {many}:", *lines]),
        hint=f"{draft} more in the goal, or name another agent.",
    )


def _tell_draft(made: "Draft", path: str, *, as_json: bool) -> None:
    from unstuck.app import settings

    if as_json:
        say(json.dumps(_draft_object(made, path)))
        return
    say(plan_lines(made.plan, settings.gates(Path.cwd(), made.plan.gates)))
    if made.proofs:
        say(f"\nProof, on HEAD (round {made.rounds}):" if made.rounds else "\nProof, on HEAD:")
    for proof in made.proofs:
        mark, colour, words = PROOFS[proof.showing]
        say(f"  {click.style(mark, fg=colour)} {proof.task}  {plain(proof.command)}  ({words})")


def _draft_object(made: "Draft", path: str | None) -> dict[str, Any]:
    return {
        "schema": 1,
        "path": path,
        "format": made.plan.format,
        "agent": made.agent,
        "rounds": made.rounds,
        "valid": made.sound,
        "approved": made.approved,
        "tasks": [{"id": task.id, "title": task.title} for task in made.plan.tasks],
        "proposals": [asdict(one) for one in made.proposals],
        "proofs": [
            {"task": one.task, "command": one.command, "standing": one.showing, "says": one.says} for one in made.proofs
        ],
        "problems": [asdict(one) for one in made.problems],
    }


def plan_lines(document: Plan, gates: Sequence[Check]) -> str:
    """Show a plan as it will be run: its tasks in batches, what checks them, and what looks odd."""
    tasks = {task.id: task for task in document.tasks}
    width = max((columns(task.shown) for task in document.tasks), default=0)
    settled = sum(task.done or task.skipped for task in document.tasks)
    lines = [f"{document.path} ({document.format}): {counted(len(tasks), document.noun)}, {settled} done already", ""]
    for number, batch in enumerate(execution_batches(document), 1):
        together = f"Batch {number}, side by side" if batch.parallel and document.phased else f"Step {number}"
        lines.append(f"{together}{', one after the other' if len(batch.tasks) > 1 and not batch.parallel else ''}")
        for task in (tasks[name] for name in batch.tasks):
            beside = "  side by side" if task.group else f"  fixes {task.fixes}" if task.fixes else ""
            points = f"  {task.estimate} points" if task.estimate.isdigit() else ""
            lines.append(
                f"  {task.shown.ljust(width)}  {cut(task.title)}  [{_checked(task, len(gates))}]{points}{beside}"
            )
    lines += _commands(document, gates)
    if document.concerns:
        lines += ["", "Worth a look (none of this stops a run):"]
        lines += [f"  {concern(one)}" for one in document.concerns]
    return "\n".join(lines)


def _commands(document: Plan, gates: Sequence[Check]) -> list[str]:
    """List every command that a run will start by itself, agents aside."""
    after = [(check, "after every task") for check in gates]
    own = [(one, task.shown) for task in document.tasks if not task.done and not task.skipped for one in task.checks]
    lines = []
    for one, when in (*own, *after):
        first, *rest = [plain(line) for line in one.command.splitlines()] or [""]
        lines += [f"  {first}  ({when})", *(f"    {line}" for line in rest)]  # a script keeps its lines
    return ["", "Commands that will be run:", *lines] if lines else []


def concern(one: Problem) -> str:
    """Tell something that is worth a look, in one line."""
    return plain(f"{f'line {one.line}: ' if one.line else ''}{one.message} {one.hint}".rstrip())


def _checked(task: Task, checks: int) -> str:
    if task.done or task.skipped:
        return "done" if task.done else "skipped"
    return counted(len(task.checks) + checks, "check") if task.checks or checks else "nothing checks it"
