"""Begin anew without losing anything: move the old journal and the files made from it out of the way."""

import time
from pathlib import Path

from unstuck.adapters.repository import Repository
from unstuck.adapters.sqlite import open_to_write

STATE = (
    "journal.db",
    "journal.db-wal",
    "journal.db-shm",
    "phases",
    "attempt_history.json",
    "build_commits.json",
    "config.json",
    "reports",
)


def set_old_aside(repository: Repository) -> Path | None:
    """Move the state to `.unstuck/old/<time>`; commits, snapshots and logs stay. Refused while a supervisor works."""
    home = repository.ours
    present = [home / name for name in STATE if (home / name).exists()]
    if not present:
        return None
    if (home / "journal.db").exists():
        journal = open_to_write(home / "journal.db")
        try:
            journal.claim("fresh")
            journal.release()
        finally:
            journal.close()
    target = _new_folder(home / "old")
    for path in present:
        if path.exists():
            path.rename(target / path.name)
    return target


def _new_folder(old: Path) -> Path:
    """Make a folder named for the time; a second one in the same second gets a number."""
    now, number = time.strftime("%Y%m%d-%H%M%S"), 1
    while True:
        folder = old / (now if number == 1 else f"{now}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return folder
