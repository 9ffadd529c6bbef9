"""What a stuck task tells a person: Auto-Claude's report, the one question that needs an answer, and every way on."""

from collections.abc import Iterable, Sequence

from unstuck.decide import Rollback
from unstuck.diagnosis import Failure, read
from unstuck.journal import AttemptState, TaskState
from unstuck.tell.asking import question
from unstuck.tell.text import one_line, quoted

LINE_CHARS = 300
DETAIL_CHARS = 4000
MANY_FILES = 20


def escalation(task: TaskState, lineage: str = "", blocks: Sequence[str] = (), *, supervised: bool = True) -> str:
    """Write the report of a stuck task; `lineage`: what it repairs and what repairs it, `blocks`: what waits for it.

    In a loop of somebody's own, which is not `supervised`, our commands are no way on.
    """
    name = task.task.id
    parts = [
        f"## Stuck Subtask: {name}",
        _part("Summary", [one_line(line, LINE_CHARS) for line in (*task.question.splitlines(), lineage) if line]),
        _part("Attempts Made", _attempts(task)),
        _part("Error Details", [_details(_failure(task))]),
        _part("Files Involved", _files(task)),
        _part(
            "Recommended Actions",
            [
                "- [ ] Review error logs",
                "- [ ] Check external dependencies",
                "- [ ] Consider alternative approach",
            ],
        ),
        _part("Question", [question(task)]),
    ]
    ours = [
        _part("What It Blocks", [f"- {name}" for name in blocks] or ["- nothing: all other tasks can go on"]),
        _part("Rollback", [_rollback(task)]),
        _part(
            "Ways On",
            [
                f"- `unstuck answer {name} 'TEXT'` to answer it; the agent reads it",
                f"- `unstuck retry {name} --hint 'TEXT'` to try again",
                f"- `unstuck accept {name} --because 'TEXT'` if the work is right as it is",
                f"- `unstuck skip {name}` to go on without it",
                f"- `unstuck reset {name}` to begin anew after a repair of your own",
                "- then `unstuck resume`",
            ],
        ),
        _part("Where to Look", _places(task)),
    ]
    return "\n\n".join([*parts, *(ours if supervised else ())]) + "\n"


def _part(heading: str, lines: Iterable[str]) -> str:
    return "\n".join([f"### {heading}", *lines])


def _attempts(task: TaskState) -> list[str]:
    lines = []
    for number, attempt in enumerate(task.attempts, 1):
        approach = attempt.outcome.approach if attempt.outcome else ""
        result = attempt.failure.says if attempt.failure else "no result"
        told = f"{one_line(approach, 200) or 'no approach given'} - {one_line(result, LINE_CHARS)}"
        told += "; nothing was changed" if attempt.idle else ""
        lines.append(f"{number}. Attempt {number}: {told}")
    return lines or ["None."]


def _details(failure: Failure | None) -> str:
    return quoted(failure.detail or failure.summary, DETAIL_CHARS) if failure else "None."


def _files(task: TaskState) -> list[str]:
    """List the files that the agent changed, last and before, those that the plan names, and those of the failing tests."""
    failure = _failure(task)
    tests = [one.file for one in read(failure.detail).failures if one.file] if failure else []
    known: dict[str, str] = {}
    for attempt in reversed(task.attempts):
        by = "the agent" if attempt is task.attempts[-1] else f"the agent in attempt {attempt.number}"
        known |= {file: f"changed by {by}" for file in _changed(attempt) if file not in known}
    known |= {file: "named by the plan" for file in task.task.files if file not in known}
    known |= {file: "its test fails" for file in tests if file not in known}
    return [f"- {one_line(file, 200)} ({why})" for file, why in list(known.items())[:MANY_FILES]] or ["- none"]


def _changed(attempt: AttemptState) -> tuple[str, ...]:
    return attempt.verdict.files if attempt.verdict else ()


def _rollback(task: TaskState) -> str:
    """Say whether the work was rolled back on the way, and what became of it if not."""
    rolled = [
        number
        for number, attempt in enumerate(task.attempts, 1)
        if attempt.decision is not None and isinstance(attempt.decision.action, Rollback)
    ]
    if rolled:
        return f"After attempt {', '.join(map(str, rolled))} the task began again from the last checkpoint."
    return (
        "None was made: the work stands in a worktree of its own, and nothing of it is on the run's branch or on yours."
    )


def _places(task: TaskState) -> list[str]:
    name = task.task.id
    kept = [(number, attempt.shown_by) for number, attempt in enumerate(task.attempts, 1) if attempt.shown_by]
    return [
        f"- the whole story: `unstuck show {name}`, and why: `unstuck explain {name}`",
        f"- what was printed: `.unstuck/logs/task-{name}.log`",
        *(
            f"- the work of attempt {number}: `unstuck diff {name} {number}`, or `{command}`"
            for number, command in kept[-3:]
        ),
    ]


def _failure(task: TaskState) -> Failure | None:
    return task.attempts[-1].failure if task.attempts else None
