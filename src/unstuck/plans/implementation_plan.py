"""Read an `implementation_plan.json` as forgivingly as its makers do, and keep its statuses current: one value changes, and nothing else."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unstuck.plans.editor import Edit, apply
from unstuck.plans.json_plans import Node, make_task, places, read_json, set_value, strings, word, words
from unstuck.plans.plan import Check, Plan, Problem, Task, conventional
from unstuck.tools import Runnable

FORMAT = "implementation_plan.json"

STATUSES = ("pending", "in_progress", "completed", "blocked", "failed")
ALIASES: Mapping[str, str] = {
    "not_started": "pending",
    "todo": "pending",
    "running": "in_progress",
    "complete": "completed",
    "done": "completed",
    "stuck": "failed",
}
"""Other words for them, as people and other tools write them."""
WRITTEN: Mapping[str, str] = {
    "pending": "pending",
    "running": "in_progress",
    "verifying": "in_progress",
    "waiting": "in_progress",
    "complete": "completed",
    "blocked": "blocked",
    "stuck": "failed",
}
"""Our statuses as this format knows them; what a person skipped keeps the word it has."""
COMMIT_TYPES: Mapping[str, str] = {"refactor": "refactor", "migration": "refactor", "investigation": "chore"}
VERIFICATIONS = ("command", "api", "browser", "e2e", "component", "manual", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtask:
    """One unit of work, its aliases resolved."""

    id: str
    description: str
    status: str
    node: Node
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A group of subtasks; `names` is everything that a dependency may call it."""

    name: str
    names: tuple[str, ...]
    depends_on: tuple[str, ...]
    parallel: bool
    subtasks: tuple[Subtask, ...]


def read(text: str, path: str, _tag: str = "", _runnable: Runnable | None = None) -> Plan:
    """Read a whole plan; everything wrong with it is in its problems and concerns."""

    def plan(root: Node) -> Plan:
        phases, problems, concerns = _phases(root), list[Problem](), list[Problem]()
        kind = COMMIT_TYPES.get(word(_fact(root, "workflow_type")), "")
        tasks = list[Task]()
        for phase in phases:
            before, earlier = _before(phase, phases, problems), list[str]()
            for subtask in phase.subtasks:
                beside = tuple(one.id for one in phase.subtasks if one is not subtask) if phase.parallel else ()
                depends_on = before if phase.parallel else (*before, *earlier[-1:])
                tasks.append(_task(text, subtask, kind, depends_on=depends_on, parallel_with=beside))
                concerns += (replace(one, line=tasks[-1].line) for one in _odd(subtask))
                earlier.append(subtask.id)
        title = str(_fact(root, "feature") or _fact(root, "title") or "")
        return Plan(
            path=path,
            format=FORMAT,
            title=title,
            tasks=tuple(tasks),
            problems=tuple(problems),
            concerns=tuple(concerns),
        )

    return read_json(text, path, FORMAT, "a plan", plan)


def _fact(root: Node, name: str) -> Any:
    found = root.get(name)
    return found.plain if found else None


def _phases(root: Node) -> tuple[Phase, ...]:
    """Resolve all aliases; raise ValueError where there are no phases at all."""
    listed = root.get("phases")
    if listed is None or not isinstance(listed.value, list):
        raise ValueError('it has no list "phases"')
    return tuple(_phase(node, place) for place, node in enumerate(listed.value, 1) if node.is_object)


def overall(statuses: Sequence[str]) -> tuple[str, str]:
    """Return the plan's own `status` and `planStatus` for the statuses of its subtasks."""
    if statuses and all(status == "completed" for status in statuses):
        return "human_review", "review"
    begun = any(status in ("completed", "in_progress", "failed") for status in statuses)
    return ("in_progress", "in_progress") if begun else ("backlog", "pending")


def mark(text: str, statuses: Mapping[str, str], _tag: str = "") -> tuple[str, frozenset[str]]:
    """Write the statuses of subtasks, and the plan's own that follow from them; no other byte changes."""
    json.loads(text.removeprefix("\ufeff"))
    root = places(text)
    subtasks = [one for phase in _phases(root) for one in phase.subtasks]
    edits, after = list[Edit](), list[str]()
    for subtask in subtasks:
        wanted = WRITTEN.get(statuses.get(subtask.id, ""), subtask.status)
        after.append(wanted)
        edits += set_value(subtask.node, "status", wanted, subtask.status)
    before = overall([one.status for one in subtasks])
    now = overall(after)
    for name, old, new in zip(("status", "planStatus"), before, now, strict=True):
        if root.get(name) is not None and old != new:
            edits += set_value(root, name, new, "")
    return apply(text, edits), frozenset(one.id for one in subtasks)


def _phase(node: Node, place: int) -> Phase:
    raw = node.plain
    number = word(raw.get("phase")) or str(place)
    depends = raw.get("depends_on")
    found = node.get("subtasks", "chunks")
    return Phase(
        name=word(raw.get("name"), raw.get("title")) or f"Phase {number}",
        names=tuple(name for name in (word(raw.get("id"), raw.get("phase_id")), number) if name),
        depends_on=tuple(words(depends if isinstance(depends, list) else [depends])),
        parallel=raw.get("parallel_safe") is True,
        subtasks=tuple(_subtask(one, f"{number}.{at}") for at, one in enumerate(found.objects if found else (), 1)),
    )


def _subtask(node: Node, fallback: str) -> Subtask:
    raw = node.plain
    return Subtask(
        id=word(raw.get("id"), raw.get("subtask_id"), raw.get("chunk_id")) or fallback,
        description=word(raw.get("description"), raw.get("title"), raw.get("name")),
        status=_status(raw) or "pending",
        node=node,
        raw=raw,
    )


def _status(raw: Mapping[str, Any]) -> str:
    """Return the status that a subtask has; "" for one that we do not know."""
    said = word(raw.get("status")).replace(" ", "_").replace("-", "_").casefold() or "pending"
    status = ALIASES.get(said, said)
    return status if status in STATUSES else ""


def _task(text: str, subtask: Subtask, kind: str, **order: Any) -> Task:
    raw, said = subtask.raw, subtask.description
    files = [*strings(raw.get("files_to_create")), *strings(raw.get("files_to_modify"))]
    return make_task(
        text,
        subtask.node,
        {name: value for name, value in raw.items() if name not in _OURS},
        id=subtask.id,
        title=said or f"Subtask {subtask.id}",
        checks=_checks(raw.get("verification")),
        files=tuple(dict.fromkeys(files)),
        commit=conventional(said, scope=word(raw.get("service")), kind=kind) if said else None,
        done=subtask.status == "completed",
        **order,
    )


_OURS = ("status", "actual_output", "started_at", "completed_at", "session_id", "critique_result")
"""What a run writes into a subtask: no part of what a person asks for."""


def _checks(verification: Any) -> tuple[Check, ...]:
    """Return the command, under either of its names; other ways to verify need a person or a browser."""
    if not isinstance(verification, dict):
        return ()
    command = word(verification.get("command"), verification.get("run"))
    return (Check(command=command),) if command else ()


def _odd(subtask: Subtask) -> Iterator[Problem]:
    raw, name = subtask.raw, subtask.id
    verification = raw.get("verification")
    kind = word(verification.get("type")) if isinstance(verification, dict) else ""
    if not _status(raw):
        message = f"Subtask {name} has the unknown status {word(raw.get('status'))!r}; it is read as pending."
        yield Problem(message=message, hint=f"Use one of {', '.join(STATUSES)}.")
    if verification and not isinstance(verification, dict):
        hint = 'Write it as {"type": "command", "run": "a command that fails while it is not done"}.'
        yield Problem(message=f"The verification of subtask {name} is not read: it is not an object.", hint=hint)
    if kind and kind not in VERIFICATIONS:
        hint = f"Use one of {', '.join(VERIFICATIONS)}."
        yield Problem(message=f"Subtask {name} has the unknown verification type {kind!r}.", hint=hint)
    if subtask.status != "completed" and kind not in ("", "command") and not _checks(verification):
        hint = "Give it a command that fails while it is not done."
        yield Problem(message=f"Subtask {name} is verified by {kind}, which is not a command.", hint=hint)
    if not subtask.description:
        yield Problem(message=f"Subtask {name} has no description.", hint="Say what is to be done.")


def _before(phase: Phase, phases: Sequence[Phase], problems: list[Problem]) -> tuple[str, ...]:
    """Return the subtasks of the phases that this one depends on; an empty phase passes on what it waits for itself."""
    found: dict[str, None] = {}
    seen, waiting = {id(phase)}, list(phase.depends_on)
    for name in waiting:  # grows while it is walked
        needed = [other for other in phases if name in other.names]
        if not needed and name in phase.depends_on:
            problems.append(
                Problem(
                    message=f"{phase.name} depends on an unknown phase {name!r}.",
                    hint="Correct the id, or add the phase.",
                )
            )
        for other in needed:
            if other is phase:
                problems.append(Problem(message=f"{phase.name} depends on itself.", hint="Remove that dependency."))
            elif id(other) not in seen:
                seen.add(id(other))
                found.update(dict.fromkeys(one.id for one in other.subtasks))
                waiting += () if other.subtasks else other.depends_on
    return tuple(found)
