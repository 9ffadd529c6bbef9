"""Edge: the simulated agent: reads its brief, falls ill as its course says, and really edits files."""

import re
import sys
import time
from pathlib import Path

from benchmarks.supervisor import courses
from benchmarks.supervisor.body import LITTER, Body, committed
from benchmarks.supervisor.diseases import DISEASES, ORDINARY, PRICES, QUOTA, QUOTA_WINDOW, window
from benchmarks.supervisor.project import HOME, Project, Task, read
from benchmarks.supervisor.world import World, load

NAMED = re.compile(r"\b[Tt]ask (?P<id>\d+\.\d+)")
DIALOGUES = {"--experimental-acp", "--input-format"}
"""Ways to talk to an agent that this one has not: a supervisor that tries them must not wait for an answer."""
PLANS = ("tasks.md", "PRD.md", "PROMPT.md")
OPEN = re.compile(r"^- \[ \] (?P<id>\d+\.\d+)", re.MULTILINE)


def main(folder: str, arguments: list[str]) -> int:
    """Work through one session."""
    world = load(Path(folder))
    if "--version" in arguments:
        sys.stdout.write("1.0.0 (Claude Code)\n")
        return 0
    if DIALOGUES & set(arguments):
        sys.stderr.write("unknown option: it takes one brief and works through it\n")
        return 2
    brief = heard(arguments)
    project = read(HOME / world.project)
    tree = Path.cwd()
    task, picked = asked(project, brief, tree)
    if task is None:
        sys.stdout.write(
            '{"type": "result", "subtype": "success", "is_error": false, "result": "ALL_TASKS_COMPLETE"}\n'
        )
        return 0
    number, name = admitted(world, task, brief)
    kept = committed(tree, {*project.sources, *LITTER, project.skip.path})
    body = Body(world=world, project=project, task=task, number=number, tree=tree, kept=kept)
    if picked and name not in {"hanger", "crasher", "quota-hitter", "context-loser", "asker", "slow-but-right"}:
        tick(tree, task)
    code = DISEASES[name](body)
    body.used()
    return code


def heard(arguments: list[str]) -> str:
    """Return the brief: what stands behind -p, and what comes on stdin."""
    spoken = [word for word in arguments if not word.startswith("-")]
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    return "\n".join((*spoken, piped))


def asked(project: Project, brief: str, tree: Path) -> tuple[Task | None, bool]:
    """Return the task that the brief names, or else the next open one of the plan, and whether it was picked there."""
    if found := NAMED.search(brief):
        return project.tasks.get(found["id"]), False
    titled = [task for task in project.tasks.values() if task.title in brief]
    if len(titled) == 1:
        return titled[0], False
    for plan in PLANS:
        if (tree / plan).exists():
            first = OPEN.search((tree / plan).read_text(encoding="utf-8"))
            return (project.tasks[first["id"]] if first else None), True
    return None, True


def admitted(world: World, task: Task, brief: str) -> tuple[int, str]:
    """Count the session in; return its number and what ails it."""
    key = (world.pathology, world.seed, world.project, task.id)
    with world.locked():
        starts = [note for note in world.log() if note["event"] == "start" and note["task"] == task.id]
        told = bool(starts) and bool(set(brief.splitlines()) - set(starts[0]["brief"].splitlines()))
        before = sum(1 for note in starts if note["counts"])
        course = courses.course(*key)
        ill = before < (course.told if told else course.untold)
        waiting = refused(world, task)
        name = QUOTA if waiting else courses.disease(*key, before) if ill else courses.HEALTHY
        if name == QUOTA and not waiting:
            window(world, task).write_text(str(int(time.time() + QUOTA_WINDOW)), encoding="utf-8")
        cost, minutes = PRICES.get(name, ORDINARY)
        world.note(
            "start", task=task.id, number=len(starts), told=told, disease=name, cost=cost, minutes=minutes,
            counts=not waiting, brief="" if starts else brief,
        )  # fmt: skip
    return len(starts), name


def refused(world: World, task: Task) -> bool:
    """Tell whether the provider still refuses."""
    clock = window(world, task)
    return clock.exists() and time.time() < int(clock.read_text(encoding="utf-8"))


def tick(tree: Path, task: Task) -> None:
    """Tick the task off in the plan, as an agent does that keeps the plan itself."""
    for plan in PLANS:
        path = tree / plan
        if path.exists():
            path.write_text(
                path.read_text(encoding="utf-8").replace(f"- [ ] {task.id} ", f"- [x] {task.id} "), encoding="utf-8"
            )
