"""Edge: read the bench's projects: a plan, its true tree, and the hidden tests."""

import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.supervisor.fences import Form, Source, parse, render

HOME = Path(__file__).parent / "projects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a plan."""

    id: str
    title: str
    do: str
    files: tuple[str, ...]
    verify: str
    parallel: bool
    after: tuple[str, ...]
    """The tasks without whose work this one cannot be right."""

    @property
    def product(self) -> str:
        """The file with the work itself; the last one is its test."""
        return self.files[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A file that a pathology puts into the repository."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A small real repository with a plan, and all that is known of it."""

    name: str
    language: str
    needs: tuple[str, ...]
    gate: str
    hidden: tuple[str, ...]
    rename: tuple[str, str]
    broken: str
    skip: Planted
    failing: Planted
    flaky: Planted
    tasks: Mapping[str, Task]
    sources: Mapping[str, Source]

    def files(self, state: Mapping[str, Form]) -> dict[str, str]:
        """Return the tree in a state of the work; a file without content is not there yet."""
        rendered = {path: render(source, state) for path, source in self.sources.items()}
        return {path: text for path, text in rendered.items() if text.strip()}

    @property
    def product(self) -> frozenset[str]:
        """The files that hidden tests can reach."""
        return frozenset(path for path in self.sources if not path.startswith(("tests/", "acceptance/")))

    def hidden_test(self, feature: str) -> Path:
        """Return the hidden test of a task, or of the base (`0`)."""
        return next((HOME / self.name / "hidden").glob(f"{feature}.*"))

    @property
    def missing(self) -> str:
        """Why the project cannot be run here, or nothing."""
        tools = [tool for tool in self.needs if shutil.which(tool) is None]
        return f"needs {', '.join(tools)}" if tools else ""

    def plan(self) -> str:
        """Write the plan as everyone sees it."""
        lines = [f"# Tasks: {self.name}"]
        for task in self.tasks.values():
            phase = task.id.partition(".")[0]
            if f"## Phase {phase}" not in lines:
                lines += ["", f"## Phase {phase}"]
            lines += [
                "",
                f"- [ ] {task.id} {'[P] ' if task.parallel else ''}{task.title}",
                f"  - **Do**: {task.do}; add a test",
                f"  - **Files**: {', '.join(f'`{path}`' for path in task.files)}",
                f"  - **Verify**: `{task.verify}`",
                f"  - **Commit**: `feat: {task.title.lower()}`",
            ]
        return "\n".join(lines) + "\n"


def projects() -> dict[str, Project]:
    """Return all projects, by name."""
    return {path.parent.name: read(path.parent) for path in sorted(HOME.glob("*/project.toml"))}


def read(folder: Path) -> Project:
    """Read one project."""
    told = tomllib.loads((folder / "project.toml").read_text(encoding="utf-8"))
    tasks = [
        Task(
            id=row["id"],
            title=row["title"],
            do=row["do"],
            files=tuple(row["files"]),
            verify=told["verify"].replace("{id}", row["id"]),
            parallel=row.get("parallel", False),
            after=tuple(row.get("after", ())),
        )
        for row in told["task"]
    ]
    tree = folder / "tree"
    return Project(
        name=folder.name,
        language=told["language"],
        needs=tuple(told["needs"]),
        gate=told["gate"],
        hidden=tuple(told["hidden"]),
        rename=(told["rename"][0], told["rename"][1]),
        broken=told["broken"],
        skip=Planted(**told["skip"]),
        failing=Planted(**told["failing"]),
        flaky=Planted(**told["flaky"]),
        tasks={task.id: task for task in tasks},
        sources={
            str(path.relative_to(tree)): parse(path.read_text(encoding="utf-8"))
            for path in sorted(tree.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        },
    )
