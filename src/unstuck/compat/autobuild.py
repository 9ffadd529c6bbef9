"""Edge: Take over what predecessors left: the phases in `.autobuild/`, the histories of Auto-Claude."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from unstuck.git.git_command import Git
from unstuck.model.event import Inherited, PastAttempt, PastCommit, PastTask
from unstuck.model.plan import Plan, Task, named

FOLDER = ".autobuild"
COMPLETE = ("complete", "completed")
ATTEMPT = re.compile(r"attempt_(\d{1,3})(?:_error)?")
"""An attempt's error, in either of the two shapes that these files have."""
TEXT_CHARS = 2000
FOLDERS = ("memory", ".")
"""Where a predecessor keeps its files, seen from its plan."""
HISTORY, COMMITS = "attempt_history.json", "build_commits.json"
Past = TypeVar("Past", PastAttempt, PastCommit)
MOST_ATTEMPTS = 50
"""The last ones of a task; a brief tells three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """The plan with what was done before, and what there is to say about it."""

    plan: Plan
    notes: tuple[str, ...] = ()
    inherited: Inherited | None = None
    """What was tried before and failed."""


def adopt(root: Path, git: Git, plan: Plan) -> Adopted:
    """Mark the plan's phases done that the predecessor completed; nothing of its folder is changed."""
    folder = root / FOLDER
    if plan.format != "superplan" or not (folder / "phases").is_dir():
        return Adopted(plan=plan)
    meant = _read_object(folder / "config.json").get("plan_path")
    if isinstance(meant, str) and os.path.realpath(root / meant) != os.path.realpath(root / plan.path):
        return Adopted(plan=plan, notes=(f"{FOLDER}/ belongs to another plan, {meant!r}; nothing of it is used.",))
    tasks = {task.id: task for task in plan.tasks}
    done: list[str] = []
    notes: list[str] = []
    tried: list[PastTask] = []
    for path in sorted((folder / "phases").glob("phase-*.json")):
        state = _read_object(path)
        task = _task(tasks, state)
        if task is None or task.done:
            continue
        if state.get("status") not in COMPLETE:
            attempts = tuple(_failures(state))
            tried += [PastTask(id=task.id, attempts=attempts)] if attempts else []
            continue
        commit = (state.get("commit") or {}).get("commit_sha") if isinstance(state.get("commit"), dict) else None
        if isinstance(commit, str) and _reached(git, commit):
            done.append(task.id)
        else:
            notes.append(
                f"{FOLDER}/ says that phase {task.shown} is complete, but its commit is not on your branch; it is done again."
            )
    kept = tuple(replace(task, done=True) if task.id in done else task for task in plan.tasks)
    if done:
        named_done = ", ".join(tasks[name].shown for name in tasks if name in done)
        notes.insert(
            0, f"Adopted from {FOLDER}/: complete before this run, with a commit on your branch: {named_done}."
        )
    past = Inherited(source=str(folder), tasks=tuple(tried), commits=()) if tried else None
    return Adopted(plan=replace(plan, tasks=kept), notes=tuple(notes), inherited=past)


def _task(tasks: dict[str, Task], state: dict[str, Any]) -> Task | None:
    """Return the phase that a state file is about: the id must be the plan's, and the name, where it gives one, too."""
    name = named(tasks.values(), str(state.get("phase_id", "")))
    task = tasks.get(name) if name else None
    said = state.get("phase_name")
    if task is None or not isinstance(said, str):
        return None
    one, other = said.casefold().strip(), task.title.casefold().strip()
    return task if one.startswith(other) or other.startswith(one) else None


def _failures(state: dict[str, Any]) -> Iterator[PastAttempt]:
    """Yield how each attempt failed; a phase that was only blocked was never tried."""
    error, times = state.get("error"), state.get("timestamps")
    found = {int(name[1]): value for key, value in _items(error) if (name := ATTEMPT.fullmatch(key))}
    if not found and isinstance(error, dict) and error.get("type") not in (None, "blocked"):
        found = {1: error}
    failed = dict(_items(times)).get("failed")
    for number, told in sorted(found.items()):
        words = [dict(_items(told)).get(name) for name in ("type", "message")] if isinstance(told, dict) else [told]
        said = ": ".join(word for word in words if isinstance(word, str) and word)
        at = failed if isinstance(failed, str) else ""
        yield PastAttempt(session=number, timestamp=at[:64], approach="", success=False, error=said[:TEXT_CHARS])


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _reached(git: Git, commit: str) -> bool:
    whole = commit.isalnum() and git.succeeds(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"
    )
    return whole and git.succeeds("merge-base", "--is-ancestor", commit, "HEAD")


def inherited(plan: Path, *more: Path) -> Inherited | None:
    """Return what the first folder with records tells. A file that cannot be read tells nothing and stops nothing."""
    for folder in (*(plan.parent / name for name in FOLDERS), *more):
        tasks = tuple(_tasks(_read_object(folder / HISTORY).get("subtasks")))
        commits = tuple(_read(PastCommit, _read_object(folder / COMMITS).get("commits")))
        if tasks or commits:
            return Inherited(source=str(folder), tasks=tasks, commits=commits)
    return None


def _read_object(file: Path) -> dict[str, Any]:
    """Read an object; a file that is none holds nothing."""
    try:
        content = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _tasks(subtasks: object) -> Iterator[PastTask]:
    for name, entry in subtasks.items() if isinstance(subtasks, dict) else ():
        attempts = tuple(_read(PastAttempt, entry.get("attempts") if isinstance(entry, dict) else None))
        if attempts:
            yield PastTask(id=name, attempts=attempts[-MOST_ATTEMPTS:])


def _read(shape: type[Past], items: object) -> Iterator[Past]:
    """Fill a shape from each object of a list: what is missing there, or of another type, is empty."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            kept = {one.name: item[one.name] for one in fields(shape) if type(item.get(one.name)) is one.type}
            empty: dict[str, Any] = {one.name: one.type() for one in fields(shape) if callable(one.type)}
            texts = {name: value[:TEXT_CHARS] for name, value in kept.items() if isinstance(value, str)}
            yield shape(**empty | kept | texts)
