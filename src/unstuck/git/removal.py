"""Remove a file or a folder whatever protects it."""

import shutil
import stat
from pathlib import Path


def remove(path: Path) -> None:
    """Remove a file or a folder, read-only folders and all; follow no link."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    elif path.exists():
        shutil.rmtree(path, onerror=_open_and_retry)


def _open_and_retry(_function: object, name: str, _error: object) -> None:
    """Remove what a missing permission protects: module caches are read-only, and an agent may lock itself out."""
    path = Path(name)
    path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)
    if path.is_dir() and not path.is_symlink():
        path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(path, onerror=_open_and_retry if any(path.iterdir()) else None)
    else:
        path.unlink(missing_ok=True)
