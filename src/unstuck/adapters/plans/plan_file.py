"""Find a plan on disk, tell its format, read it, and tick its boxes without ever losing a person's edit."""

import contextlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from unstuck.adapters.plans import tasks_md
from unstuck.adapters.plans.shell import Runnable, runnable_in
from unstuck.core.plan import Plan, Problem
from unstuck.errors import BadUsage, CannotWrite

SUPPORTED = (tasks_md.FORMAT,)
LARGEST = 50_000_000

COMPANIONS = (".ralph-state.json", ".progress.md")
"""What stands beside a plan in a spec folder and is kept up with it."""

_SPEC_FILES = (*COMPANIONS, "research.md", "requirements.md", "design.md")
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]*\[[ \t]*\S?[ \t]*\]", re.MULTILINE)
_SUPERPLAN = re.compile(r"^\|[ \t]*Phase[ \t]*\|[ \t]*Name[ \t]*\|[ \t]*Depends On[ \t]*\|", re.MULTILINE)
_DRAFT = ".unstuck-tick-"
_TRIES = 50


def open_plan(
    path: Path,
    format: str | None = None,  # noqa: A002  # the word that users type as --format
    *,
    root: Path | None = None,
    known: Mapping[str, str] | None = None,
) -> "TasksFile":
    """Open the plan at `path`, a file or a spec folder; raise BadUsage if there is none that we can read.

    Verify lines without back-ticks are judged for `root`, the repository (without it: found upwards from the plan).
    `known` holds task ids of an earlier reading and their titles, so that tasks without ids keep theirs.
    """
    in_folder = os.path.isdir(path)  # noqa: PTH112  # Path.is_dir raises on odd names
    file = path / "tasks.md" if in_folder else path
    _require_file(file, path)
    content = _load(file)
    seen = format or _detect(content, file)
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
    spec_folder = in_folder or any((file.parent / name).exists() for name in _SPEC_FILES)
    return TasksFile(
        file,
        runnable=runnable_in(root or _repository(file)),
        known=known,
        companions=COMPANIONS if file.name == "tasks.md" and spec_folder else (),
    )


class TasksFile:
    """A `tasks.md` on disk. Implements `unstuck.ports.PlanFile`."""

    format = tasks_md.FORMAT

    def __init__(
        self,
        path: Path,
        *,
        runnable: Runnable,
        known: Mapping[str, str] | None = None,
        companions: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.companions = companions
        """Names of files in the plan's folder that are kept up with it."""
        self.missing: tuple[str, ...] = ()
        """The tasks that the last `tick` did not find in the file."""
        self._runnable = runnable
        self._known = dict(known or {})

    def read(self) -> Plan:
        content = _load(self.path)
        if len(content) > LARGEST:
            problem = Problem(
                message=f"{self.path} is larger than {LARGEST // 1_000_000} MB.",
                hint="Name the plan itself, or split it.",
            )
            return Plan(path=str(self.path), format=self.format, tasks=(), problems=(problem,))
        text = tasks_md.decode(content)
        plan = tasks_md.read(text, str(self.path), runnable=self._runnable, known=self._known)
        self._known.update((task.id, task.title) for task in plan.tasks)
        return plan

    def tick(self, done: Mapping[str, bool]) -> bool:
        """Tick or un-tick tasks in place, atomically; return whether anything changed.

        Tasks that a person took out of the file meanwhile are passed over and listed in `missing`.
        """

        def change(content: bytes) -> bytes:
            text = tasks_md.decode(content)
            boxes = tasks_md.find_boxes(text, self._known)
            self.missing = tuple(name for name in done if name not in boxes)
            return tasks_md.set_boxes(text, {boxes[name]: ticked for name, ticked in done.items() if name in boxes})

        return rewrite(self.path, change)


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> bool:
    """Replace a file's content by what `change` makes of it, atomically; return whether anything changed.

    `change` is applied again to the new content when somebody else writes the file meanwhile: their edit is kept and
    ours is made on top of it. A symbolic link stays, its target is replaced; mode and owner are kept.
    """
    target = Path(os.path.realpath(path))
    try:
        for _ in range(_TRIES):
            before = target.read_bytes()
            after = change(before)
            if after == before:
                return False
            if _swap(target, before, after):
                return True
    except OSError as error:
        raise CannotWrite(
            f"Cannot write {path}: {error.strerror or error}.",
            hint="Make the file and its folder writable and see that the disk has room, then resume.",
        ) from error
    raise CannotWrite(f"Cannot write {path}: it keeps changing.", hint="See what else writes to it, then resume.")


def _swap(target: Path, before: bytes, after: bytes) -> bool:
    """Put `after` in the place of `before`; False if the file holds something else by now."""
    now = target.stat()
    if not now.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(0, "it is read-only")
    _remove_old_drafts(target.parent)
    handle, name = tempfile.mkstemp(prefix=f"{_DRAFT}{os.getpid()}-", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            with contextlib.suppress(PermissionError):
                os.fchown(handle, now.st_uid, now.st_gid)
            os.fchmod(handle, stat.S_IMODE(now.st_mode))
            file.flush()
            os.fsync(handle)
        if target.read_bytes() != before:
            return False
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(target.parent)
    return True


def _remove_old_drafts(folder: Path) -> None:
    """Remove what a supervisor that was killed while writing left behind."""
    for draft in folder.glob(f"{_DRAFT}*-*"):
        owner = draft.name.removeprefix(_DRAFT).partition("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            draft.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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


def _load(path: Path) -> bytes:
    """Read a file, at most one byte more than we accept."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise BadUsage(
            f"Cannot read the plan {path}: {error.strerror or error}.", hint="Put it back or make it readable."
        ) from error


def _detect(content: bytes, file: Path) -> str:
    """Name the format by the content, or say what the file looks like."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r", "\n")
    if _SUPERPLAN.search(text):
        return "a superplan"
    if text.lstrip().startswith(("{", "[")) and (seen := _detect_json(text)):
        return seen
    # A file that is no text is read all the same: the reader then says what is wrong with it.
    if file.name == "tasks.md" or "\0" in text or len(content) > LARGEST or _CHECKBOX.search(text):
        return tasks_md.FORMAT
    return "a text without a task line such as `- [ ] 1.1 Add a parser`" if text.strip() else "empty"


def _detect_json(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    return "an implementation_plan.json" if isinstance(value, dict) and "phases" in value else "a JSON file"


def _repository(file: Path) -> Path:
    """Return the nearest folder above that is a repository's, else the plan's own."""
    folder = Path(os.path.realpath(file)).parent
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
