"""Read an `implementation_plan.json` as forgivingly as its makers do, and keep its statuses current: one value changes, and nothing else."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unstuck.plans.commit_text import conventional
from unstuck.plans.editor import Edit, apply
from unstuck.plans.json_places import Node, places, plain_object, set_value, strings, word
from unstuck.plans.plan import Check, Plan, Problem, Task

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

    number: str
    name: str
    names: tuple[str, ...]
    depends_on: tuple[str, ...]
    parallel: bool
    subtasks: tuple[Subtask, ...]

    @property
    def complete(self) -> bool:
        return all(one.status == "completed" for one in self.subtasks)


def read(text: str, path: str) -> Plan:
    """Read a whole plan; everything wrong with it is in its problems and concerns."""
    try:
        phases = read_phases(text)
    except (ValueError, RecursionError) as error:
        return Plan(
            path=path,
            format=FORMAT,
            tasks=(),
            problems=(Problem(message=f"The file is not a plan in JSON: {error}.", hint="Correct the JSON."),),
        )
    document = json.loads(text.removeprefix("\ufeff"))
    kind = COMMIT_TYPES.get(str(document.get("workflow_type", "")), "")
    tasks, problems, concerns = list[Task](), list[Problem](), list[Problem]()
    for phase in phases:
        before = _before(phase, phases, problems)
        earlier = list[str]()
        for subtask in phase.subtasks:
            line = text.count("\n", 0, subtask.node.start) + 1
            depends_on = before if phase.parallel else (*before, *earlier[-1:])
            beside = tuple(one.id for one in phase.subtasks if one is not subtask) if phase.parallel else ()
            task = _task(subtask, line, depends_on, kind, beside)
            tasks.append(task)
            concerns += _odd(subtask, line)
            earlier.append(task.id)
    return Plan(
        path=path,
        format=FORMAT,
        title=str(document.get("feature") or document.get("title") or ""),
        tasks=tuple(tasks),
        problems=tuple(problems),
        concerns=tuple(concerns),
    )


def read_phases(text: str) -> tuple[Phase, ...]:
    """Resolve all aliases; raise ValueError where there are no phases at all."""
    json.loads(text.removeprefix("\ufeff"))
    root = places(text)
    listed = root.get("phases")
    if listed is None or not isinstance(listed.value, list):
        raise ValueError('it has no list "phases"')
    return tuple(_phase(node, place) for place, node in enumerate(listed.items, 1) if isinstance(node.value, dict))


def next_pending(phases: Sequence[Phase]) -> Subtask | None:
    """Return the first pending subtask of the first phase whose dependencies are all complete."""
    for phase in phases:
        named = {name: other.complete and other is not phase for other in phases for name in other.names}
        if all(named.get(name, False) for name in phase.depends_on):
            found = next((one for one in phase.subtasks if one.status == "pending"), None)
            if found is not None:
                return found
    return None


def progress(phases: Sequence[Phase]) -> Mapping[str, int]:
    """Count the subtasks by status."""
    counts = Counter(one.status for phase in phases for one in phase.subtasks)
    return {status: counts[status] for status in STATUSES} | {"total": sum(counts.values())}


def overall(statuses: Sequence[str]) -> tuple[str, str]:
    """Return the plan's own `status` and `planStatus` for the statuses of its subtasks."""
    if statuses and all(status == "completed" for status in statuses):
        return "human_review", "review"
    begun = any(status in ("completed", "in_progress", "failed") for status in statuses)
    return ("in_progress", "in_progress") if begun else ("backlog", "pending")


def mark(text: str, statuses: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Write the statuses of subtasks, and the plan's own that follow from them; no other byte changes."""
    root, phases = places(text), read_phases(text)
    subtasks = [one for phase in phases for one in phase.subtasks]
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
    raw = plain_object(node)
    number = word(raw.get("phase")) or str(place)
    identity = word(raw.get("id")) or word(raw.get("phase_id"))
    depends = raw.get("depends_on")
    listed = depends if isinstance(depends, list) else [] if depends is None else [depends]
    found = node.get("subtasks", "chunks")
    subtasks = [one for one in (found.items if found else ()) if isinstance(one.value, dict)]
    return Phase(
        number=number,
        name=word(raw.get("name")) or word(raw.get("title")) or f"Phase {number}",
        names=tuple(dict.fromkeys(name for name in (identity, number) if name)),
        depends_on=tuple(word(one) for one in listed if word(one)),
        parallel=raw.get("parallel_safe") is True,
        subtasks=tuple(_subtask(one, f"{number}.{at}") for at, one in enumerate(subtasks, 1)),
    )


def _subtask(node: Node, fallback: str) -> Subtask:
    raw = plain_object(node)
    return Subtask(
        id=word(raw.get("id")) or word(raw.get("subtask_id")) or word(raw.get("chunk_id")) or fallback,
        description=word(raw.get("description")) or word(raw.get("title")) or word(raw.get("name")),
        status=_status(raw) or "pending",
        node=node,
        raw=raw,
    )


def _status(raw: Mapping[str, Any]) -> str:
    """Return the status that a subtask has; "" for one that we do not know."""
    said = word(raw.get("status")).replace(" ", "_").replace("-", "_").casefold() or "pending"
    status = ALIASES.get(said, said)
    return status if status in STATUSES else ""


def _task(subtask: Subtask, line: int, depends_on: tuple[str, ...], kind: str, beside: tuple[str, ...]) -> Task:
    raw = subtask.raw
    files = [*strings(raw.get("files_to_create")), *strings(raw.get("files_to_modify"))]
    shown = {name: value for name, value in raw.items() if name not in _OURS}
    return Task(
        id=subtask.id,
        title=subtask.description or f"Subtask {subtask.id}",
        line=line,
        body=json.dumps(shown, indent=2, ensure_ascii=False),
        depends_on=depends_on,
        parallel_with=beside,
        checks=_checks(raw.get("verification")),
        files=tuple(dict.fromkeys(files)),
        commit=conventional(subtask.description, scope=word(raw.get("service")), kind=kind)
        if subtask.description
        else None,
        done=subtask.status == "completed",
        digest=json.dumps(shown, sort_keys=True, default=str),
    )


_OURS = ("status", "actual_output", "started_at", "completed_at", "session_id", "critique_result")
"""What a run writes into a subtask: no part of what a person asks for."""


def _checks(verification: Any) -> tuple[Check, ...]:
    """Return the command, under either of its names; other ways to verify need a person or a browser."""
    if not isinstance(verification, dict):
        return ()
    command = word(verification.get("command")) or word(verification.get("run"))
    return (Check(command=command),) if command else ()


def _odd(subtask: Subtask, line: int) -> Iterator[Problem]:
    raw = subtask.raw
    if not _status(raw):
        yield Problem(
            message=f"Subtask {subtask.id} has the unknown status {word(raw.get('status'))!r}; it is read as pending.",
            line=line,
            hint=f"Use one of {', '.join(STATUSES)}.",
        )
    verification = raw.get("verification")
    kind = word(verification.get("type")) if isinstance(verification, dict) else ""
    if verification and not isinstance(verification, dict):
        yield Problem(
            message=f"The verification of subtask {subtask.id} is not read: it is not an object.",
            line=line,
            hint='Write it as {"type": "command", "run": "a command that fails while it is not done"}.',
        )
    if kind and kind not in VERIFICATIONS:
        yield Problem(
            message=f"Subtask {subtask.id} has the unknown verification type {kind!r}.",
            line=line,
            hint=f"Use one of {', '.join(VERIFICATIONS)}.",
        )
    if subtask.status != "completed" and kind not in ("", "command") and not _checks(verification):
        yield Problem(
            message=f"Subtask {subtask.id} is verified by {kind}, which is not a command.",
            line=line,
            hint="Give it a command that fails while it is not done.",
        )
    if not subtask.description:
        yield Problem(message=f"Subtask {subtask.id} has no description.", line=line, hint="Say what is to be done.")


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
