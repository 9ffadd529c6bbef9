"""Edge: Find a plan on disk, tell its format, read it, and tick its boxes without ever losing a person's edit."""

import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from unstuck.errors import BadUsage, CannotWrite
from unstuck.plans import dialects, json_formats, superplan, tasks_md
from unstuck.plans.blocks import OUR_ID
from unstuck.plans.editor import Located
from unstuck.plans.plan import Insertion, Plan, Problem, Task
from unstuck.process import LARGEST, load, rewrite
from unstuck.tools import BUILTINS, Runnable


class Dialect(NamedTuple):
    """How a tasks.md of a kind is read, and where its tasks stand."""

    read: Callable[..., Plan]
    locate: Callable[[str, Mapping[str, str]], Located]


DIALECTS: Mapping[str, Dialect] = {
    tasks_md.FORMAT: Dialect(tasks_md.read, tasks_md.locate),
    dialects.SPEC_KIT: Dialect(dialects.read_spec_kit, tasks_md.locate),
    dialects.KIRO: Dialect(dialects.read_kiro, dialects.locate_kiro),
    dialects.CHECKLIST: Dialect(dialects.read_checklist, dialects.locate_checklist),
}
JSON: Mapping[str, Callable[[str, Mapping[str, str], str], tuple[str, frozenset[str]]]] = {
    json_formats.FORMAT: json_formats.mark,
    json_formats.PRD: json_formats.mark_prd,
    json_formats.TASK_MASTER: json_formats.mark_task_master,
}
"""The formats in JSON: how each is marked, given the tag that is current where lists have tags."""
TOO_LARGE = f"is larger than {LARGEST // 1_000_000} MB"
_PART = re.compile(r"\bPart[ \t]+(\d{1,3})[ \t]+of[ \t]+(\d{1,3})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)(\d{1,3})(\.\w+)", re.DOTALL)
_HEAD_CHARS = 4000
SUPPORTED = (*DIALECTS, superplan.FORMAT, *JSON)

COMPANIONS = (".ralph-state.json", ".progress.md")
"""What stands beside a plan in a spec folder and is kept up with it."""

IN_FOLDERS = (json_formats.FORMAT, "tasks.json", "tasks/tasks.json", "prd.json", "fix_plan.md", "@fix_plan.md")
"""What else may be the plan of a folder that has no tasks.md."""
_SPEC_FILES = (*COMPANIONS, "research.md", "requirements.md", "design.md")
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]*\[[ \t]*\S?[ \t]*\]", re.MULTILINE)
_BARE_LIST = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE)
_FIX_PLAN = re.compile(r"(?i)^@?fix[_-]plan\b")
ALIASES = {
    "superplan.md": superplan.FORMAT,
    "implementation_plan": json_formats.FORMAT,
    "implementation-plan": json_formats.FORMAT,
    "tasks": tasks_md.FORMAT,
    "tasks.json": json_formats.TASK_MASTER,
    "taskmaster": json_formats.TASK_MASTER,
    "prd": json_formats.PRD,
    "ralph": json_formats.PRD,
}
"""Other names that people give the formats."""


def open_plan(
    path: Path,
    format: str | None = None,  # noqa: A002  # the word that users type as --format
    *,
    root: Path | None = None,
    known: Mapping[str, str] | None = None,
) -> "TasksFile | PhasesFile":
    """Open the plan at `path`, a file or a spec folder; raise BadUsage if there is none that we can read.

    Verify lines without back-ticks are judged for `root`, the repository (without it: found upwards from the plan).
    `known` holds task ids of an earlier reading and their titles, so that tasks without ids keep theirs.
    """
    in_folder = os.path.isdir(path)  # noqa: PTH112  # Path.is_dir raises on odd names
    file = _in_folder(path) if in_folder else path
    _require_file(file, path)
    content = load(file)
    seen = ALIASES.get(format, format) if format else _detect(content, file)
    if seen not in SUPPORTED:
        readable = ", ".join(SUPPORTED)
        if format:
            raise BadUsage(
                f"There is no plan format {format!r}; this version reads {readable}.", hint="Leave --format out."
            )
        raise BadUsage(
            f"{file} is {seen}; this version reads {readable}.",
            hint=f"If it is one all the same, say so with --format {SUPPORTED[0]}.",
        )
    runnable = runnable_in(root or _repository(file))
    if seen == superplan.FORMAT:
        return PhasesFile(plan_parts(file, content), superplan.FORMAT, runnable=runnable)
    if seen in JSON:
        return PhasesFile((file,), seen, runnable=runnable, tag=_current_tag(file))
    spec_folder = in_folder or any((file.parent / name).exists() for name in _SPEC_FILES)
    return TasksFile(
        file,
        runnable=runnable,
        known=known,
        companions=COMPANIONS if file.name == "tasks.md" and spec_folder and seen == tasks_md.FORMAT else (),
        plan_format=seen,
    )


def read_text(text: str, plan_format: str, path: str, root: Path) -> Plan:
    """Read a plan that is not on disk, in a format that is known; `path` is what its messages call it."""
    if plan_format == superplan.FORMAT:
        return superplan.read([superplan.Part("", text)], path, runnable=runnable_in(root))
    if plan_format in JSON:
        return json_formats.read(plan_format, text, path, runnable=runnable_in(root))
    return DIALECTS[plan_format].read(text, path, runnable=runnable_in(root), known={})


def _in_folder(folder: Path) -> Path:
    """Return the plan of a spec folder, or of a folder that another tool keeps its plan in."""
    others = () if (folder / "tasks.md").exists() else (folder / name for name in IN_FOLDERS)
    return next((other for other in others if other.is_file()), folder / "tasks.md")


class TasksFile:
    """A `tasks.md` on disk, in one of its dialects. Implements `unstuck.ports.PlanFile`."""

    extensible = True

    def __init__(
        self,
        path: Path,
        *,
        runnable: Runnable,
        known: Mapping[str, str] | None = None,
        companions: tuple[str, ...] = (),
        plan_format: str = tasks_md.FORMAT,
    ) -> None:
        self.path = path
        self.format = plan_format
        self.companions = companions
        """Names of files in the plan's folder that are kept up with it."""
        self.spec_folder = bool(companions)
        self.missing: tuple[str, ...] = ()
        """The tasks that the last `tick` did not find in the file."""
        self._dialect = DIALECTS[plan_format]
        self._runnable = runnable
        self._known = dict(known or {})
        self._lock = threading.Lock()  # a task's thread inserts while the main thread ticks

    def read(self) -> Plan:
        content = load(self.path)
        if len(content) > LARGEST:
            problem = Problem(message=f"{self.path} {TOO_LARGE}.", hint="Name the plan itself, or split it.")
            return Plan(path=str(self.path), format=self.format, tasks=(), problems=(problem,))
        plan = self._read(tasks_md.decode(content))
        if any(OUR_ID.fullmatch(task.id) for task in plan.tasks):
            self._known.update((task.id, task.title) for task in plan.tasks)
        return plan

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Tick what is complete, un-tick the rest."""
        return self.tick({name: status == "complete" for name, status in statuses.items()})

    def tick(self, done: Mapping[str, bool]) -> bool:
        """Tick or un-tick tasks in place, atomically; return whether anything changed.

        Tasks that a person took out of the file meanwhile are passed over and listed in `missing`.
        """

        def ticked(located: Located) -> str:
            self.missing = tuple(name for name in done if name not in located.places)
            return located.tick(done)

        return self._edit(ticked)

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Write tasks into the plan, atomically, and return them as they read there. Those it has are left alone."""
        after = Located("", {})

        def inserted(before: Located) -> str:
            nonlocal after
            for name, block in insertion.blocks.items():
                self._refuse_another(before, name, block)
            after = before.insert(insertion, self._locate)
            return after.text

        self._edit(inserted)
        return tuple(self._read_block(after, name) for name in insertion.blocks)

    def _edit(self, change: Callable[[Located], str]) -> bool:
        with self._lock:
            return rewrite(self.path, lambda content: tasks_md.encode(change(self._locate(tasks_md.decode(content)))))

    def _read(self, text: str) -> Plan:
        return self._dialect.read(text, str(self.path), runnable=self._runnable, known=self._known)

    def _locate(self, text: str) -> Located:
        return self._dialect.locate(text, self._known)

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
        found = self._read(block).tasks
        if len(found) != 1:
            raise CannotWrite(f"{block.splitlines()[0]!r} does not read as one task.", hint="Please report this.")
        return found[0]


def plan_parts(file: Path, content: bytes) -> tuple[Path, ...]:
    """Return all files of a plan that says `Part N of M`, in order; the file alone if it says nothing of the kind."""
    said = _PART.search(content[:_HEAD_CHARS].decode(errors="replace"))
    name = _NUMBERED.fullmatch(file.name)
    if said is None or name is None or int(said[1]) != int(name[2]):
        return (file,)
    return tuple(file.with_name(f"{name[1]}{number}{name[3]}") for number in range(1, int(said[2]) + 1))


class PhasesFile:
    """Such a plan on disk. Implements `unstuck.ports.PlanFile`."""

    spec_folder = False
    extensible = False

    def __init__(self, parts: Sequence[Path], plan_format: str, *, runnable: Runnable, tag: str = "") -> None:
        self.path = parts[0]
        self.format = plan_format
        self.companions = tuple(part.name for part in parts[1:])
        """The further parts of the plan, in the same folder."""
        self.missing: tuple[str, ...] = ()
        """The tasks that the last `mark` did not find."""
        self._parts = tuple(parts)
        self._runnable = runnable
        self._tag = tag

    def read(self) -> Plan:
        contents = {part: load(part) for part in self._parts if part.is_file()}
        problems = [
            Problem(message=f"The part {part.name} of the plan is missing.", hint="Put it beside the others.")
            for part in self._parts
            if part not in contents
        ]
        unfit = [
            Problem(message=f"{part.name} {why}.", hint="Name the plan itself, as UTF-8 text.")
            for part, content in contents.items()
            if (
                why := TOO_LARGE
                if len(content) > LARGEST
                else "is not text: it has NUL bytes"
                if b"\0" in content
                else ""
            )
        ]
        path = str(self.path)
        if unfit:
            return Plan(path=path, format=self.format, tasks=(), problems=(*problems, *unfit))
        if self.format in JSON:
            text = contents[self.path].decode("utf-8", "replace")
            return json_formats.read(self.format, text, path, tag=self._tag, runnable=self._runnable)
        parts = [
            superplan.Part("" if part == self.path else part.name, tasks_md.decode(content))
            for part, content in contents.items()
        ]
        return superplan.read(parts, path, runnable=self._runnable, problems=problems)

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Refuse: only a tasks.md takes new tasks."""
        raise CannotWrite(f"{self.path} takes no new tasks ({', '.join(insertion.blocks)}).", hint="Use a tasks.md.")

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Write the statuses of tasks in place, atomically, file by file; return whether anything changed."""
        known: set[str] = set()

        def change(content: bytes) -> bytes:
            text = tasks_md.decode(content)
            in_json = self.format in JSON
            try:
                after, found = (
                    JSON[self.format](text, statuses, self._tag) if in_json else superplan.mark(text, statuses)
                )
            except ValueError:
                return content  # somebody is in the middle of writing it: the next time it is marked as a whole
            known.update(found)
            return tasks_md.encode(after)

        changed = [rewrite(part, change) for part in self._parts if part.is_file()]
        self.missing = tuple(name for name in statuses if name not in known)
        return any(changed)


def _require_file(file: Path, path: Path) -> None:
    """Raise BadUsage unless `file`, asked for as `path`, is a file that can be read."""
    hint = "Name a plan file, or a spec folder that holds a tasks.md."
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
        kind = next((name for test, name in _KINDS if test(mode)), "not a file")
        raise BadUsage(f"The plan {file} is {kind}, not a file.", hint=hint)


_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _detect(content: bytes, file: Path) -> str:
    """Name the format by the content, or say what the file looks like."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r", "\n")
    if superplan.looks_like(text, named_tasks=file.name == "tasks.md"):
        return superplan.FORMAT
    if file.name == json_formats.FORMAT:
        return json_formats.FORMAT
    if text.lstrip().startswith(("{", "[")) and (seen := _detect_json(text)):
        return seen
    # A file that is no text is read all the same: the reader then says what is wrong with it.
    if dialects.is_kiro(text) or (".kiro" in file.resolve().parts and _CHECKBOX.search(text)):
        return dialects.KIRO
    if dialects.is_spec_kit(text):
        return dialects.SPEC_KIT
    if dialects.is_checklist(text, named=_FIX_PLAN.search(file.name) is not None):
        return dialects.CHECKLIST
    if file.name == "tasks.md" or "\0" in text or len(content) > LARGEST or _CHECKBOX.search(text):
        return tasks_md.FORMAT
    if not text.strip():
        return "empty"
    bare = " (it has lists, but no boxes)" if _BARE_LIST.search(text) else ""
    return f"a text without a task line such as `- [ ] 1.1 Add a parser`{bare}"


def _detect_json(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
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
