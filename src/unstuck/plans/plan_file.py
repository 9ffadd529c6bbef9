"""Edge: Find a plan on disk, tell its format, read it, and tick its boxes without ever losing a person's edit."""

import contextlib
import json
import os
import re
import shlex
import shutil
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol

from unstuck.model.errors import BadUsage, CannotWrite
from unstuck.model.plan import Insertion, Plan, Problem, Task
from unstuck.plans import dialects, json_formats, superplan, tasks_md
from unstuck.plans.blocks import OUR_ID, Located
from unstuck.plans.dialects import DIALECTS
from unstuck.plans.tasks_md import read_tasks_md
from unstuck.process.atomic_files import MAX_PLAN_BYTES, change_file, read_plan_bytes
from unstuck.toolchain.shell import BUILTINS, Runnable

_PART = re.compile(r"\bPart[ \t]+(\d{1,3})[ \t]+of[ \t]+(\d{1,3})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)(\d{1,3})(\.\w+)", re.DOTALL)
_HEAD_CHARS = 4000
SUPPORTED = (*DIALECTS, superplan.FORMAT, *json_formats.FORMATS)

COMPANIONS = (".ralph-state.json", ".progress.md")
"""What stands beside a plan in a spec folder and is kept up with it."""

IN_FOLDERS = (json_formats.FORMAT, "tasks.json", "tasks/tasks.json", "prd.json", "fix_plan.md", "@fix_plan.md")
"""What else may be the plan of a folder that has no tasks.md."""
_SPEC_FILES = (*COMPANIONS, "research.md", "requirements.md", "design.md")
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]*\[[ \t]*\S?[ \t]*\]", re.MULTILINE)
_BARE_LIST = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE)
_FIX_PLAN = re.compile(r"(?i)^@?fix[_-]plan\b")


def open_plan(
    path: Path,
    format: str | None = None,  # noqa: A002  # the word that users type as --format
    *,
    root: Path | None = None,
    known: Mapping[str, str] | None = None,
) -> "OpenPlan":
    """Open the plan at `path`, a file or a spec folder; raise BadUsage if there is none that we can read.

    Verify lines without back-ticks are judged for `root`, the repository (without it: found upwards from the plan).
    `known` holds task ids of an earlier reading and their titles, so that tasks without ids keep theirs.
    """
    in_folder = os.path.isdir(path)  # noqa: PTH112  # Path.is_dir raises on odd names
    file = _in_folder(path) if in_folder else path
    _require_file(file, path)
    content = read_plan_bytes(file)
    seen = format or _detect(content, file)
    if seen not in SUPPORTED:
        readable = ", ".join(SUPPORTED)
        if format:
            raise BadUsage(
                f"There is no plan format {format!r}; this version reads {readable}.", hint="Leave --format out."
            )
        raise BadUsage(
            f"{file} is {seen}; this version reads {readable}.",
            hint=f"Begin each task with a box, or let an agent make a plan of it: `unstuck draft {shlex.quote(str(file))}`.",
        )
    runnable = runnable_in(root or _repository(file))
    if seen not in DIALECTS:
        parts = plan_parts(file, content) if seen == superplan.FORMAT else (file,)
        others = tuple(part.name for part in parts[1:])
        return OpenPlan(parts, seen, runnable=runnable, companions=others, tag=_current_tag(file))
    spec_folder = in_folder or any((file.parent / name).exists() for name in _SPEC_FILES)
    companions = COMPANIONS if file.name == "tasks.md" and spec_folder and seen == tasks_md.FORMAT else ()
    return OpenPlan((file,), seen, runnable=runnable, known=known, companions=companions)


def read_plan_text(text: str, plan_format: str, path: str, root: Path) -> Plan:
    """Read a plan that is not on disk, in a format that is known; `path` is what its messages call it."""
    return _read([superplan.Part("", text)], plan_format, path, runnable_in(root))


def _read(
    parts: Sequence[superplan.Part],
    plan_format: str,
    path: str,
    runnable: Runnable,
    known: Mapping[str, str] | None = None,
    tag: str = "",
    problems: Sequence[Problem] = (),
) -> Plan:
    if plan_format == superplan.FORMAT:
        return superplan.read(parts, path, runnable=runnable, problems=problems)
    if plan_format in DIALECTS:
        return read_tasks_md(parts[0].text, path, runnable=runnable, known=known, dialect=DIALECTS[plan_format])
    return json_formats.read(plan_format, tasks_md.printable(parts[0].text), path, tag=tag, runnable=runnable)


def _in_folder(folder: Path) -> Path:
    """Return the plan of a spec folder, or of a folder that another tool keeps its plan in."""
    others = () if (folder / "tasks.md").exists() else (folder / name for name in IN_FOLDERS)
    return next((other for other in others if other.is_file()), folder / "tasks.md")


class OpenPlan:
    """A plan on disk, in one file or in parts. Implements `PlanFile`."""

    def __init__(
        self,
        parts: Sequence[Path],
        plan_format: str,
        *,
        runnable: Runnable,
        known: Mapping[str, str] | None = None,
        companions: tuple[str, ...] = (),
        tag: str = "",
    ) -> None:
        self.path = parts[0]
        self.format = plan_format
        self.companions = companions
        """Names of files in the plan's folder that are kept up with it, its further parts included."""
        self.extensible = plan_format in DIALECTS
        self.spec_folder = self.extensible and bool(companions)
        self._parts = tuple(parts)
        self._runnable = runnable
        self._known = dict(known or {})
        self._tag = tag
        self._owed: dict[str, str] = {}
        """Statuses that could not be written, because the file could not be read."""
        self._lock = threading.Lock()  # a task's thread inserts while the main thread marks

    def read(self) -> Plan:
        contents = {part: read_plan_bytes(part) for part in self._parts if part.is_file()}
        path, hint = str(self.path), "Name the plan itself, or split it."
        large = [part for part, content in contents.items() if len(content) > MAX_PLAN_BYTES]
        problems = [
            Problem(message=f"The plan's file {part.name} is missing.", hint="Put it back.")
            for part in self._parts
            if part not in contents
        ]
        problems += [
            Problem(message=f"{part} is larger than {MAX_PLAN_BYTES // 1_000_000} MB.", hint=hint) for part in large
        ]
        if large or not contents:
            return Plan(path=path, format=self.format, tasks=(), problems=tuple(problems))
        texts = [
            superplan.Part("" if part == self.path else part.name, tasks_md.decode(content))
            for part, content in contents.items()
        ]
        plan = _read(texts, self.format, path, self._runnable, self._known, self._tag, problems)
        if self.extensible and any(OUR_ID.fullmatch(task.id) for task in plan.tasks):
            self._known.update((task.id, task.title) for task in plan.tasks)
        return plan

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Write where tasks stand in place, atomically, file by file; return whether anything changed.

        Tasks that a person took out meanwhile are passed over. A file that is gone or cannot be read for now is
        owed what it was to be told.
        """
        with self._lock:
            wanted = {**self._owed, **statuses}
            self._owed = {}
            changed = [self._mark(part, wanted) for part in self._parts]
        return any(changed)

    def _mark(self, part: Path, statuses: Mapping[str, str]) -> bool:
        with contextlib.suppress(ValueError, RecursionError):
            if part.is_file():
                return _edit(part, lambda text: self._marked(text, statuses))
        self._owed.update(statuses)
        return False

    def _marked(self, text: str, statuses: Mapping[str, str]) -> str:
        if self.extensible:
            done = {name: status == "complete" for name, status in statuses.items()}
            return self._locate(text).tick(done)
        if self.format == superplan.FORMAT:
            return superplan.mark(text, statuses)
        return json_formats.mark(self.format, text, statuses, self._tag)

    def redone(
        self, contents: Mapping[str, bytes], insertions: Sequence[Insertion], tasks: Mapping[str, tuple[str, str]]
    ) -> dict[str, bytes]:
        """Do what `insert` and `mark` did in another version of the plan's files, by their names: the committed one.

        `tasks` holds the title and the status that each has in the run. One whose title is neither that nor the one
        that it has by now is another task, and is left alone.
        """
        texts = {part.name: tasks_md.decode(contents[part.name]) for part in self._parts if part.name in contents}
        for insertion in insertions if self.extensible else ():
            with contextlib.suppress(CannotWrite):  # what it is beside was never committed
                texts = {name: self._locate(text).insert(insertion, self._locate).text for name, text in texts.items()}
        parts = [superplan.Part(name, text) for name, text in texts.items()]
        there = _read(parts, self.format, "", self._runnable, self._known, self._tag).tasks if parts else ()
        now = {task.id: task.title for task in self.read().tasks}
        known = [task for task in there if task.id in tasks and task.title in (tasks[task.id][0], now.get(task.id))]
        with contextlib.suppress(ValueError, RecursionError):
            statuses = {task.id: tasks[task.id][1] for task in known}
            texts = {name: self._marked(text, statuses) for name, text in texts.items()}
        return {name: tasks_md.encode(text) for name, text in texts.items()}

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Write tasks into the plan, atomically, and return them as they read there. Those it has are left alone."""
        if not self.extensible:
            names = ", ".join(insertion.blocks)
            raise CannotWrite(f"{self.path} takes no new tasks ({names}).", hint="Use a tasks.md.")
        after = Located("", {})

        def inserted(text: str) -> str:
            nonlocal after
            before = self._locate(text)
            for name, block in insertion.blocks.items():
                self._refuse_another(before, name, block)
            after = before.insert(insertion, self._locate)
            return after.text

        with self._lock:
            _edit(self.path, inserted)
        return tuple(self._read_block(after, name) for name in insertion.blocks)

    def _locate(self, text: str) -> Located:
        return tasks_md.locate(text, self._known, DIALECTS[self.format])

    def _refuse_another(self, located: Located, name: str, block: str) -> None:
        """Refuse to take a task that a person wrote under our id for ours."""
        if name in located.places and located.places[name].fixes != self._task_in(block).fixes:
            raise CannotWrite(
                f"The plan has a task {name} of its own by now.",
                hint=f"Give that task in {self.path} another id, then `unstuck resume`.",
            )

    def _read_block(self, located: Located, name: str) -> Task:
        at = located.places[name]
        task = self._task_in(located.text[at.start : at.end])
        self._known[task.id] = task.title
        return replace(task, line=located.text.count("\n", 0, at.start) + 1)

    def _task_in(self, block: str) -> Task:
        """Read one task by itself."""
        found = _read([superplan.Part("", block)], self.format, str(self.path), self._runnable, self._known).tasks
        if len(found) != 1:
            raise CannotWrite(f"{block.splitlines()[0]!r} does not read as one task.", hint="Please report this.")
        return found[0]


def _edit(part: Path, change: Callable[[str], str]) -> bool:
    return change_file(part, lambda content: tasks_md.encode(change(tasks_md.decode(content))))


def plan_parts(file: Path, content: bytes) -> tuple[Path, ...]:
    """Return all files of a plan that says `Part N of M`, in order; the file alone if it says nothing of the kind."""
    said = _PART.search(content[:_HEAD_CHARS].decode(errors="replace"))
    name = _NUMBERED.fullmatch(file.name)
    if said is None or name is None or int(said[1]) != int(name[2]):
        return (file,)
    return tuple(file.with_name(f"{name[1]}{number}{name[3]}") for number in range(1, int(said[2]) + 1))


def _require_file(file: Path, path: Path) -> None:
    """Raise BadUsage unless `file`, asked for as `path`, is a file that can be read."""
    hint = "Name a plan file or a spec folder that holds a tasks.md, or put back the one that a run began with."
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        what = f"The folder {path} has no tasks.md." if file != path else f"There is no plan {path}."
        raise BadUsage(what, hint=hint) from None
    except (OSError, ValueError) as error:
        raise BadUsage(
            f"Cannot read the plan {path}: {getattr(error, 'strerror', None) or error}.", hint=hint
        ) from error
    if not stat.S_ISREG(mode):
        raise BadUsage(f"The plan {file} is no file.", hint=hint)


def _detect(content: bytes, file: Path) -> str:
    """Name the format by the content, or say what the file looks like."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r", "\n")
    if superplan.looks_like(text, named_tasks=file.name == "tasks.md"):
        return superplan.FORMAT
    if file.name == json_formats.FORMAT:
        return json_formats.FORMAT
    if text.lstrip().startswith(("{", "[")) and (seen := _detect_json(text, file)):
        return seen
    # A file that is no text is read all the same: the reader then says what is wrong with it.
    if dialects.is_kiro(text) or (".kiro" in file.resolve().parts and _CHECKBOX.search(text)):
        return dialects.KIRO.format
    if dialects.is_spec_kit(text):
        return dialects.SPEC_KIT.format
    if dialects.is_checklist(text, named=_FIX_PLAN.search(file.name) is not None):
        return dialects.CHECKLIST.format
    if file.name == "tasks.md" or "\0" in text or len(content) > MAX_PLAN_BYTES or _CHECKBOX.search(text):
        return tasks_md.FORMAT
    if not text.strip():
        return "empty"
    bare = " (it has lists, but no boxes)" if _BARE_LIST.search(text) else ""
    return f"a text without a task line such as `- [ ] 1.1 Add a parser`{bare}"


def _detect_json(text: str, file: Path) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if file.suffix == ".json":
            raise BadUsage(
                f"{file} is no valid JSON: {error}.", hint="Correct it there. Nothing was started."
            ) from error
        return ""
    return json_formats.format_of(value)


def _current_tag(file: Path) -> str:
    """Return the tag that Task Master works on; empty where it says nothing."""
    folder = next((above for above in file.resolve().parents if above.name == ".taskmaster"), None)
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8")) if folder else {}
    except (OSError, ValueError, RecursionError):
        return ""
    tag = state.get("currentTag") if isinstance(state, dict) else ""
    return tag if isinstance(tag, str) else ""


def runnable_in(root: Path) -> Runnable:
    """Return the test for commands that run in `root`: a builtin, a program on PATH or a file of the repository."""

    @cache
    def runnable(word: str) -> bool:
        on_path = os.sep not in word and shutil.which(word) is not None
        return word in BUILTINS or on_path or os.path.isfile(root / word)  # noqa: PTH113  # Path.is_file raises on odd names

    return runnable


def _repository(file: Path) -> Path:
    """Return the nearest folder above that is a repository's, else the plan's own."""
    folder = Path(os.path.realpath(file)).parent
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


class PlanFile(Protocol):
    """The user's plan on disk: read it, change ticks and write new tasks in place."""

    @property
    def extensible(self) -> bool:
        """Whether the format can take new tasks."""

    @property
    def path(self) -> Path: ...

    @property
    def companions(self) -> tuple[str, ...]:
        """Names of files in the plan's folder that are kept up with it."""

    @property
    def spec_folder(self) -> bool:
        """Whether everything in the plan's folder belongs to it."""

    def read(self) -> Plan: ...

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Write where tasks stand in place, atomically; return whether anything changed."""

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Write tasks into the plan, atomically, and return them as they read there. Those it has are left alone."""

    def redone(
        self, contents: Mapping[str, bytes], insertions: Sequence[Insertion], tasks: Mapping[str, tuple[str, str]]
    ) -> Mapping[str, bytes]:
        """Do what `insert` and `mark` did in another version of the plan's files, by their names.

        `tasks` holds the title and the status that each has in the run.
        """
