"""What lies where in a workspace: one path with its neighbours, and what is ours to delete. Looks, and changes nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

from unstuck.remedies.surroundings import Place

REBUILT = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
"""Caches that every tool makes again; they are ours to delete where they lie inside the workspace and are no links."""
OUR_TEMPORARY = ("tmp", "sandbox")
"""Folders below `.unstuck/` that hold nothing anybody keeps."""
SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", ".unstuck", "__pycache__", ".tox", "target"})
MOST_NAMES, MOST_WALKED, MOST_SOURCE = 5_000, 20_000, 65_536


def place_of(named: str, cwd: Path, root: Path) -> Place:
    path = cwd / Path(named).expanduser() if "\0" not in named else cwd
    parent = path.parent
    while not parent.is_dir() and parent != parent.parent:
        parent = parent.parent
    written = shown(parent, cwd)
    exists = os.path.lexists(path)
    head = _head(path) if path.is_file() else b""
    return Place(
        path=named,
        exists=exists,
        is_folder=path.is_dir(),
        inside=is_inside(path, root),
        mine=exists and path.lstat().st_uid == os.geteuid(),
        executable=os.access(path, os.X_OK),
        interpreter=tuple(head[2:].decode(errors="replace").split()) if head.startswith(b"#!") else (),
        crlf=head.endswith(b"\r"),
        parent=written,
        missing_parents=parent != path.parent,
        names=tuple(sorted(names(parent))),
        twins=_twins(path.name, root, cwd),
    )


def removable(root: Path) -> Iterator[Path]:
    """Yield what is ours to delete: exact paths, never a link, never what git tracks."""
    ours = root / ".unstuck"
    for name in OUR_TEMPORARY:
        if not (ours / name).is_symlink() and not ours.is_symlink():
            yield from (ours / name / child for child in sorted(names(ours / name)))
    seen = 0
    for folder, folders, _ in os.walk(root):
        for name in [name for name in folders if name in REBUILT]:
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


def _twins(name: str, root: Path, cwd: Path) -> tuple[str, ...]:
    """List files of a like name in the workspace, the nearest to the top first."""
    stem = name.casefold().rpartition(".")[0] or name.casefold()
    found = [path for path in _walk(root) if stem and stem in path.name.casefold()]
    return tuple(shown(path, cwd) for path in sorted(found, key=lambda path: (len(path.parts), str(path))))[:200]


def _walk(root: Path) -> Iterator[Path]:
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in sorted(folders) if name not in SKIPPED]
        for name in sorted(files):
            seen += 1
            yield Path(folder) / name
        if seen > MOST_WALKED:
            return


def size(path: Path) -> int:
    if path.is_file() or path.is_symlink():
        return path.lstat().st_blocks * 512
    return sum(file.lstat().st_blocks * 512 for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)[:MOST_NAMES]  # noqa: PTH208  # bare names
    except OSError:
        return []


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(300).rstrip(b"\n")
    except OSError:
        return b""


def is_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def shown(path: Path, cwd: Path) -> str:
    """Return a path as a person in this folder would write it."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
