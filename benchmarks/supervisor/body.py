"""Edge: what an agent of the bench can do: edit its tree, use git, speak as Claude Code does."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.supervisor.courses import draw
from benchmarks.supervisor.fences import BASE, Form, Source, render, state_of
from benchmarks.supervisor.project import Project, Task
from benchmarks.supervisor.world import World

EXTRA = "extra/notes.md"
JUNK = "junk.bin"
LITTER = (EXTRA, JUNK)
ORDER = tuple(Form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One session of an agent."""

    world: World
    project: Project
    task: Task
    number: int
    """How many sessions this task had before."""
    tree: Path
    kept: Mapping[str, str]
    """The files of the last commit."""

    def chance(self, *key: object) -> float:
        """Draw for this session."""
        return draw(*key, self.world.pathology, self.world.seed, self.project.name, self.task.id, self.number)

    # What it says.

    def say(self, text: str) -> None:
        self._print(
            {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}
        )

    def end(self, text: str, *, error: bool = False) -> int:
        """Print the result line; return the exit code that goes with it."""
        self._print(
            {
                "type": "result",
                "subtype": "success",
                "is_error": error,
                "result": text,
                "total_cost_usd": 0.4,
                "num_turns": 5,
                "session_id": f"{self.task.id}-{self.number}",
            }
        )
        return int(error)

    def claim(self, approach: str = "") -> int:
        """Say that all is done."""
        if self.world.commits:
            self.git("add", "-A")
            self.git("commit", "-q", "-m", f"feat: {self.task.title.lower()}")
        own = "".join(
            part.text(Form.TRUE) for part in self.project.sources[self.task.product] if part.task == self.task.id
        )
        self.say(f"{self.task.title}: {self.task.do}. Changed {', '.join(self.task.files)}.\n\n{own}")
        return self.last(f"TASK_COMPLETE\nAPPROACH: {approach or self.task.title.lower()}, take {self.number + 1}")

    def last(self, text: str, *, error: bool = False) -> int:
        """Say the last words; the result line repeats them, as Claude Code's does."""
        self.say(text)
        return self.end(text, error=error)

    def _print(self, line: dict[str, object]) -> None:
        print(json.dumps(line), flush=True)

    # What it does.

    def work(self, form: Form, also: dict[str, Form] | None = None) -> None:
        """Edit the tree and log what it holds then."""
        self.edit(form, also)
        self.remember(right=form is Form.TRUE and not also)

    def edit(self, form: Form, also: dict[str, Form] | None = None) -> None:
        """Bring the task's part of each of its files into a form; `also` changes parts of other tasks."""
        for path in (name for name in self.project.sources if name in self.task.files or also):
            state = self._state(path)
            wanted = {**state, **({self.task.id: form} if path in self.task.files else {})}
            wanted |= {task: bad for task, bad in (also or {}).items() if task in state}
            if wanted != state or path in self.task.files:
                self.write(path, render(self.project.sources[path], wanted))

    def remember(self, *, right: bool) -> None:
        """Log what the tree holds now, so that the bench can look for it at the end."""
        blobs = {}
        for path in self.task.files:
            if (self.tree / path).is_file():
                content = (self.tree / path).read_bytes()
                blobs[path] = [hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(), len(content)]
        self.world.note("work", task=self.task.id, number=self.number, right=right, blobs=blobs)
        self.used()

    def used(self) -> None:
        """Log the processor time so far: it is not the supervisor's."""
        self.world.note("cpu", task=self.task.id, number=self.number, seconds=sum(os.times()[:4]))

    def tidy(self) -> None:
        """Put back what an ill session before this one did outside of its task."""
        for path in {*self.project.sources, *LITTER, self.project.skip.path} - set(self.task.files):
            if path not in self.kept:
                (self.tree / path).unlink(missing_ok=True)
            elif self.kept[path] != self.read(path):
                self.write(path, self.kept[path])

    def rename(self) -> None:
        """Rename a public function everywhere but where the plan's author would see it."""
        old, new = self.project.rename
        for path in self.project.sources:
            text = self.read(path)
            if not path.startswith("acceptance/") and re.search(rf"\b{old}\b", text):
                self.write(path, re.sub(rf"\b{old}\b", new, text))

    def done(self) -> list[str]:
        """Return the tasks, and the base, whose parts are complete in the tree."""
        states = [self._state(path) for path in self.project.sources]
        tasks = [BASE, *(task for task in self.project.tasks if task != self.task.id)]
        return [task for task in tasks if all(state.get(task, Form.TRUE) is Form.TRUE for state in states)]

    def read(self, path: str) -> str:
        try:
            return (self.tree / path).read_text(encoding="utf-8")
        except OSError:
            return ""

    def write(self, path: str, text: str) -> None:
        """Write a file; one without content is removed."""
        if not text.strip():
            (self.tree / path).unlink(missing_ok=True)
            return
        (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / path).write_text(text, encoding="utf-8")

    def git(self, *arguments: str, where: Path | None = None) -> str | None:
        """Run git; None if it fails."""
        done = subprocess.run(
            ("git", "-c", "user.name=agent", "-c", "user.email=agent@localhost", *arguments),
            cwd=where or self.tree,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return done.stdout if done.returncode == 0 else None

    def orphan(self) -> None:
        """Leave a process of a session of its own behind, as a daemon does."""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nothing, stream)
                os.execv(sys.executable, (sys.executable, "-c", "import time; time.sleep(600)", self.world.folder))
            os._exit(0)
        os.wait()

    def linger(self, seconds: float, *, talking: bool) -> None:
        """Spend time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(0.25, max(0.0, until - time.monotonic())))
            if talking:
                self.say("Still at it.")

    def _state(self, path: str) -> dict[str, Form]:
        """Return how far a file has come: what stands in the tree, or what the last commit knows, whichever is more."""
        source: Source = self.project.sources[path]
        here = state_of(source, self.read(path))
        kept = state_of(source, self.kept.get(path, ""))
        return {task: max(form, kept[task], key=ORDER.index) for task, form in here.items()}


def committed(tree: Path, paths: Iterable[str]) -> dict[str, str]:
    """Read files of the last commit, all in one go; those that it has not are left out."""
    names = list(paths)
    asked = "".join(f"HEAD:{name}\n" for name in names).encode()
    answer = subprocess.run(
        ("git", "cat-file", "--batch"), cwd=tree, input=asked, capture_output=True, check=False
    ).stdout
    found: dict[str, str] = {}
    for name in names:
        head, _, answer = answer.partition(b"\n")
        if head.endswith(b"missing") or not head:
            continue
        size = int(head.split()[-1])
        found[name] = answer[:size].decode("utf-8", "replace")
        answer = answer[size + 1 :]
    return found
