"""What is worth knowing about work that landed: it passed, and yet a person may want to look."""

from collections.abc import Iterator

from unstuck.journal import RunState, TaskState
from unstuck.tell.text import one_line

LINE_CHARS = 200
NAMED = 5


def cautions(state: RunState) -> tuple[str, ...]:
    """Gather what was noticed in all tasks, each thing once with the tasks that it holds for."""
    found: dict[str, list[str]] = {}
    for name, task in state.tasks.items():
        for line in dict.fromkeys(_of_task(task)):
            found.setdefault(line, []).append(name)
    return tuple(f"{_tasks(names)}: {line}" for line, names in found.items())


def _of_task(task: TaskState) -> Iterator[str]:
    """Yield what the last verdict has against work that landed, and what its agent was not allowed."""
    verdict = task.attempts[-1].verdict if task.attempts else None
    if verdict is not None and task.status == "complete":
        yield from (one_line(str(remark), LINE_CHARS) for remark in verdict.remarks if remark.severity != "reject")
        for result in verdict.results:
            if result.although:
                yield one_line(f"`{result.command}` is red, and excused: {result.although}", LINE_CHARS)
            elif result.idle:
                yield one_line(f"`{result.command}` says nothing: {result.idle}", LINE_CHARS)
    denied = [call for attempt in task.attempts if attempt.outcome for call in attempt.outcome.denied]
    yield from (one_line(f"its agent was not allowed {call}", LINE_CHARS) for call in dict.fromkeys(denied))


def _tasks(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
