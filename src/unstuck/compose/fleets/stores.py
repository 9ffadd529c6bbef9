"""Edge: Say where the journal of a repository is: in its own git folder, or in a store that machines share."""

from dataclasses import replace
from typing import TYPE_CHECKING

from unstuck.config import Config
from unstuck.config_file import read_config
from unstuck.errors import CannotWrite, Unavailable
from unstuck.git import Repository
from unstuck.journal import SqliteJournal, Store, journal_path, open_to_write
from unstuck.process import host

if TYPE_CHECKING:
    from unstuck.fleet import PostgresJournal

REMEMBERED = "store"
"""The file that says where the last run's journal is."""
LOCAL = "local"
"""What is said instead of an address to have the journal here again."""


def with_store(repository: Repository, config: Config, asked: str | None = None) -> Config:
    """Return the configuration with the store of a new run: the one asked for, the configured one, or the last run's."""
    url = asked or config.store.url or _remembered(repository)
    return replace(config, store=replace(config.store, url="" if url == LOCAL else url))


def with_last_store(repository: Repository, config: Config) -> Config:
    """Return the configuration with the store of the last run; where there was none here, with the configured one."""
    return with_store(repository, config, _remembered(repository))


def remember_store(repository: Repository, url: str) -> None:
    """Let every command that looks at this repository find its runs."""
    path = repository.store / REMEMBERED
    if url == last_store(repository):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{url or LOCAL}\n")
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.", hint="Make it writable.") from error


def open_for_run(repository: Repository, config: Config) -> Store:
    """Open the journal for a run, or make it."""
    return shared_journal(repository, config.store.url) if config.store.url else open_to_write(journal_path(repository))


def open_to_look(repository: Repository) -> Store | None:
    """Open the journal to look at it; None if there is none yet."""
    path, url = journal_path(repository), last_store(repository)
    if url:
        return shared_journal(repository, url)
    return SqliteJournal(path) if path.exists() else None


def last_store(repository: Repository) -> str:
    """Return the address of the store that has the last run; empty if it is in the repository itself."""
    known = _remembered(repository) or read_config(repository.root).store.url
    return "" if known == LOCAL else known


def has_runs(repository: Repository) -> bool:
    """Whether there are runs to look at."""
    journal = open_to_look(repository)
    if journal is None:
        return False
    try:
        return bool(journal.runs())
    finally:
        journal.close()


def shared_journal(repository: Repository, url: str) -> "PostgresJournal":
    require_fleet()
    from unstuck.fleet import PostgresJournal  # noqa: PLC0415  # an extra

    return PostgresJournal(url, project_of(repository), f"{host()} {repository.common_dir}")


def project_of(repository: Repository) -> str:
    """Name the project so that every clone of it has the same name: by its first commit."""
    return min(repository.git("rev-list", "--max-parents=0", "HEAD").split())


def require_fleet() -> None:
    """Say how to get what a store needs, where it is missing."""
    try:
        import psycopg  # noqa: F401, PLC0415  # an extra
    except ImportError as error:
        raise Unavailable(
            "A store on Postgres needs more than unstuck alone.", hint="Install it with: pip install 'unstuck[fleet]'"
        ) from error


def _remembered(repository: Repository) -> str:
    try:
        return (repository.store / REMEMBERED).read_text().strip()
    except OSError:
        return ""
