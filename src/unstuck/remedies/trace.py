"""Edge: See which files of a workspace were made or changed between two looks, within bounds."""

import os
from collections.abc import Mapping
from pathlib import Path

SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", "target"})
MOST, MOST_NAMED = 20_000, 50
Stamp = tuple[int, int]


def stamps(root: Path) -> Mapping[str, Stamp]:
    """Return when each file was last changed, and its size."""
    found: dict[str, Stamp] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in sorted(folders) if name not in SKIPPED]
        for name in files:
            path = os.path.join(folder, name)  # noqa: PTH118  # thousands of them
            try:
                stat = os.lstat(path)
            except OSError:
                continue
            found[os.path.relpath(path, root)] = (stat.st_mtime_ns, stat.st_size)
        if len(found) > MOST:
            break
    return found


def changed(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> tuple[str, ...]:
    """Return the files that are new or other than before, by name."""
    return tuple(sorted(name for name, stamp in after.items() if before.get(name) != stamp))[:MOST_NAMED]
