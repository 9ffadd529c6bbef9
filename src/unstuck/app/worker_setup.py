"""Edge: A worker, composed: a clone of its own, the agents of its machine, and a kit for every run that it works for."""

import fcntl
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING

from unstuck.agents.agent_set import Agent, find_agent
from unstuck.agents.manifests import agents_on_path
from unstuck.app.config_file import read_config
from unstuck.app.journal_location import last_store, project_of, require_fleet
from unstuck.app.services import refuse_inside_an_agent
from unstuck.app.verify_command import bare_check_context, local_dispatcher
from unstuck.engine.local_dispatcher import LocalDispatcher
from unstuck.git.git_command import Git
from unstuck.git.repository import Repository, RepositoryChanges, find_repository, slots_folder
from unstuck.git.shared_objects import SharedObjects
from unstuck.git.untracked_files import UntrackedFiles
from unstuck.git.workspace import GitWorkspace
from unstuck.journal.run_state import RunState
from unstuck.model.config import Config
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.process.processes import LocalProcesses
from unstuck.redaction.redactor import redactor
from unstuck.verify.check_cache import NoMemory, open_memory
from unstuck.verify.check_context import CheckContext, with_check_timeout

if TYPE_CHECKING:
    from unstuck.fleet.postgres_journal import PostgresJournal
    from unstuck.fleet.roster import Fleet, Roster
    from unstuck.fleet.wire import Sheet
    from unstuck.fleet.worker import Worker

MOST_CLONES = 256
MOST_RUNS = 16
"""A worker lives long; it remembers so many runs, and reads the others anew."""
WORKER_DRAIN_SECONDS = 30.0


def open_worker(
    *,
    store: str,
    repo: str,
    agents: Sequence[str] = (),
    slots: int,
    labels: Sequence[str] = (),
    lease: float,
    told: Callable[[str], None],
) -> "Worker":
    """Make a worker for one repository; without names it offers the agents that are on PATH or configured."""
    refuse_inside_an_agent()
    require_fleet()
    os.environ["UNSTUCK_WORKER"] = "1"  # whoever takes a run over on this machine leaves our sessions alone
    from unstuck.fleet.jobs import Enlisted, Offer  # noqa: PLC0415  # as above
    from unstuck.fleet.postgres import Link  # noqa: PLC0415  # as above
    from unstuck.fleet.postgres_journal import PostgresJournal  # noqa: PLC0415  # as above
    from unstuck.fleet.remote import Remote  # noqa: PLC0415  # as above
    from unstuck.fleet.worker import Doing, Worker  # noqa: PLC0415  # an extra

    repo = str(Path(repo).resolve()) if Path(repo).is_dir() else repo
    repository, kept = _clone(repo, told)
    config = read_config(repository.root)
    names = tuple(agents) or (*config.agents, *(name for name in agents_on_path() if name not in config.agents))
    crew = {name: find_agent(name, config, repository.root) for name in names}
    project = project_of(repository)
    link = Link(store, name="worker")
    offer = Offer(project=project, agents=names, labels=tuple(labels), slots=slots, lease=lease)
    enlisted = Enlisted(link, offer)
    journal = PostgresJournal(store, project, "")
    contexts = CheckContexts(repository, config, crew, slots, journal, kept)
    remote = Remote(
        git=repository.git,
        objects=repository.common_dir / "objects",
        identity=repository.identity(),
        name=repo,
        there={repository.head},
    )
    doing = Doing(dispatcher_of=contexts.dispatcher_of, remote=remote, redactor=redactor(os.environ))
    return Worker(link, enlisted, doing, drain=WORKER_DRAIN_SECONDS, told=told)


def open_fleet(cwd: Path, store: str | None) -> "Fleet":
    """Open a fleet to look at it: the one named, or that of the repository around here."""
    url = store
    if url is None:
        url = last_store(find_repository(cwd))
    if not url:
        raise BadUsage("This repository has no store.", hint="Name one: unstuck fleet --store postgresql://HOST/NAME")
    require_fleet()
    from unstuck.fleet.roster import Fleet  # noqa: PLC0415  # an extra

    return Fleet(url)


def fleet_of(cwd: Path) -> "Roster | None":
    """Look at the fleet that the last run here has; None if it stays on this machine."""
    if not (store := last_store(find_repository(cwd))):
        return None
    fleet = open_fleet(cwd, store)
    try:
        return fleet.look()
    finally:
        fleet.close()


class CheckContexts:
    """What a worker works with: one value for each run, with the run's settings and this machine's agents."""

    def __init__(
        self,
        repository: Repository,
        config: Config,
        crew: Mapping[str, Agent],
        slots: int,
        journal: "PostgresJournal",
        kept: IO[str],
    ) -> None:
        self._repository, self._config, self._crew, self._slots = repository, config, crew, slots
        self._journal = journal
        self._kept = kept
        """The lock on the clone."""
        self._processes = LocalProcesses()
        self._shared = SharedObjects(repository)
        self._one = threading.Lock()
        self._states: dict[str, RunState] = {}
        self._last: dict[str, int] = {}
        self._known: dict[str, tuple[str, CheckContext | None]] = {}
        """Run id → the sheet and the context made from it, the latest used last."""

    def dispatcher_of(
        self, run: str, sheet: str, show_activity: Callable[[str, str], None], *, verifying: bool
    ) -> LocalDispatcher:
        """Return what does the jobs of a run. For verifying it knows what the run's journal says by now."""
        context = self._context_of(run, sheet, verifying=verifying)
        return local_dispatcher(replace(context, show_activity=show_activity), self._crew)

    def _context_of(self, run: str, sheet: str, *, verifying: bool) -> CheckContext:
        from unstuck.fleet.wire import Sheet, read  # noqa: PLC0415  # an extra

        with self._one:
            known, context = self._known.pop(run, ("", None))
            if context is None or known != sheet:
                context = self._new_context(run, read(Sheet, sheet))
            self._known[run] = (sheet, context)
            for old in list(self._known)[:-MOST_RUNS]:
                for table in (self._known, self._states, self._last):
                    table.pop(old, None)
        if not verifying:
            return context
        state, timeout = self._state(run), context.settings.verify.timeout
        tasks = {name: with_check_timeout(task.task, timeout) for name, task in state.tasks.items()}
        return replace(context, state=state, tasks=tasks)

    def _new_context(self, run: str, sheet: "Sheet") -> CheckContext:
        repository = self._repository
        config = replace(sheet.config, agents=self._config.agents)
        return replace(
            bare_check_context(run, repository, config, self._workspace(run, config, sheet), self._slots),
            processes=self._processes,
            gates=sheet.gates,
            check_cache=open_memory(repository, config) if sheet.cache else NoMemory(),
        )

    def _state(self, run: str) -> RunState:
        """Bring what is known of a run up to date; each event is read once."""
        with self._one:
            state = self._states.setdefault(run, RunState())
            for entry in self._journal.read(run, self._last.get(run, 0)):
                state.apply(entry)
                self._last[run] = entry.seq
            return state.copied()  # others read on while this one is used

    def _workspace(self, run: str, config: Config, sheet: "Sheet") -> GitWorkspace:
        repository = self._repository
        return GitWorkspace(
            run=run,
            identity=repository.identity(),
            slots=slots_folder(repository, ""),
            shared=self._shared,
            repository_changes=Unwatched(repository),
            left_out=sheet.left_out,
            place=UntrackedFiles(root=repository.root, copy=config.workspace.copy, link=config.workspace.link),
        )


class Unwatched(RepositoryChanges):
    """Nobody works in a worker's clone, so nobody's changes are looked for."""

    def begin(self) -> None:
        return

    def since_last_look(self) -> tuple[str, ...]:
        return ()


def _clone(repo: str, told: Callable[[str], None]) -> tuple[Repository, IO[str]]:
    """Return a clone that no other worker uses, made or brought up to date, and the lock on it."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = re.sub(r"[^a-zA-Z0-9_.-]+", "-", repo.rstrip("/").rpartition("/")[2])[:40].strip(".-") or "repository"
    place = state / "unstuck" / "workers" / f"{name}-{sha256(repo.encode()).hexdigest()[:8]}"
    place.mkdir(parents=True, exist_ok=True)
    for number in range(MOST_CLONES):
        lock = (place / f"{number}.taken").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        folder = place / str(number)
        git = Git(folder)
        if not (folder / ".git").is_dir():
            _make(place, folder, repo)
        elif not git.succeeds("fetch", "--quiet", "--no-tags", "--prune", "origin"):
            told(f"{repo} cannot be reached: this worker begins with what it has of it.")
        _check_out(git, repo)
        repository = find_repository(folder)
        repository.exclude_unstuck_folder()
        return repository, lock
    raise Unavailable(f"{MOST_CLONES} workers have a clone of {repo} here already.", hint="End some of them.")


def _check_out(git: Git, repo: str) -> None:
    """Put the remote's HEAD into the clone, where nobody works; where that names no branch, the one that moved last."""
    newest = ("for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(refname)", "refs/remotes/origin")
    head = "refs/remotes/origin/HEAD"
    branch = head if git.succeeds("rev-parse", "--verify", "--quiet", head) else git(*newest)
    if not branch:
        raise Unavailable(
            f"The repository {repo} has no commits yet.", hint="Push your branch to it: git push URL main"
        )
    git("checkout", "--quiet", "--force", "--detach", branch)


def _make(place: Path, folder: Path, repo: str) -> None:
    temporary = place / f"{folder.name}.new"
    git = Git(place)
    for left in (temporary, folder):
        if left.exists():
            import shutil  # noqa: PLC0415  # only after a clone was cut short

            shutil.rmtree(left)
    done = git.attempt("clone", "--quiet", "--no-tags", repo, str(temporary))
    if done.returncode != 0:
        raise Unavailable(
            f"The repository {repo} cannot be cloned: {done.stderr.strip()}", hint="See whether it can be reached."
        )
    temporary.rename(folder)
