"""Edge: Look at the machine around a failure: only at what is asked for, within bounds, and without changing anything."""

import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from unstuck.model.failure import Kind
from unstuck.remedies import situation as reading
from unstuck.remedies.call_words import alike, download_target, plain_words
from unstuck.remedies.chain import listed, shape
from unstuck.remedies.situation import Situation
from unstuck.remedies.surroundings import GitState, Gone, Lock, Place, Surroundings

if TYPE_CHECKING:
    import subprocess

OWN_FOLDERS = ("src", ".")
"""Where the project's own packages lie; a folder is one if it says so."""
LESSONS = "remedies.json"
COMMIT = "--format=%h of %cs: %s"
PYTHON_MODULES, NODE_MODULES = (".py", "/__init__.py"), ("", ".js", ".mjs", ".cjs", ".ts", "/index.js", "/index.ts")
MOST_PLACES = 20
SECONDS = 5.0
PARSING_SECONDS = 3.0
"""For all that is parsed on trial together."""
OPERATIONS = {
    "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "rebase-merge": "rebase", "rebase-apply": "rebase",
}  # fmt: skip


def look_around(
    situation: Situation, topics: frozenset[str], cwd: Path, root: Path, env: Mapping[str, str] | None = None
) -> Surroundings:
    """Return what the topics ask for; the rest stays unknown. `env` is what commands will see."""
    around = Surroundings(cwd=str(cwd), root=str(root))
    if "binaries" in topics:
        found = (name for folder in os.get_exec_path(env) for name in names(folder or "."))
        around = around._replace(binaries=frozenset(found))
    for topic in sorted(topics):
        around = LOOK[topic](around, situation, cwd, root)
    return around


def workspace_root(cwd: Path) -> Path:
    """Return the top of the repository that holds this folder, or the folder itself."""
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), cwd)


def lessons_path(cwd: Path) -> Path:
    """Return where lessons are kept: in the repository's git folder, outside of one in the user's state folder."""
    root = workspace_root(cwd)
    if (root / ".git").exists():
        return _common(root) / "unstuck" / LESSONS
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "unstuck" / LESSONS


# --- one topic each -----------------------------------------------------------------------------------------------


def _binaries(around: Surroundings, situation: Situation, _cwd: Path, root: Path) -> Surroundings:
    missing = reading.command(situation)
    places = (
        [root / folder / missing for folder in listed("project_binaries")] if missing and "/" not in missing else []
    )
    own = next((str(path) for path in places if path.is_file() and os.access(path, os.X_OK)), "")
    return around._replace(elsewhere={missing: own} if own else {})


def _system(around: Surroundings, situation: Situation, _cwd: Path, _root: Path) -> Surroundings:
    present = around.binaries or frozenset()
    manager = next((name for name, row in situation.table("managers").items() if row["binary"] in present), "")
    return around._replace(manager=manager, superuser=os.geteuid() == 0)


def _root(around: Surroundings, _situation: Situation, _cwd: Path, root: Path) -> Surroundings:
    return around._replace(root_names=frozenset(names(root)))


def _path(around: Surroundings, situation: Situation, cwd: Path, root: Path) -> Surroundings:
    first = (situation.call.words or ("",))[0]
    named = first if situation.kind == "command_not_found" and "/" in first else reading.path(situation)
    if situation.kind == Kind.MODULE_MISSING:
        around = around._replace(gone=_gone(situation, cwd, root))
    if not named:
        return around
    place = place_of(named, cwd, root)
    if situation.kind == Kind.FILE_NOT_FOUND and place.inside and not place.exists:
        gone = taken_away((named,), cwd)
        place = place._replace(renamed=gone.new if gone else "")
    return around._replace(place=place, superuser=os.geteuid() == 0)


def taken_away(named: Collection[str], cwd: Path, hops: int = 5) -> Gone | None:
    """Return the first of these files that a commit took away, and what it is called since, if that exists."""
    names = list(dict.fromkeys(shown(cwd / name, cwd) for name in named))
    specs = [f":(literal){name}" for name in names]
    commit = said(["git", "log", "-1", COMMIT, "--since=1.year", "--diff-filter=D", "--", *specs], cwd)
    if not commit:
        return None
    listing = ["git", "show", "--format=", "--name-status", "-M", "--diff-filter=RD", "--relative"]
    rows = [row.split("\t") for row in said([*listing, commit.split(" ")[0]], cwd).splitlines()]
    row = next((row for row in rows if row[1] in names), ["D", names[0]])
    new = row[2] if row[0] != "D" else ""
    if not new or (cwd / new).is_file():
        return Gone(row[1], new, commit)
    later = taken_away((new,), cwd, hops - 1) if hops else None
    return later._replace(old=row[1]) if later else Gone(row[1], "", commit)


def _folders(around: Surroundings, situation: Situation, cwd: Path, _root: Path) -> Surroundings:
    folders, files = {}, set()
    for word in (situation.call.words or ())[1:200]:
        try:
            if (cwd / word).is_dir():
                held = sorted(name for name in names(cwd / word) if not name.startswith("."))
                folder = Path(word)
                folders[word] = tuple(f"{folder / name}/" if (cwd / word / name).is_dir() else f"{folder / name}" for name in held if name not in listed("unwalked"))  # fmt: skip
            elif (cwd / word).is_file():
                files.add(word)
        except (OSError, ValueError):
            continue
    return around._replace(folders=folders, files=frozenset(files))


def _scripts(around: Surroundings, situation: Situation, cwd: Path, root: Path) -> Surroundings:
    from unstuck.remedies.strategies import syntax

    file = syntax.script_file(situation)
    if file:
        around = around._replace(source=source(cwd / file, root))
    seen = situation._replace(around=around)
    if not file.endswith((".sh", ".bash")) and around.source:
        return around
    until = time.monotonic() + PARSING_SECONDS
    texts = [text for text in syntax.texts(seen) if len(text) <= syntax.LONGEST]
    few = texts if syntax.runs_sh(situation) else [text for text in texts if text in syntax.spellings(seen)]
    parses = {
        shell: frozenset(text for text in some if time.monotonic() < until and _parses(shell, text))
        for shell, some in (("bash", texts), ("sh", few))
    }
    return around._replace(parses=parses)


def _port(around: Surroundings, _situation: Situation, _cwd: Path, _root: Path) -> Surroundings:
    import socket  # only for this category

    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return around._replace(free_port=probe.getsockname()[1])
    except OSError:
        return around


def _space(around: Surroundings, situation: Situation, cwd: Path, root: Path) -> Surroundings:
    words = (reading.path(situation), *re.findall(r"[^\s'\"=<>|&;()]+", situation.call.line)[:200])
    disks = [
        (_free(folder), folder) for folder in dict.fromkeys((cwd, *(_nearest(cwd / word / "file") for word in words)))
    ]
    free, full = min(disks, key=lambda disk: disk[0])
    found = [path for path in removable(root) if path.stat().st_dev == full.stat().st_dev]
    listed = ["git", "ls-files", "-z", "--", *(f":(literal){path}" for path in found[:1000])]
    tracked = said(listed, root).split("\0") if found else []
    kept = {path for path in found for name in tracked if name and (root / name).is_relative_to(path)}
    ours = [(str(path), length) for path in found if path not in kept and (length := size(path)) > 0]
    return around._replace(full=str(full), free_bytes=free, ours=tuple(sorted(ours, key=lambda one: -one[1])))


def _free(folder: Path) -> int:
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize if stat.f_blocks else sys.maxsize  # what has no blocks is no disk


def _nearest(path: Path) -> Path:
    """Return the folder that a path lies in, or would, as far as it exists."""
    return next(folder for folder in path.parents if seen(folder.is_dir))


def _cache(around: Surroundings, situation: Situation, cwd: Path, root: Path) -> Surroundings:
    found = reading.url(situation)
    name = found.path.rstrip("/").rpartition("/")[2].partition("?")[0] if found else ""
    if not name:
        return around
    own = (cwd / name,) if download_target(situation.call.words) == name else ()
    places = (*(root / folder / name for folder in listed("caches")), Path.home() / ".cache" / name, *own)
    return around._replace(cached=tuple(shown(path, cwd) for path in places if path.is_file()))


def _local_packages(around: Surroundings, situation: Situation, cwd: Path, root: Path) -> Surroundings:
    package = reading.package(situation).split(".")[0]
    if not package or "/" in package:
        return around
    begins, modules = f"{package}_".lower().replace("-", "_"), {package, f"{package}.py", f"{package}.js"}

    def holds(name: str) -> bool:
        archive = name.endswith((".whl", ".tar.gz", ".tgz")) and name.lower().replace("-", "_").startswith(begins)
        return archive or name in modules

    found = [
        root / folder / name
        for folder in listed("package_folders")
        for name in sorted(names(root / folder))
        if holds(name)
    ]
    found += [path for folder in OWN_FOLDERS for path in (root / folder / f"{package}.py", root / folder / package) if path.is_file() or (path / "__init__.py").is_file()]  # fmt: skip
    return around._replace(
        local_packages=tuple(shown(path, cwd) for path in found),
        modules=_modules(reading.package(situation), root),
        gone=_gone(situation, cwd, root),
    )


def _gone(situation: Situation, cwd: Path, root: Path) -> Gone | None:
    """Return the project's own file that a missing module was, until a commit took it away."""
    name = reading.package(situation)
    stem, endings = (name, NODE_MODULES) if name.startswith(".") else (name.replace(".", "/"), PYTHON_MODULES)
    named = ((situation.call.words or ()), (file for file, _ in reading.places(situation)))
    files = [cwd / word for words in named for word in words if seen((cwd / word).is_file)]
    folders = dict.fromkeys((cwd, root, root / "src", *(file.parent for file in files[:MOST_PLACES])))
    candidates = [os.path.normpath(f"{folder}/{stem}{ending}") for folder in folders for ending in endings]
    return taken_away([one for one in candidates if is_inside(Path(one).parent, root)], cwd)


def _modules(name: str, root: Path) -> frozenset[str]:
    """Return the modules beside a missing one: those of its package, of Python's or the project's own, or else Python's."""
    package, dot, _ = name.rpartition(".")
    if not dot:
        return sys.stdlib_module_names
    places = (root, root / "src", Path(os.__file__).parent)
    folder = next((one for place in places if (one := place / package.replace(".", "/")).is_dir()), None)
    return frozenset(f"{package}.{one.removesuffix('.py')}" for one in names(folder)) if folder else frozenset()


def _usage(around: Surroundings, situation: Situation, cwd: Path, _root: Path) -> Surroundings:
    words = situation.call.words or plain_words(situation.failed_part)
    if not words or not re.search(shape("bad_option"), situation.text):
        return around
    if not situation.repeatable(words[:1]) and words[0] not in listed("makers"):  # nobody knows what another one does
        return around
    done = _ran([words[0], "--help"], cwd)
    return around._replace(usage=done.stdout.decode(errors="replace") if done else "")


def _lock(around: Surroundings, situation: Situation, cwd: Path, root: Path) -> Surroundings:
    from unstuck.git.git_command import git_processes, is_file_open

    named = reading.lock(situation)
    if not named:
        return around
    path = cwd / named
    try:
        age = time.time() - path.lstat().st_mtime
    except (OSError, ValueError):
        return around._replace(lock=Lock(path=named, exists=False))
    held = not Path("/proc").is_dir() or is_file_open(path) or bool(git_processes(root))
    return around._replace(lock=Lock(named, inside=_is_of(path, root) and not path.is_symlink(), held=held, age=age))


def _git(around: Surroundings, situation: Situation, cwd: Path, _root: Path) -> Surroundings:
    folder = said(["git", "rev-parse", "--absolute-git-dir"], cwd)
    if not folder:
        return around
    operation = next((name for file, name in OPERATIONS.items() if (Path(folder) / file).exists()), "")
    unmerged = tuple(filter(None, said(["git", "diff", "--name-only", "--diff-filter=U", "-z"], cwd).split("\0")))
    untracked = "normal" if "untracked" in situation.text else "no"  # those stand in the way only where git says so
    changed = bool(said(["git", "status", "--porcelain", f"--untracked-files={untracked}"], cwd))
    return around._replace(git=GitState(operation=operation, unmerged=unmerged, changed=changed))


LOOK: Mapping[str, Callable[[Surroundings, Situation, Path, Path], Surroundings]] = {
    "binaries": _binaries, "system": _system, "root": _root, "path": _path, "folders": _folders, "scripts": _scripts, "port": _port,
    "space": _space, "cache": _cache, "local_packages": _local_packages, "lock": _lock, "git": _git, "usage": _usage,
}  # fmt: skip


# --- below ---------------------------------------------------------------------------------------------------------


def _parses(shell: str, text: str) -> bool:
    """Whether a shell can read a text; it comes in on stdin and nothing of it is run."""
    done = _ran([shell, "-n"], Path(), text.encode(errors="surrogateescape")) if "\0" not in text else None
    return done is not None and done.returncode == 0 and not done.stderr


def said(argv: list[str], cwd: Path) -> str:
    """Return what a command prints; empty if it fails."""
    done = _ran(argv, cwd)
    return done.stdout.decode(errors="surrogateescape").strip() if done is not None and done.returncode == 0 else ""


def _ran(argv: list[str], cwd: Path, given: bytes = b"") -> "subprocess.CompletedProcess[bytes] | None":
    import subprocess  # most failures need no process

    try:
        return subprocess.run(argv, cwd=cwd, input=given, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _is_of(lock: Path, root: Path) -> bool:
    """Whether a lock lies in the workspace, or in the git directory of a workspace that is a worktree."""
    git = git_folder(root)
    return is_inside(lock, root) or (git is not None and is_inside(lock, git))


def git_folder(root: Path) -> Path | None:
    """Return the git directory of a linked worktree; None for anything else."""
    try:
        pointed = (root / ".git").read_text(encoding="utf-8").partition("gitdir:")[2].strip()
    except (OSError, UnicodeDecodeError):
        return None
    return root / pointed if pointed else None


def _common(folder: Path) -> Path:
    """Return the git folder that a linked worktree shares with its repository."""
    git = git_folder(folder)
    if git is None:
        return folder / ".git"
    return git.parent.parent if git.parent.name == "worktrees" else git


OUR_TEMPORARY = ("tmp", "sandbox")
"""Folders below `.unstuck/` that hold nothing anybody keeps."""
MOST_NAMES, MOST_WALKED, MOST_SOURCE, MOST_TABLE = 20_000, 20_000, 65_536, 500_000


def place_of(named: str, cwd: Path, root: Path) -> Place:
    path = cwd / Path(named).expanduser() if "\0" not in named else cwd
    parent = _nearest(path)
    written = shown(parent, cwd)
    exists = os.path.lexists(path)
    subject = path if exists else parent
    status = subject.lstat()
    head = beginning(path, 300).split("\n")[0] if seen(path.is_file) else ""
    return Place(
        path=named,
        exists=exists,
        is_folder=seen(path.is_dir),
        inside=is_inside(path, root),
        mine=status.st_uid == os.geteuid() and (exists or not os.access(parent, os.W_OK)),
        mode=f"{status.st_mode & 0o7777:04o}",
        read_only=bool(os.statvfs(subject if not subject.is_symlink() else parent).f_flag & os.ST_RDONLY),
        executable=os.access(path, os.X_OK),
        interpreter=tuple(head[2:].split()) if head.startswith("#!") else (),
        crlf=head.endswith("\r"),
        parent=written,
        missing_parents=parent != path.parent,
        names=tuple(sorted(names(parent))),
        twins=(*_respelled(path, parent, cwd), *_twins(path.name, root, cwd)),
    )


def removable(root: Path) -> Iterator[Path]:
    """Yield what is ours to delete: exact paths, never a link, never what git tracks."""
    ours = root / ".unstuck"
    for name in OUR_TEMPORARY:
        if not (ours / name).is_symlink() and not ours.is_symlink():
            yield from (ours / name / child for child in sorted(names(ours / name)))
    seen = 0
    for folder, folders, _ in os.walk(root):
        for name in [name for name in folders if name in listed("rebuilt")]:
            folders.remove(name)
            path = Path(folder) / name
            if not path.is_symlink():
                yield path
        folders[:] = [name for name in folders if name not in {".git", "node_modules", ".unstuck", ".venv", "venv"}]
        seen += len(folders)
        if seen > MOST_WALKED:
            return


def source(path: Path, root: Path) -> str:
    try:
        if not path.is_file() or not is_inside(path, root) or path.stat().st_size > MOST_SOURCE:
            return ""
        return path.read_bytes().decode()
    except (OSError, ValueError):
        return ""


def _respelled(path: Path, parent: Path, cwd: Path) -> Iterator[str]:
    """Yield the path with the first folder that does not exist spelled as one that does, where that leads somewhere."""
    first, *rest = path.relative_to(parent).parts
    for name in sorted(names(parent)) if rest else ():
        if name.strip("._-").casefold() == first.strip("._-").casefold() or alike(first, name):
            other = parent.joinpath(name, *rest)
            if other.exists():
                yield shown(other, cwd)


def _twins(name: str, root: Path, cwd: Path) -> tuple[str, ...]:
    """List files of a like name in the workspace, the nearest to the top first."""
    stem = name.casefold().rpartition(".")[0] or name.casefold()
    found = [path for path in files_below(root, ".unstuck") if stem and stem in path.name.casefold()]
    return tuple(shown(path, cwd) for path in sorted(found, key=lambda path: (len(path.parts), str(path))))[:200]


def files_below(root: Path, *skipped: str) -> Iterator[Path]:
    """Yield the files of a workspace, within bounds; folders of what is installed or made anew are passed over."""
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in sorted(folders) if name not in (*listed("unwalked"), *skipped)]
        seen += len(files)
        yield from (Path(folder) / name for name in sorted(files))
        if seen > MOST_WALKED:
            return


def listening(port: str) -> set[str]:
    """Return the sockets that listen on a port, as the links of a process's files name them."""
    tables = (beginning(Path("/proc/net") / table, MOST_TABLE).splitlines()[1:] for table in ("tcp", "tcp6"))
    rows = [line.split() for lines in tables for line in lines]
    return {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{int(port):04X}")}


def size(path: Path) -> int:
    if path.is_file() or path.is_symlink():
        return path.lstat().st_blocks * 512
    return sum(file.lstat().st_blocks * 512 for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def names(folder: Path | str) -> list[str]:
    try:
        return os.listdir(folder)[:MOST_NAMES]  # noqa: PTH208  # bare names
    except OSError:
        return []


def beginning(path: Path, most: int) -> str:
    """Return how a file begins; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def seen(look: Callable[[], bool]) -> bool:
    """Whether a look at a path shows it; where we may not look, nothing is seen."""
    try:
        return look()
    except (OSError, ValueError):
        return False


def is_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def shown(path: Path, cwd: Path) -> str:
    """Return a path as a person in this folder would write it."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
