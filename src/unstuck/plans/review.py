"""Review a plan before it runs: vague words, missing checks, destructive commands, commands that agents propose.

Concerns never stop a run. A Verify that is marked as proposed is no check, so nothing of it can reach a shell.
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

MAX_NAMED_TASKS = 5
QUOTE_CHARS = 80


def with_review_concerns(plan: Plan, *, gates: int = 0) -> Plan:
    """Return the plan with the concerns of a review. `gates` is the number of the repository's own checks."""
    concerns = [
        *_vague(plan),
        *_destructive(plan),
        *_checks_with_effects(plan),
        *(_unchecked(plan) if not gates and not plan.gates else ()),
    ]
    earlier = set(plan.concerns)
    concerns = [concern for concern in concerns if concern not in earlier]
    return replace(plan, concerns=tuple(sorted([*plan.concerns, *concerns], key=lambda concern: concern.line or 0)))


def paths_between(tasks: Sequence[Task]) -> Mapping[str, frozenset[str]]:
    """Return all tasks on which each task depends, directly or not. With a circle only the direct ones."""
    graph = {task.id: set(task.depends_on) for task in tasks}
    reached: dict[str, frozenset[str]] = {task.id: frozenset(task.depends_on) for task in tasks}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError:
        return reached
    for name in order:
        if name in graph:
            reached[name] = frozenset(graph[name]).union(*(reached.get(other, frozenset()) for other in graph[name]))
    return reached


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern that matches any row of a list in `catalog/review.toml`."""
    return re.compile("|".join(shipped_toml("review")[name]), re.IGNORECASE | re.MULTILINE)


def _vague(plan: Plan) -> Iterator[Problem]:
    for task in _open(plan):
        for text in (task.title, *task.items):
            if vague := _pattern("vague").search(text):
                message = f"{plan.noun.capitalize()} {task.shown} is ambiguous: {one_line(text, QUOTE_CHARS)!r} leaves open what is meant by {vague[0]!r}."
                yield task.problem(message, "Say what must be true when it is done.")
                break


def _destructive(plan: Plan) -> Iterator[Problem]:
    for task in _open(plan):
        if command := _pattern("destructive").search(task.body):
            what = f"{plan.noun.capitalize()} {task.shown} asks for something destructive"
            hint = "It runs in a worktree of its own, but what it does outside of git cannot be undone."
            yield task.problem(f"{what}: `{one_line(command[0], QUOTE_CHARS)}`.", hint)


def _checks_with_effects(plan: Plan) -> Iterator[Problem]:
    """Yield a concern for each check that does more than check. It runs all the same, because the plan has it."""
    for task in _open(plan):
        for check in task.checks:
            if what := effect(check.command):
                command = f"`{one_line(check.command, QUOTE_CHARS)}`. We run it after every attempt."
                message = f"The Verify of {plan.noun} {task.shown} {what}: {command}"
                yield task.problem(message, "Let it look at the result instead.")


def _unchecked(plan: Plan) -> Iterator[Problem]:
    """Yield one concern for all tasks without checks, except those that have a concern already."""
    lines = {concern.line for concern in plan.concerns}
    bare = [task for task in _open(plan) if not task.checks and task.line not in lines]
    if bare:
        more = f" and {len(bare) - MAX_NAMED_TASKS} more" if len(bare) > MAX_NAMED_TASKS else ""
        noun = f"{plan.noun}s" if len(bare) > 1 else plan.noun
        names = f"{noun} {', '.join(task.shown for task in bare[:MAX_NAMED_TASKS])}{more}"
        message = f"Nothing checks {names}: a person will have to say whether the work is right."
        hint = "Give the plan a command that fails while they are undone, or set [checks] in unstuck.toml."
        yield bare[0].problem(message, hint)


def _open(plan: Plan) -> Iterator[Task]:
    return (task for task in plan.tasks if not task.done and not task.skipped)


# --- phases that run in parallel


def agree_on_parallel(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], list[Problem]]:
    """Return the tasks with only those parallel tasks that both name and that may run together, and concerns."""
    by_id = {task.id: task for task in tasks}
    reach = paths_between(tasks)
    kept: dict[str, list[str]] = {task.id: [] for task in tasks}
    odd: list[Problem] = []
    for task in tasks:
        for name in task.parallel_with:
            message, hint = _parallel_conflict(task, name, by_id.get(name), reach)
            if not message and name != task.id:
                kept[task.id].append(name)
            mutual = name in by_id and task.id in by_id[name].parallel_with
            if message and not (mutual and task.id >= name):  # one concern for both
                odd.append(Problem(message=message, line=task.line, hint=hint))
    return tuple(replace(task, parallel_with=tuple(kept[task.id])) for task in tasks), odd


def _parallel_conflict(
    task: Task, name: str, other: Task | None, reach: Mapping[str, frozenset[str]]
) -> tuple[str, str]:
    """Return why the two tasks cannot run together with a hint, or two empty strings."""
    if other is None:
        return f"Phase {task.shown} may run with {name!r}, which is not a phase.", "Correct the id."
    if task.id not in other.parallel_with:
        message = f"Phase {task.shown} may run with {other.shown}, but {other.shown} does not say so; they run one after the other."
        return message, f"Write {task.shown} into Parallel With of {other.shown}, too."
    both = f"Phases {task.shown} and {other.shown} are to run side by side"
    if name != task.id and (other.id in reach[task.id] or task.id in reach[other.id]):
        return f"{both}, and one depends on the other.", "Remove one of the two."
    shared = [path for path in task.files if path in other.files and name != task.id]
    message = f"{both} and both declare {', '.join(shared[:3])}; they run one after the other."
    return (message, "Split the file, or make the phases sequential.") if shared else ("", "")


# --- commands that an agent proposes: they are marked in the plan until the user approves them

ProofState = Literal["red", "green", "guard", "absent", "wavers", "changes"]
"""The result of a proposed command on HEAD.

- red: it fails, as it must before the work
- green: it passes already
- guard: it may pass or fail, because it only guards what is there
- absent: its program is missing
- wavers: two runs gave different results
- changes: it changed files of the repository
"""

_GUARD = re.compile(r"(?i)\(guard\b")
_GUARDS = frozenset({"VERIFY", "YELLOW"})
"""Markers of tasks whose checks may pass before the work: verifications and refactorings."""
COMMAND_CHARS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A command that an agent proposes as a check."""

    task: str
    command: str
    effect: str = ""
    """The effect of the command apart from checking, as far as its text shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of running a proposed command on HEAD."""

    task: str
    command: str
    showing: ProofState
    says: str = ""
    """The end of its output, in one line."""


def proposed_commands(plan: Plan, own: Sequence[str] = ()) -> tuple[Proposal, ...]:
    """Return the commands of open tasks and gates that are not among the user's own commands `own`."""
    commands = [(task.id, check.command) for task in plan.tasks if not task.done for check in task.checks]
    commands += [("", gate.command) for gate in plan.gates]
    return tuple(
        Proposal(task=task, command=command, effect=effect(command))
        for task, command in dict.fromkeys(commands)
        if command not in own
    )


def mark_proposed(text: str, by: str) -> str:
    """Return the text with every Verify marked as proposed. Earlier marks stay."""
    author = re.sub(r"[^\w .:+-]", "", by)[:40].strip() or "an agent"
    edits = list[Edit]()
    for head in find_verify(text):
        if not (head["mark"] or head["plain_mark"]):
            name, star = ("bold", "**") if head["bold"] else ("plain", "")
            mark = f"{star} (proposed by {author}):{' ' if head['value'] else ''}"
            edits.append(Edit(head.end(name), head.start("value"), mark))
    return apply_edits(text, edits)


def remove_proposal_marks(text: str) -> str:
    """Return the text without the marks of proposals, which means that the user approves them."""
    edits = list[Edit]()
    for head in find_verify(text):
        if mark := next((name for name in ("mark", "plain_mark") if head[name]), ""):
            before = text[: head.start(mark)].rstrip(" \t")
            edits.append(Edit(len(before), head.end(mark), ""))
    return apply_edits(text, edits)


def draft_problems(plan: Plan, own: Sequence[str] = (), *, complete: bool = True) -> tuple[Problem, ...]:
    """Return the problems of a plan that an agent wrote, including commands that do more than check.

    `complete`: every task needs a command that can fail. The user's own plan may have tasks without one.
    """
    unproven = _tasks_without_proof(plan) if complete else ()
    return (*plan_problems(plan), *unproven, *_commands_with_effects(plan, own))


def _tasks_without_proof(plan: Plan) -> Iterator[Problem]:
    for task in plan.tasks:
        if task.done or task.skipped:
            message = f"Task {task.shown} is settled already, and nothing of a new plan is."
            yield task.problem(message, "Leave its box empty, or leave the task out.")
        elif not task.checks:
            message = f"Task {task.shown} has no command that could fail: nothing would show that it is done."
            hint = "Give it one Verify with one command in back-ticks, red now and green when the task is done."
            yield task.problem(message, hint)


def _commands_with_effects(plan: Plan, own: Sequence[str]) -> Iterator[Problem]:
    for proposal in proposed_commands(plan, own):
        if proposal.effect:
            subject = f"The Verify of task {proposal.task}" if proposal.task else "A gate"
            message = f"{subject} {proposal.effect}: `{one_line(proposal.command, COMMAND_CHARS)}`. It was not run."
            yield Problem(
                message=message, hint="A check only looks. Write one that reads the result and changes nothing."
            )


def is_guard(task: Task) -> bool:
    """Return whether the checks of a task may pass before the work: verifications, refactorings, guards."""
    return task.only_checks or not _GUARDS.isdisjoint(task.markers) or _GUARD.search(task.body) is not None


def problems_of_proofs(proofs: Sequence[Proof]) -> Iterator[Problem]:
    """Yield a problem with a hint for each command that proves nothing."""
    for proof in proofs:
        if proof.showing in shipped_toml("review")["wanting"]:
            why, hint = shipped_toml("review")["wanting"][proof.showing]
            command = one_line(proof.command, COMMAND_CHARS)
            output = f" It says: {proof.says}" if proof.says and proof.showing != "green" else ""
            yield Problem(message=f"The Verify of task {proof.task} {why}: `{command}`.{output}", hint=hint)
