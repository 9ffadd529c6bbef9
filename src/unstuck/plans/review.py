"""Look a plan over before it is run: what is vague, what nothing checks, what destroys; and the commands that agents propose.

Concerns never stop a run. Law: a Verify marked as proposed is no check, so nothing of it can reach a shell, whoever runs it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from unstuck.model.plan import Plan, Problem, Task, plan_problems
from unstuck.model.text import one_line
from unstuck.plans.blocks import Edit, apply_edits
from unstuck.plans.fields import find_verify
from unstuck.shipped import shipped_toml
from unstuck.toolchain.command_roles import effect

SHOWN = 5
SAID_CHARS = 80


def with_review_concerns(plan: Plan, *, gates: int = 0) -> Plan:
    """Return the plan with what a careful reader would ask about it among its concerns. `gates`: checks of the repository."""
    asked = [
        *_vague(plan),
        *_destructive(plan),
        *_reaching(plan),
        *(_unchecked(plan) if not gates and not plan.gates else ()),
    ]
    told = set(plan.concerns)
    asked = [one for one in asked if one not in told]
    return replace(plan, concerns=tuple(sorted([*plan.concerns, *asked], key=lambda one: one.line or 0)))


def paths_between(tasks: Sequence[Task]) -> Mapping[str, frozenset[str]]:
    """Return for each task all that it depends on, directly or not; nothing at all where the plan has a circle."""
    graph = {task.id: set(task.depends_on) for task in tasks}
    found: dict[str, frozenset[str]] = {task.id: frozenset(task.depends_on) for task in tasks}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError:
        return found
    for name in order:
        if name in graph:
            found[name] = frozenset(graph[name]).union(*(found.get(other, frozenset()) for other in graph[name]))
    return found


@cache
def _shape(name: str) -> re.Pattern[str]:
    return re.compile("|".join(shipped_toml("review")[name]), re.IGNORECASE | re.MULTILINE)


def _vague(plan: Plan) -> Iterator[Problem]:
    for task in _open(plan):
        for text in (task.title, *task.items):
            if found := _shape("vague").search(text):
                message = f"{plan.noun.capitalize()} {task.shown} is ambiguous: {one_line(text, SAID_CHARS)!r} leaves open what is meant by {found[0]!r}."
                yield task.problem(message, "Say what must be true when it is done.")
                break


def _destructive(plan: Plan) -> Iterator[Problem]:
    for task in _open(plan):
        if found := _shape("destructive").search(task.body):
            what = f"{plan.noun.capitalize()} {task.shown} asks for something destructive"
            hint = "It runs in a worktree of its own, but what it does outside of git cannot be undone."
            yield task.problem(f"{what}: `{one_line(found[0], SAID_CHARS)}`.", hint)


def _reaching(plan: Plan) -> Iterator[Problem]:
    """Name the checks that do more than check: we run them because the plan says so, and say so."""
    for task in _open(plan):
        for one in task.checks:
            if what := effect(one.command):
                command = f"`{one_line(one.command, SAID_CHARS)}`. We run it after every attempt."
                message = f"The Verify of {plan.noun} {task.shown} {what}: {command}"
                yield task.problem(message, "Let it look at the result instead.")


def _unchecked(plan: Plan) -> Iterator[Problem]:
    """Name the tasks that nothing checks, but for those of which a reader has said why."""
    told = {one.line for one in plan.concerns}
    bare = [task for task in _open(plan) if not task.checks and task.line not in told]
    if bare:
        more = f" and {len(bare) - SHOWN} more" if len(bare) > SHOWN else ""
        named = f"{plan.noun}{'s'[: len(bare) > 1]} {', '.join(task.shown for task in bare[:SHOWN])}{more}"
        message = f"Nothing checks {named}: a person will have to say whether the work is right."
        hint = "Give the plan a command that fails while they are undone, or set [checks] in unstuck.toml."
        yield bare[0].problem(message, hint)


def _open(plan: Plan) -> Iterator[Task]:
    return (task for task in plan.tasks if not task.done and not task.skipped)


# --- commands that an agent proposes: marked in the plan until a person says yes, and red on HEAD or called a guard

ProofState = Literal["red", "green", "guard", "absent", "wavers", "changes"]
"""How a command stands on HEAD: red as new work must be, green, a guard in either way, without its program, not the same
twice, or changing the tree that it should look at."""

_GUARD = re.compile(r"(?i)\(guard\b")
_GUARDS = frozenset({"VERIFY", "YELLOW"})
"""Markers of tasks whose checks may hold before the work: a look at what was done, and a refactoring."""
COMMAND_CHARS = 160


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
    showing: ProofState
    says: str = ""
    """The end of its output, in a line."""


def proposed_commands(plan: Plan, own: Sequence[str] = ()) -> tuple[Proposal, ...]:
    """List the commands of open tasks and of the plan's gates that are not among a person's own."""
    asked = [(task.id, one.command) for task in plan.tasks if not task.done for one in task.checks]
    asked += [("", gate.command) for gate in plan.gates]
    return tuple(
        Proposal(task=task, command=command, effect=effect(command))
        for task, command in dict.fromkeys(asked)
        if command not in own
    )


def mark_proposed(text: str, by: str) -> str:
    """Mark every Verify as proposed; what is marked already stays as it is."""
    who = re.sub(r"[^\w .:+-]", "", by)[:40].strip() or "an agent"
    edits = list[Edit]()
    for head in find_verify(text):
        if not (head["mark"] or head["plain_mark"]):
            name, star = ("bold", "**") if head["bold"] else ("plain", "")
            mark = f"{star} (proposed by {who}):{' ' if head['value'] else ''}"
            edits.append(Edit(head.end(name), head.start("value"), mark))
    return apply_edits(text, edits)


def remove_proposal_marks(text: str) -> str:
    """Take all marks out, as a person's yes does."""
    edits = list[Edit]()
    for head in find_verify(text):
        if mark := next((name for name in ("mark", "plain_mark") if head[name]), ""):
            before = text[: head.start(mark)].rstrip(" \t")
            edits.append(Edit(len(before), head.end(mark), ""))
    return apply_edits(text, edits)


def draft_problems(plan: Plan, own: Sequence[str] = (), *, complete: bool = True) -> tuple[Problem, ...]:
    """List what is wrong with a plan that an agent wrote: it must be sound, and its commands only look.

    `complete`: every task needs a command that can fail; a person's own plan may do without.
    """
    return (*plan_problems(plan), *(_unproven(plan) if complete else ()), *_acting(plan, own))


def _unproven(plan: Plan) -> Iterator[Problem]:
    for task in plan.tasks:
        if task.done or task.skipped:
            message = f"Task {task.shown} is settled already, and nothing of a new plan is."
            yield task.problem(message, "Leave its box empty, or leave the task out.")
        elif not task.checks:
            message = f"Task {task.shown} has no command that could fail: nothing would show that it is done."
            hint = "Give it one Verify with one command in back-ticks, red now and green when the task is done."
            yield task.problem(message, hint)


def _acting(plan: Plan, own: Sequence[str]) -> Iterator[Problem]:
    for one in proposed_commands(plan, own):
        if one.effect:
            whose = f"The Verify of task {one.task}" if one.task else "A gate"
            message = f"{whose} {one.effect}: `{one_line(one.command, COMMAND_CHARS)}`. It was not run."
            yield Problem(
                message=message, hint="A check only looks. Write one that reads the result and changes nothing."
            )


def is_guard(task: Task) -> bool:
    """Whether a task's checks may hold before the work: it says so, or it only looks, or it is a refactoring."""
    return task.only_checks or not _GUARDS.isdisjoint(task.markers) or _GUARD.search(task.body) is not None


def problems_of_proofs(proofs: Sequence[Proof]) -> Iterator[Problem]:
    """Say which commands prove nothing, and what to do about each."""
    for proof in proofs:
        if proof.showing in shipped_toml("review")["wanting"]:
            why, hint = shipped_toml("review")["wanting"][proof.showing]
            command = one_line(proof.command, COMMAND_CHARS)
            said = f" It says: {proof.says}" if proof.says and proof.showing != "green" else ""
            yield Problem(message=f"The Verify of task {proof.task} {why}: `{command}`.{said}", hint=hint)
