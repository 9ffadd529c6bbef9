"""Look a plan over before it is run: what is vague, what nothing checks, what destroys. Concerns never stop a run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from unstuck.plans.plan import Plan, Problem, Task
from unstuck.tell import one_line
from unstuck.tools import effect

VAGUE = re.compile(
    r"\b(?:TBD|TODO|FIXME|etc|and so on|as needed|if necessary|somehow|various|miscellaneous|handle edge cases|"
    r"to be (?:determined|decided|defined)|or similar|appropriately)\b|\?\?",
    re.IGNORECASE,
)
DESTRUCTIVE = re.compile(
    r"\brm[ \t]+-[a-zA-Z]*[rR][a-zA-Z]*\b|\bgit[ \t]+push\b[^\n]{0,80}(?:--force\b|[ \t]-f\b)|\bgit[ \t]+reset[ \t]+--hard\b|"
    r"\bgit[ \t]+clean[ \t]+-[a-zA-Z]*f|\bDROP[ \t]+(?:TABLE|DATABASE|SCHEMA|COLUMN)\b|\bTRUNCATE[ \t]+TABLE\b|\bterraform[ \t]+destroy\b|"
    r"\bkubectl[ \t]+delete\b|\bmkfs\b|\bdd[ \t][^\n]{0,80}\bof=/dev/|\bdocker[ \t]+(?:system|volume)[ \t]+prune\b|"
    r"\bDELETE[ \t]+FROM[ \t]+\w+[ \t]*(?:;|$)|\bchmod[ \t]+-R[ \t]+777\b|\bdropdb\b|\bwipe\b",
    re.IGNORECASE | re.MULTILINE,
)
SHOWN = 5
SAID_CHARS = 80


def reviewed(plan: Plan, *, gates: int = 0) -> Plan:
    """Return the plan with what a careful reader would ask about it among its concerns. `gates`: checks of the repository."""
    asked = [
        *_vague(plan),
        *_destructive(plan),
        *_reaching(plan),
        *(_unchecked(plan) if not gates and not plan.gates else ()),
    ]
    asked = [one for one in asked if one not in plan.concerns]
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


def _vague(plan: Plan) -> Iterator[Problem]:
    for task in _open(plan):
        for text in (task.title, *task.items):
            if found := VAGUE.search(text):
                yield Problem(
                    message=f"{plan.noun.capitalize()} {task.shown} is ambiguous: {one_line(text, SAID_CHARS)!r} leaves open what is meant by {found[0]!r}.",
                    line=task.line,
                    hint="Say what must be true when it is done.",
                )
                break


def _destructive(plan: Plan) -> Iterator[Problem]:
    for task in _open(plan):
        if found := DESTRUCTIVE.search(task.body):
            yield Problem(
                message=f"{plan.noun.capitalize()} {task.shown} asks for something destructive: `{one_line(found[0], SAID_CHARS)}`.",
                line=task.line,
                hint="It runs in a worktree of its own, but what it does outside of git cannot be undone.",
            )


def _reaching(plan: Plan) -> Iterator[Problem]:
    """Name the checks that do more than check: we run them because the plan says so, and say so."""
    for task in _open(plan):
        for check in task.checks:
            if what := effect(check.command):
                yield Problem(
                    message=f"The Verify of {plan.noun} {task.shown} {what}: `{one_line(check.command, SAID_CHARS)}`. We run it after every attempt.",
                    line=task.line,
                    hint="Let it look at the result instead.",
                )


def _unchecked(plan: Plan) -> Iterator[Problem]:
    """Name the tasks that nothing checks; the readers of checklists have said so already."""
    if not plan.phased:
        return
    bare = [task for task in _open(plan) if not task.checks]
    if bare:
        named = ", ".join(task.shown for task in bare[:SHOWN]) + (
            f" and {len(bare) - SHOWN} more" if len(bare) > SHOWN else ""
        )
        noun = plan.noun if len(bare) == 1 else f"{plan.noun}s"
        yield Problem(
            message=f"Nothing checks {noun} {named}: a person will have to say whether the work is right.",
            line=bare[0].line,
            hint="Give the plan a command that fails while they are undone, or set [checks] in unstuck.toml.",
        )


def _open(plan: Plan) -> Iterator[Task]:
    return (task for task in plan.tasks if not task.done and not task.skipped)
