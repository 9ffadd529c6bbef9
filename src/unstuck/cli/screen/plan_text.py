"""Edge: A plan as people read it: its tasks in batches, the commands that will be run, and what looks odd."""

from collections.abc import Sequence

from unstuck.cli.screen.columns import columns
from unstuck.cli.screen.fitting import cut, plain
from unstuck.plans import Check, Plan, Problem, Task, execution
from unstuck.tell import counted


def plan(document: Plan, gates: Sequence[Check]) -> str:
    """Show a plan as it will be run: its tasks in batches, what checks them, and what looks odd."""
    tasks = {task.id: task for task in document.tasks}
    width = max((columns(task.shown) for task in document.tasks), default=0)
    settled = sum(task.done or task.skipped for task in document.tasks)
    lines = [
        f"{document.path} ({document.format}): {counted(len(tasks), document.noun)}, {settled} done already",
        "",
    ]
    for number, batch in enumerate(execution(document), 1):
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
    lines = [line for check, when in (*own, *after) for line in _command(check.command, when)]
    return ["", "Commands that will be run:", *lines] if lines else []


def _command(command: str, when: str) -> list[str]:
    """Tell a command and when it is run; a script keeps its lines."""
    first, *rest = [plain(line) for line in command.splitlines()] or [""]
    return [f"  {first}  ({when})", *(f"    {line}" for line in rest)]


def concern(one: Problem) -> str:
    """Tell something that is worth a look, in one line."""
    return plain(f"{f'line {one.line}: ' if one.line else ''}{one.message} {one.hint}".rstrip())


def _checked(task: Task, checks: int) -> str:
    if task.done or task.skipped:
        return "done" if task.done else "skipped"
    return counted(len(task.checks) + checks, "check") if task.checks or checks else "nothing checks it"
