"""Edge: Where the journal and the logs lie: in the repository's git folder, shown in `.unstuck/`; old ones are taken over."""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from unstuck.errors import CannotWrite, UnstuckError
from unstuck.git import Repository
from unstuck.journal.event import Request
from unstuck.journal.sqlite import SqliteJournal
from unstuck.ports import Journal
from unstuck.process import Owner

JOURNAL = "journal.db"
SHOWN = ("logs", "transcripts", "briefs", "old")
"""Folders of the store that people look for in `.unstuck/`: links lead there, so that removing those loses nothing."""

MOVED = ("remedies.json", f"{JOURNAL}-wal", f"{JOURNAL}-shm", JOURNAL)
"""The journal itself comes last: until then all of this is done again."""


class Store(Journal, Protocol):
    """A journal with the claims on it: SQLite in the repository, or a Postgres that machines share."""

    def runs(self) -> Sequence[str]: ...

    def owner(self, run: str | None = None) -> Owner | None:
        """Return whoever holds the claim on a run, or on this repository, alive or dead."""
        ...

    def claim(self, run: str) -> Owner | None:
        """Become the one writer; return the dead owner that was replaced, if any."""
        ...

    def release(self) -> None: ...

    def attended(self) -> AbstractContextManager[str]:
        """Stand by a request that is left meanwhile, so that its supervisor can see whose it is; give its token."""
        ...

    def leave(self, run: str, request: Request) -> int:
        """Leave a request for whoever owns the run; return its number."""
        ...

    def close(self) -> None: ...


def journal_path(repository: Repository) -> Path:
    """Return where the journal is or will be; one that an older unstuck left in `.unstuck/` is moved there."""
    path, old = repository.store / JOURNAL, repository.ours / JOURNAL
    if not old.is_file() or path.exists():
        return path
    if _has_owner(old):
        return old
    try:
        repository.store.mkdir(parents=True, exist_ok=True)
        for name in SHOWN:
            if (repository.ours / name).is_dir() and not (repository.ours / name).is_symlink():
                shutil.copytree(repository.ours / name, repository.store / name, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(repository.ours / name)
        for name in MOVED:
            if (repository.ours / name).exists():
                shutil.move(repository.ours / name, repository.store / name)
    except OSError as error:
        raise CannotWrite(
            f"The journal {old} cannot be moved to {repository.store}: {error.strerror}.",
            hint="Make both folders writable, then try again.",
        ) from error
    return path


def show_store(home: Path, store: Path) -> None:
    """Link the store's folders into `.unstuck/`, where people look for them."""
    try:
        for name in SHOWN:
            (store / name).mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(home / name):
                home.mkdir(parents=True, exist_ok=True)
                (home / name).symlink_to(os.path.relpath(store / name, home))
    except OSError as error:
        raise CannotWrite(
            f"{home} cannot be written: {error.strerror}.", hint="Make room or make it writable, then `unstuck resume`."
        ) from error


def _has_owner(path: Path) -> bool:
    """Whether an older unstuck is at work with this journal."""
    try:
        journal = SqliteJournal(path)
    except UnstuckError:
        return False
    try:
        owner = journal.owner()
        return owner is not None and owner.alive(time.time())
    finally:
        journal.close()
