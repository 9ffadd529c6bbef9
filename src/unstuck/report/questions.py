"""What a stuck task tells a person: the one question that needs an answer, from what is known of its cause, and a report."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unstuck.agents.claims import last_question, states_success
from unstuck.diagnosis.captured import capture
from unstuck.diagnosis.output.tool_output import read_output
from unstuck.journal.task_state import AttemptState, TaskState, awaits_approval
from unstuck.model.action import Rollback
from unstuck.model.failure import KINDS, Failure, Kind
from unstuck.model.text import fill, one_line, quoted
from unstuck.shipped import shipped_toml

SAID_CHARS = 200
_INSTALL = re.compile(r"Please install (.+), or say what to use instead\.")
_BLANK = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What stands in the way of one task or of many, and the one question about it."""

    tasks: tuple[str, ...]
    question: str
    checked: bool = True
    """There is work that a person could take as it is."""
    outside: bool = False
    """Nothing about the tasks is to be decided: once it is seen to, the run goes on."""


def question(task: TaskState) -> str:
    """Return the one question that needs an answer: the agent's own, the remedies', or that of the failure's kind."""
    failure = _failure(task)
    if awaits_approval(task):
        return task.question
    if failure is None:
        return f"It cannot be done as the plan has it ({one_line(task.question, SAID_CHARS)}). How should it read?"
    if failure.charged and failure.kind is not Kind.TAMPERED and (asked := agents_question(task)):
        return f"{task.attempts[-1].agent} asks: {asked}"
    if task.asks:
        return task.asks
    blanks, words = _blanks(task, failure), shipped_toml("telling")
    if failure.charged and failure.kind is not Kind.NO_CHANGE and all(one.changed_nothing for one in task.tries):
        return str(words["idle"].format_map(blanks))
    of_kind = words["asked"].get(failure.kind, [])
    forms = ([of_kind] if isinstance(of_kind, str) else of_kind) + [words["asked_of_blame"][KINDS[failure.kind].blame]]
    filled = (form for form in forms if all(blanks.get(blank) for blank in _BLANK.findall(form)))
    return str(next(filled, words["asked_of_blame"]["agent"]).format_map(blanks))


def agents_question(task: TaskState) -> str:
    """Return what the agent asked with its last words, if it asked anything."""
    outcome = task.attempts[-1].outcome if task.attempts else None
    return one_line(last_question(outcome.words), SAID_CHARS) if outcome else ""


def adds(told: str, asked: str) -> bool:
    """Whether what was told last adds anything to a question: the agent's own words are not said twice."""
    return bool(told) and not asked.endswith(told.rpartition(": ")[2])


def causes(stuck: Iterable[TaskState]) -> tuple[Cause, ...]:
    """Group stuck tasks by what stands in their way: one cause asks once. An agent's own failures are one each."""
    found: dict[str, list[TaskState]] = {}
    for task in stuck:
        found.setdefault(cause_of(task), []).append(task)
    return tuple(
        Cause(
            tasks=tuple(task.task.id for task in tasks),
            question=_together(dict.fromkeys(map(question, tasks))),
            checked=all(task.can_be_accepted for task in tasks),
            outside=all(failure is not None and failure.kind in OUTSIDE for failure in map(_failure, tasks)),
        )
        for tasks in found.values()
    )


OF_THE_SESSION = frozenset({Kind.AGENT_CRASHED, Kind.KILLED, Kind.AGENT_MISSING})
"""Failures in which the session itself broke off."""
OUTSIDE = frozenset({Kind.AUTH_FAILED, Kind.BILLING, Kind.AGENT_MISSING})


def cause_of(task: TaskState) -> str:
    """Name what stands in a task's way: the same for all tasks that one thing stops."""
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


def _together(questions: Iterable[str]) -> str:
    """Ask several questions as one: what is to be installed is one list."""
    asked = list(questions)
    names = [found[1] for one in asked if (found := _INSTALL.fullmatch(one))]
    if len(names) > 1 and len(names) == len(asked):
        return f"Please install {', '.join(names[:-1])} and {names[-1]}, or say what to use instead."
    return asked[0]


def _blanks(task: TaskState, failure: Failure) -> dict[str, str]:
    last = task.attempts[-1]
    results = last.verdict.results if last.verdict else ()
    command = next((result.command for result in results if result.status == "fail"), "")
    count = len(task.tries) or len(task.attempts)
    doubts = [one.says for one in last.verdict.remarks if one.severity == "ask"] if last.verdict else []
    unchanged = last.verdict is not None and not last.verdict.files
    return {
        "unchanged": f"{last.agent} {_said(last)}, and changed nothing." if unchanged else "",
        "doubt": one_line(doubts[0], SAID_CHARS).rstrip(".") if doubts else "",
        "agent": last.agent,
        "attempts": "One attempt" if count == 1 else f"{count} attempts",
        "error": _error(last, failure),
        "said": _said(last),
        "summary": one_line(failure.summary, SAID_CHARS),
        "command": f"`{one_line(command, SAID_CHARS)}`" if command else "",
        "denied": one_line("; ".join(last.outcome.denied), SAID_CHARS) if last.outcome else "",
        "touches": " ".join(_touched(failure)),
    }


def _error(last: AttemptState, failure: Failure) -> str:
    """Return the error, and the signal that ended the session: its last words say nothing of that."""
    told, signal = one_line(failure.says, SAID_CHARS).rstrip("."), last.outcome.ended.signal if last.outcome else None
    return f"{told}, signal {signal}" if signal and failure.kind in OF_THE_SESSION else told


def _said(last: AttemptState) -> str:
    """Say how the agent took its leave."""
    if last.outcome is None or not last.outcome.words.strip():
        return "said nothing"
    if last.outcome.claim != "done":
        return "stopped"
    return "says that it is done" if states_success(last.outcome) else "ended with exit code 0"


def _touched(failure: Failure) -> Iterable[str]:
    """Say which task changed what, where two cannot be merged."""
    for touch in failure.touches:
        who = f"Task {touch.task}" if touch.task else "A commit of yours"
        lines = f"lines {touch.first}-{touch.last} of " if touch.how == "modified" else ""
        yield f"{who} {touch.how} {lines}{one_line(touch.file, SAID_CHARS)}."
    if not failure.touches and (files := capture(failure).get("files")):
        yield f"Both sides changed {', '.join(files)}."


# --- the report: Auto-Claude's, the question, and every way on

LINE_CHARS = 300
DETAIL_CHARS = 4000
MANY_FILES = 20


def escalation(task: TaskState, lineage: str = "", blocks: Sequence[str] = (), *, supervised: bool = True) -> str:
    """Write the report of a stuck task; `lineage`: what it repairs and what repairs it, `blocks`: what waits for it.

    In a loop of somebody's own, which is not `supervised`, our commands are no way on.
    """
    forms, failure = shipped_toml("blocks"), _failure(task)
    lines = fill(
        forms["stuck"] + (forms["what_next"] if supervised else ""),
        name=task.task.id,
        checked=[task.task.id] if task.can_be_accepted else [],
        summary=[one_line(line, LINE_CHARS) for line in (*task.question.splitlines(), lineage) if line],
        attempts=_attempts(task),
        details=quoted(failure.detail or failure.summary, DETAIL_CHARS) if failure else "None.",
        files=_files(task),
        question=question(task),
        blocks=list(blocks) or ["nothing: all other tasks can go on"],
        rollback=_rollback(task),
        kept=[
            f"{number}: `unstuck diff {task.task.id} {number}`, or `{attempt.show_command}`"
            for number, attempt in enumerate(task.attempts, 1)
            if attempt.show_command
        ][-3:],
    )
    return "\n".join(lines) + "\n"


def _attempts(task: TaskState) -> list[str]:
    lines = []
    for number, attempt in enumerate(task.attempts, 1):
        approach = attempt.outcome.approach if attempt.outcome else ""
        result = attempt.failure.says if attempt.failure else "no result"
        told = f"{one_line(approach, 200) or 'no approach given'} - {one_line(result, LINE_CHARS)}"
        told += "; nothing was changed" if attempt.changed_nothing else ""
        lines.append(f"{number}. Attempt {number}: {told}")
    return lines or ["None."]


def _files(task: TaskState) -> list[str]:
    """List the files that the agent changed, last and before, those that the plan names, and those of the failing tests."""
    failure = _failure(task)
    tests = [one.file for one in read_output(failure.detail).failures if one.file] if failure else []
    known: dict[str, str] = {}
    for attempt in reversed(task.attempts):
        by = "the agent" if attempt is task.attempts[-1] else f"the agent in attempt {attempt.number}"
        changed = attempt.verdict.files if attempt.verdict else ()
        known |= {file: f"changed by {by}" for file in changed if file not in known}
    known |= {file: "named by the plan" for file in task.task.files if file not in known}
    known |= {file: "its test fails" for file in tests if file not in known}
    return [f"- {one_line(file, 200)} ({why})" for file, why in list(known.items())[:MANY_FILES]] or ["- none"]


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


def _failure(task: TaskState) -> Failure | None:
    return task.attempts[-1].failure if task.attempts else None
