"""The question that a stuck task asks the user, with the report about the task."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unstuck.agents.claims import last_question, states_success
from unstuck.diagnosis.captured import failure_details
from unstuck.diagnosis.output.tool_output import read_output
from unstuck.journal.task_state import AttemptState, TaskState, awaits_approval
from unstuck.model.action import Rollback
from unstuck.model.failure import KINDS, Blame, Failure, Kind
from unstuck.model.text import fill, one_line, quoted

QUOTE_CHARS = 200
LINE_CHARS = 300
DETAIL_CHARS = 4000
MAX_FILES = 20
MAX_DIFFS = 3
_INSTALL = re.compile(r"Please install (.+), or say what to use instead\.")
_BLANK = re.compile(r"\{(\w+)\}")
SESSION_FAILURES = frozenset({Kind.AGENT_CRASHED, Kind.KILLED, Kind.AGENT_MISSING})
"""Failures in which the session itself broke off."""
OUTSIDE = frozenset({Kind.AUTH_FAILED, Kind.BILLING, Kind.AGENT_MISSING})

IDLE_QUESTION: Final = (
    "{agent} {said}, and changed nothing: {error}. Does it work here, or what does the task not tell it?"
)
"""Asked if no attempt changed anything, whichever check is red."""
QUESTIONS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.QUESTION: ("{agent} asks: {error}",),
    Kind.UNVERIFIED: (
        "{unchanged} Is it done already?",
        "{doubt}. Is that right?",
        "Nothing could check the work: is it right as it is?",
    ),
    Kind.TAMPERED: ("{summary} Was that intended?",),
    Kind.AUTH_FAILED: (
        "{agent} is not logged in ({error}). Please log it in, or give the same command with another --agent.",
    ),
    Kind.BILLING: (
        "{agent} wants to be paid ({error}). Please settle its account, or give the same command with another --agent.",
    ),
    Kind.AGENT_MISSING: (
        "{agent} cannot work here ({error}). Please install it or put it in order, or give the same command with another --agent.",
    ),
    Kind.MERGE_CONFLICT: ("{touches} Which of them should stay?",),
    Kind.CHECK_TIMEOUT: ("{command} did not end in time. May it take longer, or is it the work that hangs?",),
    Kind.TEST_TIMEOUT: ("{command} did not end in time ({error}). May it take longer, or is it the work that hangs?",),
    Kind.FLAKY: ("{command} passes and fails on the same tree ({error}). Which of the two counts?",),
    Kind.SETUP_FAILED: ("A worktree could not be set up ({error}). What does it need?",),
    Kind.NO_CHANGE: (
        "{agent} {said}, and changed nothing. Does it work here, or is there nothing to do? Then skip it.",
    ),
    Kind.AGENT_CRASHED: ("{attempts} ended with: {error}. Does the agent work here, or what has it missed?",),
    Kind.KILLED: ("{agent} was killed ({error}). What ends it here?",),
    Kind.NO_CLAIM: ("The checks passed before as they do now, and the agent does not say that it is done. Is it?",),
    Kind.HANG: ("The agent fell silent ({error}). Should it have more time, or what does it wait for?",),
    Kind.TIMEOUT: ("The agent ran out of time ({error}). Should it have more, or how can the task be split?",),
    Kind.PERMISSION_DENIED: (
        "The agent was not allowed {denied}. How should it do without? What it may is set in unstuck.toml: `[agents.{agent}] permission`.",
    ),
}
"""The question about a failure, by its kind. The first form whose blanks can all be filled is used."""

QUESTION_BY_BLAME: Final[Mapping[Blame, str]] = {
    "agent": "{attempts} ended with: {error}. Is the check right? If it is, what has the agent missed?",
    "plan": "The task cannot be done as the plan has it ({error}). How should it read?",
    "check": "Is the check right? It says: {error}",
    "environment": "This machine stands in the way: {error}. Please see to that, or say what to use instead.",
    "provider": "{agent} does not work ({error}). When will it again, or who should work instead?",
    "supervisor": "This looks like a fault of unstuck ({error}). Can you tell us of it?",
}
"""The question if no form of the kind can be filled."""

STUCK_REPORT: Final = """\
## Stuck Subtask: {name}

### Summary
{summary}

### Attempts Made
{attempts}

### Error Details
{details}

### Files Involved
{files}

### Recommended Actions
- [ ] Review error logs
- [ ] Check external dependencies
- [ ] Consider alternative approach

### Question
{question}"""
"""The report of a stuck task. Its headings and its first four sections are Auto-Claude's and stay literally as they are."""

NEXT_STEPS: Final = """\


### What It Blocks
- {blocks}

### Rollback
{rollback}

### Ways On
- `unstuck answer {name} 'TEXT'` to answer it; the agent reads it
- `unstuck retry {name} --hint 'TEXT'` to try again
- `unstuck accept {checked} --because 'TEXT'` if the work is right as it is
- `unstuck skip {name}` to go on without it
- `unstuck reset {name}` to begin anew after a repair of your own
- then `unstuck resume`

### Where to Look
- the whole story: `unstuck show {name}`, and why: `unstuck explain {name}`
- what was printed: `.unstuck/logs/task-{name}.log`
- the work of attempt {kept}"""
"""The rest of the report in a supervised run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An obstacle of one or more tasks, with the question that a user has to answer."""

    tasks: tuple[str, ...]
    question: str
    checked: bool = True
    """All tasks have work that the user could accept."""
    outside: bool = False
    """The cause lies outside of the plan, so that no task needs a decision."""


def question(task: TaskState) -> str:
    """Return the question to the user about a stuck task.

    It is the agent's own, else the one of the remedies, else the one for the kind of the failure.
    """
    failure = _failure(task)
    if awaits_approval(task):
        return task.question
    if failure is None:
        return f"It cannot be done as the plan has it ({one_line(task.question, QUOTE_CHARS)}). How should it read?"
    if failure.charged and failure.kind is not Kind.TAMPERED and (own_question := agents_question(task)):
        return f"{task.attempts[-1].agent} asks: {own_question}"
    if task.asks:
        return task.asks
    blanks = _blanks(task, failure)
    if (
        failure.charged
        and failure.kind is not Kind.NO_CHANGE
        and all(attempt.changed_nothing for attempt in task.tries)
    ):
        return IDLE_QUESTION.format_map(blanks)
    for form in (*QUESTIONS.get(failure.kind, ()), QUESTION_BY_BLAME[KINDS[failure.kind].blame]):
        if all(blanks.get(blank) for blank in _BLANK.findall(form)):
            return form.format_map(blanks)
    return QUESTION_BY_BLAME["agent"].format_map(blanks)


def agents_question(task: TaskState) -> str:
    """Return the question in the last message of the agent, or an empty string."""
    outcome = task.attempts[-1].outcome if task.attempts else None
    return one_line(last_question(outcome.words), QUOTE_CHARS) if outcome else ""


def adds_to_question(message: str, asked_question: str) -> bool:
    """Return whether a message says more than the question, which may quote it."""
    return bool(message) and not asked_question.endswith(message.rpartition(": ")[2])


def causes(stuck: Iterable[TaskState]) -> tuple[Cause, ...]:
    """Return the causes of stuck tasks, each once. A failure of the agent's work is a cause of its own."""
    by_cause: dict[str, list[TaskState]] = {}
    for task in stuck:
        by_cause.setdefault(cause_of(task), []).append(task)
    return tuple(
        Cause(
            tasks=tuple(task.task.id for task in tasks),
            question=_joint_question(dict.fromkeys(map(question, tasks))),
            checked=all(task.can_be_accepted for task in tasks),
            outside=all(failure is not None and failure.kind in OUTSIDE for failure in map(_failure, tasks)),
        )
        for tasks in by_cause.values()
    )


def cause_of(task: TaskState) -> str:
    """Return a name for the cause that stops a task. It is the same for all tasks with this cause."""
    failure = _failure(task)
    if awaits_approval(task):
        return "approval"
    if task.is_silent:
        return f"mute {task.attempts[-1].agent}"
    if failure is None or (failure.charged and not task.asks):
        return f"task {task.task.id}"
    if failure.kind is Kind.UNVERIFIED:
        return failure.kind
    if _INSTALL.fullmatch(task.asks):
        return "install"
    if KINDS[failure.kind].blame == "provider" or failure.kind is Kind.AGENT_MISSING:
        return f"{failure.kind} {task.attempts[-1].agent}"
    return task.asks or f"{failure.kind} {failure.signature or task.task.id}"


def _joint_question(questions: Iterable[str]) -> str:
    """Return the first question, or one question that lists everything to install."""
    candidates = list(questions)
    matches = [_INSTALL.fullmatch(candidate) for candidate in candidates]
    names = [match[1] for match in matches if match]
    if len(names) > 1 and len(names) == len(candidates):
        return f"Please install {', '.join(names[:-1])} and {names[-1]}, or say what to use instead."
    return candidates[0]


def _blanks(task: TaskState, failure: Failure) -> dict[str, str]:
    last = task.attempts[-1]
    results = last.verdict.results if last.verdict else ()
    command = next((result.command for result in results if result.status == "fail"), "")
    count = len(task.tries) or len(task.attempts)
    doubts = [remark.says for remark in last.verdict.remarks if remark.severity == "ask"] if last.verdict else []
    unchanged = last.verdict is not None and not last.verdict.files
    return {
        "unchanged": f"{last.agent} {_last_words(last)}, and changed nothing." if unchanged else "",
        "doubt": one_line(doubts[0], QUOTE_CHARS).rstrip(".") if doubts else "",
        "agent": last.agent,
        "attempts": "One attempt" if count == 1 else f"{count} attempts",
        "error": _error(last, failure),
        "said": _last_words(last),
        "summary": one_line(failure.summary, QUOTE_CHARS),
        "command": f"`{one_line(command, QUOTE_CHARS)}`" if command else "",
        "denied": one_line("; ".join(last.outcome.denied), QUOTE_CHARS) if last.outcome else "",
        "touches": " ".join(_conflicts(failure)),
    }


def _error(last: AttemptState, failure: Failure) -> str:
    """Return the error with the signal that ended the session, which its output does not mention."""
    error = one_line(failure.says, QUOTE_CHARS).rstrip(".")
    signal = last.outcome.ended.signal if last.outcome else None
    return f"{error}, signal {signal}" if signal and failure.kind in SESSION_FAILURES else error


def _last_words(last: AttemptState) -> str:
    """Return how the agent ended its session, as the predicate of a sentence."""
    if last.outcome is None or not last.outcome.words.strip():
        return "said nothing"
    if last.outcome.claim != "done":
        return "stopped"
    return "says that it is done" if states_success(last.outcome) else "ended with exit code 0"


def _conflicts(failure: Failure) -> Iterable[str]:
    """Yield which task changed which lines of a file that cannot be merged."""
    for touch in failure.touches:
        author = f"Task {touch.task}" if touch.task else "A commit of yours"
        lines = f"lines {touch.first}-{touch.last} of " if touch.how == "modified" else ""
        yield f"{author} {touch.how} {lines}{one_line(touch.file, QUOTE_CHARS)}."
    if not failure.touches and (files := failure_details(failure).get("files")):
        yield f"Both sides changed {', '.join(files)}."


def stuck_report(task: TaskState, lineage: str = "", blocks: Sequence[str] = (), *, supervised: bool = True) -> str:
    """Return the report of a stuck task.

    `lineage` names the task that it repairs and the tasks that repair it. `blocks` are the tasks that wait for it.
    Without `supervised`, a program of the user drives the agent, and the commands of `unstuck` are left out.
    """
    failure = _failure(task)
    kept_work = [
        f"{number}: `unstuck diff {task.task.id} {number}`, or `{attempt.show_command}`"
        for number, attempt in enumerate(task.attempts, 1)
        if attempt.show_command
    ]
    lines = fill(
        STUCK_REPORT + (NEXT_STEPS if supervised else ""),
        name=task.task.id,
        checked=[task.task.id] if task.can_be_accepted else [],
        summary=[one_line(line, LINE_CHARS) for line in (*task.question.splitlines(), lineage) if line],
        attempts=_attempts(task),
        details=quoted(failure.detail or failure.summary, DETAIL_CHARS) if failure else "None.",
        files=_files(task),
        question=question(task),
        blocks=list(blocks) or ["nothing: all other tasks can go on"],
        rollback=_rollback(task),
        kept=kept_work[-MAX_DIFFS:],
    )
    return "\n".join(lines) + "\n"


def _attempts(task: TaskState) -> list[str]:
    lines = []
    for number, attempt in enumerate(task.attempts, 1):
        approach = attempt.outcome.approach if attempt.outcome else ""
        result = attempt.failure.says if attempt.failure else "no result"
        story = f"{one_line(approach, 200) or 'no approach given'} - {one_line(result, LINE_CHARS)}"
        story += "; nothing was changed" if attempt.changed_nothing else ""
        lines.append(f"{number}. Attempt {number}: {story}")
    return lines or ["None."]


def _files(task: TaskState) -> list[str]:
    """Return a line for each file that an agent changed, that the plan names, or whose test fails."""
    reasons: dict[str, str] = {}
    for attempt in reversed(task.attempts):
        author = "the agent" if attempt is task.attempts[-1] else f"the agent in attempt {attempt.number}"
        for file in attempt.verdict.files if attempt.verdict else ():
            reasons.setdefault(file, f"changed by {author}")
    for file in task.task.files:
        reasons.setdefault(file, "named by the plan")
    failure = _failure(task)
    for test in read_output(failure.detail).failures if failure else ():
        if test.file:
            reasons.setdefault(test.file, "its test fails")
    lines = [f"- {one_line(file, 200)} ({reason})" for file, reason in list(reasons.items())[:MAX_FILES]]
    return lines or ["- none"]


def _rollback(task: TaskState) -> str:
    """Return whether an attempt was rolled back, else where the work is."""
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


def _failure(task: TaskState) -> Failure | None:
    return task.attempts[-1].failure if task.attempts else None
