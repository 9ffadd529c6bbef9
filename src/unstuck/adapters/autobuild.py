"""Take over what a predecessor left in `.autobuild/`: phases whose commit the user's branch has stay complete."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.adapters.git import Git
from unstuck.core.plan import Plan, Task, named

FOLDER = ".autobuild"
LARGEST = 5_000_000
COMPLETE = ("complete", "completed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """The plan with what was done before, and what there is to say about it."""

    plan: Plan
    notes: tuple[str, ...] = ()


def adopt(root: Path, git: Git, plan: Plan) -> Adopted:
    """Mark the plan's phases done that the predecessor completed; nothing of its folder is changed."""
    folder = root / FOLDER
    if plan.format != "superplan" or not (folder / "phases").is_dir():
        return Adopted(plan=plan)
    config = _read(folder / "config.json") or {}
    meant = config.get("plan_path")
    if isinstance(meant, str) and not _same_plan(root, meant, plan.path):
        return Adopted(plan=plan, notes=(f"{FOLDER}/ belongs to another plan, {meant!r}; nothing of it is used.",))
    tasks = {task.id: task for task in plan.tasks}
    done: list[str] = []
    notes: list[str] = []
    for state in _states(folder / "phases"):
        task = _task(tasks, state)
        if task is None or task.done or state.get("status") not in COMPLETE:
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
    return Adopted(plan=replace(plan, tasks=kept), notes=tuple(notes))


def _states(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("phase-*.json")):
        if (state := _read(path)) is not None:
            yield state


def _task(tasks: dict[str, Task], state: dict[str, Any]) -> Task | None:
    """Return the phase that a state file is about: the id must be the plan's, and the name, where it gives one, too."""
    name = named(tasks.values(), str(state.get("phase_id", "")))
    task = tasks.get(name) if name else None
    said = state.get("phase_name")
    if task is None or not isinstance(said, str):
        return None
    one, other = said.casefold().strip(), task.title.casefold().strip()
    return task if one.startswith(other) or other.startswith(one) else None


def _same_plan(root: Path, meant: str, path: str) -> bool:
    return os.path.realpath(root / meant) == os.path.realpath(root / path)


def _reached(git: Git, commit: str) -> bool:
    whole = commit.isalnum() and git.succeeds(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"
    )
    return whole and git.succeeds("merge-base", "--is-ancestor", commit, "HEAD")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > LARGEST:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
