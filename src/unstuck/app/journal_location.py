"""Edge: Say where the journal of a repository is, here or in a store that machines share; with a store, give a run its fleet."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unstuck.app.config_file import readable_config
from unstuck.compat.run_files import SHOWN
from unstuck.git.git_command import Git
from unstuck.git.repository import Repository
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.sqlite import SqliteJournal, open_to_write
from unstuck.journal.store import Store
from unstuck.model.config import Config, RemediesConfig, StoreConfig
from unstuck.model.errors import BadUsage, CannotWrite, Unavailable, UnstuckError, unwritable, with_extra
from unstuck.model.plan import Plan
from unstuck.plans.plan_file import PlanFile
from unstuck.process.caller import Owner, machine_and_boot

if TYPE_CHECKING:
    from unstuck.engine.supervise import Supervisor
    from unstuck.fleet.postgres_journal import PostgresJournal
    from unstuck.fleet.wire import Sheet
    from unstuck.verify.check_context import CheckContext

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
        raise unwritable(path, error) from error


JOURNAL = "journal.db"


MOVED = ("remedies.json", f"{JOURNAL}-wal", f"{JOURNAL}-shm", JOURNAL)
"""The journal itself comes last: until then all of this is done again."""


JOURNALS = (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")


STATE = ("phases", "attempt_history.json", "build_commits.json", "config.json", "reports")


@contextmanager
def claimed(journal: Store, run: str) -> Iterator[Owner | None]:
    """Own a run, or a repository, for a while; yields the dead owner that was replaced, if any."""
    before = journal.claim(run)
    try:
        yield before
    finally:
        journal.release()


def journal_path(repository: Repository) -> Path:
    """Return where the journal is or will be; one that an older unstuck left in `.unstuck/` is moved there."""
    path, old = repository.store / JOURNAL, repository.unstuck_folder / JOURNAL
    if not old.is_file() or path.exists():
        return path
    if _has_owner(old):
        return old
    try:
        repository.store.mkdir(parents=True, exist_ok=True)
        for name in SHOWN:
            if (repository.unstuck_folder / name).is_dir() and not (repository.unstuck_folder / name).is_symlink():
                shutil.copytree(
                    repository.unstuck_folder / name, repository.store / name, symlinks=True, dirs_exist_ok=True
                )
                shutil.rmtree(repository.unstuck_folder / name)
        for name in MOVED:
            if (repository.unstuck_folder / name).exists():
                shutil.move(repository.unstuck_folder / name, repository.store / name)
    except OSError as error:
        raise CannotWrite(
            f"The journal {old} cannot be moved to {repository.store}: {error.strerror}.",
            hint="Make both folders writable, then try again.",
        ) from error
    return path


def _has_owner(path: Path) -> bool:
    """Whether an older unstuck is at work with this journal."""
    try:
        journal = SqliteJournal(path)
    except UnstuckError:
        return False
    with closing(journal):
        owner = journal.owner()
        return owner is not None and owner.is_alive(time.time())


def begin_anew(repository: Repository, plan_file: PlanFile, plan: Plan, name: str) -> Plan:
    """Move the state to `.unstuck/old/<time>`; commits, snapshots and logs stay. Refused while a supervisor works.

    Returns the plan as it is to be run: what an old run of it (`name`) ticked off and never brought to the user's
    branch is open again, in the plan's file as well.
    """
    path = journal_path(repository)
    parts = [*(path.with_name(name) for name in JOURNALS), *(repository.unstuck_folder / name for name in STATE)]
    if not any(part.exists() for part in parts):
        return plan
    lost: frozenset[str] = frozenset()
    if path.exists():
        with closing(open_to_write(path)) as journal, claimed(journal, "fresh"):
            lost = frozenset(_never_came_home(journal, repository.git, name))
    target = _new_folder(repository.store / "old")
    again = [task.id for task in plan.tasks if task.done and task.id in lost]
    plan_file.mark(dict.fromkeys(again, "pending"))
    for part in (part for part in parts if part.exists()):
        shutil.move(part, target / part.name)
    return replace(plan, tasks=tuple(replace(task, done=task.done and task.id not in lost) for task in plan.tasks))


def _never_came_home(journal: SqliteJournal, git: Git, plan: str) -> Iterator[str]:
    """Yield the tasks that landed in a run of the plan, and whose work is not on the user's branch."""
    landed, home = dict[str, None](), set[str]()
    for run in journal.runs():
        state = fold(journal.read(run))
        if state.started is not None and state.started.plan == plan:
            names = [name for name, task in state.tasks.items() if task.status == "complete" and task.commit]
            landed |= dict.fromkeys(names)
            home |= set(names) if _whole_run_is_home(git, state) else _tasks_on_branch(git, run)
    yield from (name for name in landed if name not in home)


def _whole_run_is_home(git: Git, state: RunState) -> bool:
    commit = state.home.commit if state.home else None
    return commit is not None and git.succeeds("merge-base", "--is-ancestor", commit, "HEAD")


def _tasks_on_branch(git: Git, run: str) -> set[str]:
    """Return the tasks of a run that the history of HEAD names: as they landed, or picked one by one."""
    trailer = "--format=%(trailers:key=Unstuck-Task,valueonly,separator=%x0A)"
    return set(git("log", "--fixed-strings", f"--grep=Unstuck-Run: {run}", trailer, "HEAD").split("\n")) - {""}


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
    known = _remembered(repository) or _configured(repository)
    return "" if known == LOCAL else known


def _configured(repository: Repository) -> str:
    """Return the configured store; a configuration that is broken keeps nobody from the journal that is here."""
    found = readable_config(repository.root)
    if found.refused is not None and not journal_path(repository).exists():
        raise found.refused
    return found.config.store.url


def has_runs(repository: Repository) -> bool:
    """Whether there are runs to look at."""
    journal = open_to_look(repository)
    if journal is None:
        return False
    with closing(journal):
        return bool(journal.runs())


def shared_journal(repository: Repository, url: str) -> "PostgresJournal":
    require_fleet()
    from unstuck.fleet.postgres_journal import PostgresJournal  # noqa: PLC0415  # an extra

    return PostgresJournal(url, project_of(repository), f"{machine_and_boot()} {repository.common_dir}")


def project_of(repository: Repository) -> str:
    """Name the project so that every clone of it has the same name: by its first commit."""
    return min(repository.git("rev-list", "--max-parents=0", "HEAD").split())


def require_fleet() -> None:
    """Say how to get what a store needs, where it is missing."""
    try:
        import psycopg  # noqa: F401, PLC0415  # an extra
    except ImportError as error:
        raise Unavailable("A store on Postgres needs more than unstuck alone.", hint=with_extra("fleet")) from error


def _remembered(repository: Repository) -> str:
    try:
        return (repository.store / REMEMBERED).read_text().strip()
    except OSError:
        return ""


@contextmanager
def with_dispatcher(
    supervisor: "Supervisor", journal: Store, config: Config, repository: Repository
) -> "Iterator[Supervisor]":
    """Let a fleet do the work of a run, where the configuration names a store; else everything stays as it is."""
    if not config.store.url:
        yield supervisor
        return
    from unstuck.engine.local_dispatcher import LocalDispatcher  # noqa: PLC0415  # as above
    from unstuck.fleet.far import Far, Office  # noqa: PLC0415  # an extra
    from unstuck.fleet.jobs import Job  # noqa: PLC0415  # as above
    from unstuck.fleet.postgres_journal import PostgresJournal  # noqa: PLC0415  # as above
    from unstuck.fleet.remote import Remote, Shelf  # noqa: PLC0415  # as above
    from unstuck.git.workspace import GitWorkspace  # noqa: PLC0415  # a run has loaded them; most commands only look
    from unstuck.policy.schedule import all_settled  # noqa: PLC0415  # as above

    services = supervisor.services
    checks, recorder = services.checks, services.recorder
    assert isinstance(checks.workspace, GitWorkspace)
    assert isinstance(journal, PostgresJournal)
    remote = Remote(
        git=repository.git,
        objects=repository.common_dir / "objects",
        identity=checks.workspace.identity,
        name=_known(repository, config.store.remote),
    )
    parts = {field.name: getattr(checks.workspace, field.name) for field in fields(checks.workspace)}
    shelf = Shelf(**parts, remote=remote, first=checks.first_checkout_slot)
    sheet = _sheet(config, checks, checks.workspace.left_out)
    pattern = Job(
        project=project_of(repository),
        run=checks.run_id,
        token=journal.token,
        labels=config.store.labels,
        priority=config.store.priority,
    )
    office = Office(config.store.url, pattern, checks.show_activity, recorder.note)
    shelf_checks = replace(checks, workspace=shelf)
    shelf.take_up()
    shelf.restore(recorder.state)
    over = False
    office.open(sheet)
    try:
        yield replace(
            supervisor,
            services=replace(
                services,
                checks=shelf_checks,
                dispatcher=Far(LocalDispatcher(shelf_checks, services.agents, services.clock), recorder, office, shelf),
                remedies=None,  # what they would mend is not this machine
            ),
        )
        over = all_settled(recorder.state)
    finally:
        office.close(over=over)


def _sheet(config: Config, checks: "CheckContext", left_out: tuple[str, ...]) -> "Sheet":
    """Return what every worker must know of the run. Raise BadUsage if a command holds a secret."""
    from unstuck.engine.recorder import redacted  # noqa: PLC0415  # a run has loaded it, and most commands only look
    from unstuck.fleet.wire import Sheet  # noqa: PLC0415  # an extra

    # Workers have agents of their own, and need no settings of this machine.
    shared = replace(config, agents={}, profiles={}, remedies=RemediesConfig(), store=StoreConfig())
    sheet = Sheet(config=shared, gates=checks.gates, left_out=left_out, cache=config.verify.cache)
    if redacted(sheet, checks.redactor) != sheet:
        raise BadUsage(
            "The configuration has a secret in a command, and every worker would have to be told it.",
            hint="Let the command read it from a variable that the workers have.",
        )
    return sheet


def _known(repository: Repository, remote: str) -> str:
    """Return the remote by its address; a name that git does not know is told before anything begins."""
    if repository.git.succeeds("remote", "get-url", remote):
        return repository.git("remote", "get-url", "--push", remote)
    if repository.git.succeeds("ls-remote", "--quiet", remote, "HEAD"):
        return remote
    raise BadUsage(
        f"There is no remote {remote!r} that all machines could share.",
        hint="Make a bare repository, and name it in [store]: remote = 'ssh://HOST/PATH'.",
    )
