"""Commands that an agent proposes: marked in the plan until a person says yes, and red on HEAD or called a guard.

Law: a marked Verify is no check, so nothing of it can reach a shell, whoever runs the plan.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from unstuck.plans.fields import find_verify
from unstuck.plans.plan import Plan, Problem, Task, check
from unstuck.tell import one_line
from unstuck.tools import effect

Standing = Literal["red", "green", "guard", "absent", "wavers", "changes"]
"""How a command stands on HEAD: red as new work must be, green, a guard in either way, without its program, not the same
twice, or changing the tree that it should look at."""

_GUARD = re.compile(r"(?i)\(guard\b")
_GUARDS = frozenset({"VERIFY", "YELLOW"})
"""Markers of tasks whose checks may hold before the work: a look at what was done, and a refactoring."""
SAID_CHARS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A command that an agent wants to have run, and what it does besides checking, as far as its text shows."""

    task: str
    command: str
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What running a command on HEAD showed."""

    task: str
    command: str
    standing: Standing
    says: str = ""
    """The end of its output, in a line."""


def proposed(plan: Plan, own: Sequence[str] = ()) -> tuple[Proposal, ...]:
    """List the commands of open tasks and of the plan's gates that are not among a person's own."""
    asked = [(task.id, check.command) for task in plan.tasks if not task.done for check in task.checks]
    asked += [("", gate.command) for gate in plan.gates]
    return tuple(
        Proposal(task=task, command=command, effect=effect(command))
        for task, command in dict.fromkeys(asked)
        if command not in own
    )


def marked(text: str, by: str) -> str:
    """Mark every Verify as proposed; what is marked already stays as it is."""
    who = re.sub(r"[^\w .:+-]", "", by)[:40].strip() or "an agent"
    pieces, at = list[str](), 0
    for head in find_verify(text):
        if not (head["mark"] or head["plain_mark"]):
            name = "bold" if head["bold"] else "plain"
            star = "**" if head["bold"] else ""
            pieces += (text[at : head.end(name)], f"{star} (proposed by {who}):", " " if head["value"] else "")
            at = head.start("value")
    return "".join((*pieces, text[at:]))


def unmarked(text: str) -> str:
    """Take all marks out, as a person's yes does."""
    pieces, at = list[str](), 0
    for head in find_verify(text):
        mark = next((name for name in ("mark", "plain_mark") if head[name]), "")
        if mark:
            pieces.append(text[at : head.start(mark)].rstrip(" \t"))
            at = head.end(mark)
    return "".join((*pieces, text[at:]))


def faults(plan: Plan, own: Sequence[str] = (), *, complete: bool = True) -> tuple[Problem, ...]:
    """List what is wrong with a plan that an agent wrote: it must be sound, and its commands only look.

    `complete`: every task needs a command that can fail; a person's own plan may do without.
    """
    return (*check(plan), *(_unproven(plan) if complete else ()), *_reaching(plan, own))


def _unproven(plan: Plan) -> Iterator[Problem]:
    for task in plan.tasks:
        if not task.done and not task.skipped and not task.checks:
            yield Problem(
                message=f"Task {task.shown} has no command that could fail: nothing would show that it is done.",
                line=task.line,
                hint="Give it one Verify with one command in back-ticks, red now and green when the task is done.",
            )


def _reaching(plan: Plan, own: Sequence[str]) -> Iterator[Problem]:
    for one in proposed(plan, own):
        if one.effect:
            whose = f"The Verify of task {one.task}" if one.task else "A gate"
            yield Problem(
                message=f"{whose} {one.effect}: `{one_line(one.command, SAID_CHARS)}`. It was not run.",
                hint="A check only looks. Write one that reads the result and changes nothing.",
            )


def is_guard(task: Task) -> bool:
    """Whether a task's checks may hold before the work: it says so, or it only looks, or it is a refactoring."""
    return task.only_checks or not _GUARDS.isdisjoint(task.markers) or _GUARD.search(task.body) is not None


def wanting(proofs: Sequence[Proof]) -> Iterator[Problem]:
    """Say which commands prove nothing, and what to do about each."""
    for proof in proofs:
        if proof.standing in _WANTING:
            why, hint = _WANTING[proof.standing]
            command = one_line(proof.command, SAID_CHARS)
            said = f" It says: {proof.says}" if proof.says and proof.standing != "green" else ""
            yield Problem(message=f"The Verify of task {proof.task} {why}: `{command}`.{said}", hint=hint)


_WANTING: Mapping[Standing, tuple[str, str]] = {
    "green": (
        "passes already on HEAD, before any work",
        "Let it ask for what the task adds, so that it is red now. If it only guards what is there, write (guard) behind it.",
    ),
    "absent": ("cannot run here, a program is missing", "Use what this repository and this machine have."),
    "wavers": ("failed and passed on the same commit", "Write a command that says the same every time."),
    "changes": ("changes files of the repository", "A check only looks: use the checking form of the tool."),
}
