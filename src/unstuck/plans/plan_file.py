"""Plans on disk: their formats, reading them, and ticking their boxes without losing the user's edits."""

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
"""Files beside the plan in a spec folder that `unstuck` updates with it. smart-ralph prescribes their names."""

IN_FOLDERS = (json_formats.FORMAT, "tasks.json", "tasks/tasks.json", "prd.json", "fix_plan.md", "@fix_plan.md")
"""Files that can be the plan of a folder without a tasks.md. Other tools prescribe their names."""
_SPEC_FILES = (*COMPANIONS, "research.md", "requirements.md", "design.md")
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]*\[[ \t]*\S?[ \t]*\]", re.MULTILINE)
_BARE_LIST = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE)
_FIX_PLAN = re.compile(r"(?i)^@?fix[_-]plan\b")


def open_plan(
    path: Path,
    format: str | None = None,  # noqa: A002  # the word that users type as --format
    *,
    root: Path | None = None,
    titles: Mapping[str, str] | None = None,
) -> "OpenPlan":
    """Open the plan at `path`, a file or a spec folder. Raise BadUsage if no plan can be read there.

    `root` is the repository in which commands without back-ticks must run, by default the one around the plan.
    `titles` holds the titles of an earlier reading by task id, so that tasks without ids keep theirs.
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
        further_parts = tuple(part.name for part in parts[1:])
        return OpenPlan(parts, seen, runnable=runnable, companions=further_parts, tag=_current_tag(file))
    spec_folder = in_folder or any((file.parent / name).exists() for name in _SPEC_FILES)
    companions = COMPANIONS if file.name == "tasks.md" and spec_folder and seen == tasks_md.FORMAT else ()
    return OpenPlan((file,), seen, runnable=runnable, titles=titles, companions=companions)


def read_plan_text(text: str, plan_format: str, path: str, root: Path) -> Plan:
    """Return the plan in a text that is not on disk. `path` is its name in messages."""
    return _read([superplan.Part("", text)], plan_format, path, runnable_in(root))


def _read(
    parts: Sequence[superplan.Part],
    plan_format: str,
    path: str,
    runnable: Runnable,
    titles: Mapping[str, str] | None = None,
    tag: str = "",
    problems: Sequence[Problem] = (),
) -> Plan:
    if plan_format == superplan.FORMAT:
        return superplan.read(parts, path, runnable=runnable, problems=problems)
    if plan_format in DIALECTS:
        return read_tasks_md(parts[0].text, path, runnable=runnable, titles=titles, dialect=DIALECTS[plan_format])
    return json_formats.read(plan_format, tasks_md.printable(parts[0].text), path, tag=tag, runnable=runnable)


def _in_folder(folder: Path) -> Path:
    """Return the plan's file in a folder: tasks.md, or the plan of another tool."""
    if (folder / "tasks.md").exists():
        return folder / "tasks.md"
    candidates = (folder / name for name in IN_FOLDERS)
    return next((file for file in candidates if file.is_file()), folder / "tasks.md")


class OpenPlan:
    """A plan on disk, in one file or in several parts. Implements `PlanFile`."""

    def __init__(
        self,
        parts: Sequence[Path],
        plan_format: str,
        *,
        runnable: Runnable,
        titles: Mapping[str, str] | None = None,
        companions: tuple[str, ...] = (),
        tag: str = "",
    ) -> None:
        self.path = parts[0]
        self.format = plan_format
        self.companions = companions
        """Names of files in the plan's folder that are updated with it, including its further parts."""
        self.extensible = plan_format in DIALECTS
        self.spec_folder = self.extensible and bool(companions)
        self._parts = tuple(parts)
        self._runnable = runnable
        self._titles = dict(titles or {})
        self._tag = tag
        self._unwritten: dict[str, str] = {}
        """Statuses that are not written yet, because a file could not be read."""
        self._lock = threading.Lock()  # the thread of a task inserts while the main thread marks

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
        plan = _read(texts, self.format, path, self._runnable, self._titles, self._tag, problems)
        if self.extensible and any(OUR_ID.fullmatch(task.id) for task in plan.tasks):
            self._titles.update((task.id, task.title) for task in plan.tasks)
        return plan

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Write the statuses of tasks into the files, each atomically, and return whether anything changed.

        Tasks that the user has removed are ignored. If a file is missing or cannot be read, the next call tries again.
        """
        with self._lock:
            wanted = {**self._unwritten, **statuses}
            self._unwritten = {}
            changed = [self._mark(part, wanted) for part in self._parts]
        return any(changed)

    def _mark(self, part: Path, statuses: Mapping[str, str]) -> bool:
        with contextlib.suppress(ValueError, RecursionError):
            if part.is_file():
                return _edit(part, lambda text: self._marked(text, statuses))
        self._unwritten.update(statuses)
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
        """Return other contents of the plan's files, such as the committed ones, with the edits of `insert` and `mark`.

        Contents are by file name. `tasks` holds the title and the status of each task in the run.
        A task whose title differs from that title and from the current one is another task, and is not marked.
        """
        texts = {part.name: tasks_md.decode(contents[part.name]) for part in self._parts if part.name in contents}
        for insertion in insertions if self.extensible else ():
            with contextlib.suppress(CannotWrite):  # the task beside it was never committed
                texts = {name: self._locate(text).insert(insertion, self._locate).text for name, text in texts.items()}
        parts = [superplan.Part(name, text) for name, text in texts.items()]
        there = _read(parts, self.format, "", self._runnable, self._titles, self._tag).tasks if parts else ()
        current = {task.id: task.title for task in self.read().tasks}
        same = [task for task in there if task.id in tasks and task.title in (tasks[task.id][0], current.get(task.id))]
        with contextlib.suppress(ValueError, RecursionError):
            statuses = {task.id: tasks[task.id][1] for task in same}
            texts = {name: self._marked(text, statuses) for name, text in texts.items()}
        return {name: tasks_md.encode(text) for name, text in texts.items()}

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Write tasks into the plan, atomically, and return them as read from it. Tasks that it has stay unchanged."""
        if not self.extensible:
            names = ", ".join(insertion.blocks)
            raise CannotWrite(f"{self.path} takes no new tasks ({names}).", hint="Use a tasks.md.")
        after = Located("", {})

        def inserted(text: str) -> str:
            nonlocal after
            before = self._locate(text)
            for name, block in insertion.blocks.items():
                self._require_own_task(before, name, block)
            after = before.insert(insertion, self._locate)
            return after.text

        with self._lock:
            _edit(self.path, inserted)
        return tuple(self._read_block(after, name) for name in insertion.blocks)

    def _locate(self, text: str) -> Located:
        return tasks_md.locate(text, self._titles, DIALECTS[self.format])

    def _require_own_task(self, located: Located, name: str, block: str) -> None:
        """Raise CannotWrite if the user has written another task with this id."""
        if name in located.places and located.places[name].fixes != self._task_in(block).fixes:
            raise CannotWrite(
                f"The plan has a task {name} of its own by now.",
                hint=f"Give that task in {self.path} another id, then `unstuck resume`.",
            )

    def _read_block(self, located: Located, name: str) -> Task:
        at = located.places[name]
        task = self._task_in(located.text[at.start : at.end])
        self._titles[task.id] = task.title
        return replace(task, line=located.text.count("\n", 0, at.start) + 1)

    def _task_in(self, block: str) -> Task:
        """Return the only task of a text."""
        tasks = _read([superplan.Part("", block)], self.format, str(self.path), self._runnable, self._titles).tasks
        if len(tasks) != 1:
            raise CannotWrite(f"{block.splitlines()[0]!r} does not read as one task.", hint="Please report this.")
        return tasks[0]


def _edit(part: Path, change: Callable[[str], str]) -> bool:
    return change_file(part, lambda content: tasks_md.encode(change(tasks_md.decode(content))))


def plan_parts(file: Path, content: bytes) -> tuple[Path, ...]:
    """Return all files of a plan that says `Part N of M`, in order. Without these words it has one file."""
    part = _PART.search(content[:_HEAD_CHARS].decode(errors="replace"))
    name = _NUMBERED.fullmatch(file.name)
    if part is None or name is None or int(part[1]) != int(name[2]):
        return (file,)
    return tuple(file.with_name(f"{name[1]}{number}{name[3]}") for number in range(1, int(part[2]) + 1))


def _require_file(file: Path, path: Path) -> None:
    """Raise BadUsage unless `file` is a file that can be read. `path` is the path that the user gave."""
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
    """Return the name of the format, or words for a file of an unknown format."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r", "\n")
    if superplan.looks_like(text, named_tasks=file.name == "tasks.md"):
        return superplan.FORMAT
    if file.name == json_formats.FORMAT:
        return json_formats.FORMAT
    if text.lstrip().startswith(("{", "[")) and (seen := _detect_json(text, file)):
        return seen
    # A binary file counts as tasks.md, whose reader reports the problem.
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
    """Return the tag that Task Master works on, or an empty string."""
    folder = next((above for above in file.resolve().parents if above.name == ".taskmaster"), None)
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8")) if folder else {}
    except (OSError, ValueError, RecursionError):
        return ""
    tag = state.get("currentTag") if isinstance(state, dict) else ""
    return tag if isinstance(tag, str) else ""


def runnable_in(root: Path) -> Runnable:
    """Return a function that tells whether a word can run in `root`: a builtin, a program or a file there."""

    @cache
    def runnable(word: str) -> bool:
        on_path = os.sep not in word and shutil.which(word) is not None
        return word in BUILTINS or on_path or os.path.isfile(root / word)  # noqa: PTH113  # Path.is_file raises on odd names

    return runnable


def _repository(file: Path) -> Path:
    """Return the nearest folder above that is a repository, or the plan's own folder."""
    folder = Path(os.path.realpath(file)).parent
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


class PlanFile(Protocol):
    """The user's plan on disk, which can be read, marked and extended."""

    @property
    def extensible(self) -> bool:
        """True if the format can take new tasks."""

    @property
    def path(self) -> Path: ...

    @property
    def companions(self) -> tuple[str, ...]:
        """Names of files in the plan's folder that are updated with it."""

    @property
    def spec_folder(self) -> bool:
        """True if everything in the plan's folder belongs to it."""

    def read(self) -> Plan: ...

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Write the statuses of tasks, atomically, and return whether anything changed."""

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Write tasks into the plan, atomically, and return them as read from it. Tasks that it has stay unchanged."""

    def redone(
        self, contents: Mapping[str, bytes], insertions: Sequence[Insertion], tasks: Mapping[str, tuple[str, str]]
    ) -> Mapping[str, bytes]:
        """Return other contents of the plan's files with the edits of `insert` and `mark`.

        Contents are by file name. `tasks` holds the title and the status of each task in the run.
        """
