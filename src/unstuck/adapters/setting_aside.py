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
    target = home / "old" / time.strftime("%Y%m%d-%H%M%S")
    target.mkdir(parents=True)
    for path in present:
        if path.exists():
            path.rename(target / path.name)
    return target
