"""What a stuck task tells a person: seed 000's report, the one question that needs an answer, and every way on."""

from collections.abc import Iterable, Mapping

from unstuck.diagnosis import KINDS, Blame, Failure, Kind
from unstuck.journal import TaskState
from unstuck.tell.text import one_line, quoted

LINE_CHARS = 300
DETAIL_CHARS = 4000
MANY_FILES = 20

ASKED_OF_KIND: Mapping[Kind, str] = {
    Kind.UNVERIFIED: "Nothing could check the work: is it right as it is?",
    Kind.TAMPERED: "The checks were changed along with the work: was that intended?",
    Kind.AUTH_FAILED: "Can you log the agent in?",
    Kind.BILLING: "Can you settle the agent's account?",
    Kind.MERGE_CONFLICT: "Which side of the conflict is right?",
}
ASKED_OF_BLAME: Mapping[Blame, str] = {
    "agent": "What should the next attempt do differently?",
    "plan": "How should the task be changed, so that it can be done?",
    "check": "Is the check right?",
    "environment": "Can you put this machine in order?",
    "provider": "Can you find out when the provider works again?",
    "supervisor": "Can you tell us of this? It looks like a fault of unstuck.",
}


def escalation(task: TaskState, lineage: str = "", *, supervised: bool = True) -> str:
    """Write the report of a stuck task; `lineage` says what it repairs and what repairs it.

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


def question(task: TaskState) -> str:
    """Return the one question that needs an answer."""
    failure = _failure(task)
    if failure is None:
        return ASKED_OF_BLAME["plan"]
    return ASKED_OF_KIND.get(failure.kind) or ASKED_OF_BLAME[KINDS[failure.kind].blame]


def causes(stuck: Iterable[TaskState]) -> dict[str, list[str]]:
    """Group stuck tasks by what stands in their way: one cause asks once. An agent's own failures are one each."""
    found: dict[str, list[str]] = {}
    for task in stuck:
        failure = _failure(task)
        shared = failure is not None and not failure.charged
        key = f"{failure.kind} {failure.signature}" if failure is not None and shared else f"task {task.task.id}"
        found.setdefault("unverified" if failure and failure.kind is Kind.UNVERIFIED else key, []).append(task.task.id)
    return found


def _part(heading: str, lines: Iterable[str]) -> str:
    return "\n".join([f"### {heading}", *lines])


def _attempts(task: TaskState) -> list[str]:
    lines = []
    for number, attempt in enumerate(task.attempts, 1):
        approach = attempt.outcome.approach if attempt.outcome else ""
        result = attempt.failure.summary if attempt.failure else "no result"
        told = f"{one_line(approach, 200) or 'no approach given'} - {one_line(result, LINE_CHARS)}"
        lines.append(f"{number}. Attempt {number}: {told}")
    return lines or ["None."]


def _details(failure: Failure | None) -> str:
    return quoted(failure.detail or failure.summary, DETAIL_CHARS) if failure else "None."


def _files(task: TaskState) -> list[str]:
    """List the files that the plan names, and those whose tests fail."""
    failure = _failure(task)
    tests = (test.partition("::")[0] for test in failure.tests) if failure else ()
    files = list(dict.fromkeys([*task.task.files, *tests]))[:MANY_FILES]
    return [f"- {one_line(file, 200)}" for file in files] or ["- none named by the plan"]


def _places(task: TaskState) -> list[str]:
    name = task.task.id
    kept = [(number, attempt.snapshot) for number, attempt in enumerate(task.attempts, 1) if attempt.snapshot]
    return [
        f"- the whole story: `unstuck show {name}`, and why: `unstuck explain {name}`",
        f"- what was printed: `.unstuck/logs/task-{name}.log`",
        *(f"- the work of attempt {number}: `git show {ref}`" for number, ref in kept[-3:]),
    ]


def _failure(task: TaskState) -> Failure | None:
    return task.attempts[-1].failure if task.attempts else None
