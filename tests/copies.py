"""Repositories that are made once and copied: what hundreds of tests begin with costs as many git commands only once."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[Path, bytes | None]
"""What a folder holds: folders before what is in them, without content of their own."""


def taken(root: Path) -> Files:
    """Read a repository to make copies of; nobody needs git's examples of hooks."""
    found = (path for path in sorted(root.rglob("*")) if path.suffix != ".sample")
    return {path.relative_to(root): path.read_bytes() if path.is_file() else None for path in found}


def copied(files: Files, root: Path, *, refreshed: bool = True) -> None:
    """Write a copy, and have git look at its files, so that its index knows them as any user's does, if there are any."""
    root.mkdir()
    for name, content in files.items():
        if content is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(content)
    if refreshed:
        subprocess.run(["git", "update-index", "--refresh"], cwd=root, check=True)
