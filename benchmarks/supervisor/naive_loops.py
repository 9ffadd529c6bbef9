"""Edge: the supervisors that everybody has written once: no second look, a loop until done, n tries with the error."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.supervisor.project import HOME, Task, read
from benchmarks.supervisor.world import World, load

TRIES = 3
ROUNDS = 3
"""A loop until done gives up after this many rounds for each task of the plan."""
OUTPUT = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFiles:
    """What the loops work with."""

    world: World
    tasks: Mapping[str, Task]
    repository: Path

    def session(self, brief: str) -> bool:
        """Let the agent work once; say whether it claims to be done."""
        try:
            done = subprocess.run(
                (str(self.world.path / "bin" / "claude"), "-p"),
                input=brief.encode(),
                cwd=self.repository,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self.world.patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0 and b"TASK_COMPLETE" in done.stdout

    def run(self, *argv: str) -> tuple[int, str]:
        done = subprocess.run(argv, cwd=self.repository, capture_output=True, text=True, errors="replace", check=False)
        return done.returncode, (done.stdout + done.stderr)[-OUTPUT:]

    def commit(self, task: Task) -> None:
        self.run("git", "add", "-A")
        self.run("git", "commit", "-q", "-m", f"feat: {task.title.lower()}")


def ask(task: Task) -> str:
    """Write a task as a brief."""
    return (
        f"Task {task.id}: {task.title}\n{task.do}; add a test.\nFiles: {', '.join(task.files)}\nCheck: {task.verify}\n"
    )


def none(own_files: OwnFiles) -> list[str]:
    """Give every task to the agent once and believe what it says."""
    done = []
    for task in own_files.tasks.values():
        if own_files.session(ask(task)):
            done.append(task.id)
        own_files.commit(task)
    return done


def loop(own_files: OwnFiles) -> list[str]:
    """Repeat the same words until the agent has ticked everything off."""
    plan = own_files.repository / "tasks.md"
    for _ in range(ROUNDS * len(own_files.tasks)):
        if "- [ ]" not in plan.read_text(encoding="utf-8"):
            break
        own_files.session(
            "Do the next open item of tasks.md, tick it off, commit. Say ALL_TASKS_COMPLETE when none is left."
        )
    own_files.run("git", "add", "-A")
    own_files.run("git", "commit", "-q", "-m", "chore: the rest")
    return re.findall(r"^- \[x\] (\d+\.\d+)", plan.read_text(encoding="utf-8"), re.MULTILINE)


def retry(own_files: OwnFiles) -> list[str]:
    """Check with the task's own command; try up to three times, each told the output of the one before."""
    done = []
    for task in own_files.tasks.values():
        brief = ask(task)
        for _ in range(TRIES):
            own_files.session(brief)
            code, output = own_files.run("bash", "-c", task.verify)
            if code == 0:
                done.append(task.id)
                own_files.commit(task)
                break
            brief = f"{ask(task)}\nThe check failed:\n{output}\n"
        else:
            own_files.run("git", "reset", "-q", "--hard")
            own_files.run("git", "clean", "-fdq")
    return done


MODES: Mapping[str, Callable[[OwnFiles], list[str]]] = {"none": none, "loop": loop, "retry": retry}


def main(mode: str, folder: str) -> None:
    """Run a plan in a trial's repository; print the tasks that are said to be done."""
    world = load(Path(folder))
    own_files = OwnFiles(world=world, tasks=read(HOME / world.project).tasks, repository=Path(world.repository))
    sys.stdout.write("DONE " + " ".join(MODES[mode](own_files)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
