"""Edge: Look at runs from outside, by their journal, and follow it; find the commits that one can be taken back to; bring one out as a pull request; remove what runs left behind."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.agents.manifests import manifest
from unstuck.agents.output_formats import read_recorded_session
from unstuck.agents.printed_json import gist
from unstuck.app.config_file import read_config, readable_config
from unstuck.app.journal_location import claimed, open_to_look
from unstuck.engine.resume import unfinished
from unstuck.git.pruning import SNAPSHOT_REFS, prune_abandoned
from unstuck.git.pruning import prune as prune_repository
from unstuck.git.repository import Repository, find_repository, slots_folder
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.stages import Stage
from unstuck.journal.store import Store
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.config import AgentConfig
from unstuck.model.errors import BadUsage
from unstuck.model.event import Entry, encode
from unstuck.model.landing import run_branch
from unstuck.model.layout import Layout
from unstuck.model.outcome import ToolCall
from unstuck.model.plan import find_task_id
from unstuck.model.text import one_line
from unstuck.process.atomic_files import DiskFiles, write_atomically
from unstuck.process.caller import Owner
from unstuck.redaction.redactor import redactor
from unstuck.reports.run_page import pull_request
from unstuck.reports.summaries import Summary, summary

TAIL_BYTES, DID_CHARS = 8192, 200
FILE = "pull-request.md"
GH_SECONDS = 60
SAID_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One run as the journal has it, for whoever looks at it from outside."""

    repository: Repository
    run: str
    entries: tuple[Entry, ...]
    state: RunState
    owner: Owner | None
    """The living supervisor, if there is one."""
    seen: float = 0.0
    """When a supervisor that died last gave a sign of life."""

    @property
    def summary(self) -> Summary:
        live = self.owner is not None
        told = summary(self.state, time.time() if live else max(self.entries[-1].at, self.seen), live=live)
        taken = self._taken_by_hand()
        return replace(told, home=taken, landed="", commands=()) if taken else told

    def _taken_by_hand(self) -> str:
        """Say that what landed, and did not come home by itself, is on the user's branch by now."""
        state, home = self.state, self.state.home
        if state.started is None or state.ended is None or state.tip == state.started.base or (home and home.commit):
            return ""
        branch = state.started.branch or "HEAD"
        if not self.repository.git.succeeds("merge-base", "--is-ancestor", state.tip, branch):
            return ""
        name = f"your branch {branch.removeprefix('refs/heads/')}" if state.started.branch else branch
        return f"What landed is on {name}: somebody merged it."

    def named(self, task: str) -> str:
        """Return the id of the task that a person means."""
        found = find_task_id((one.task for one in self.state.tasks.values()), task)
        if found is None:
            raise BadUsage(f"There is no task {task} in run {self.run}.", hint="See all of them with `unstuck status`.")
        return found


def look(cwd: Path, run: str | None = None) -> View:
    """Return the latest run of the repository, or the one named."""
    with _journal(repository := find_repository(cwd)) as journal:
        runs = journal.runs()
        if not runs:
            raise _no_run()
        if run is not None and run not in runs:
            raise BadUsage(f"There is no run {run} in this repository.", hint=f"Runs: {', '.join(runs[-5:])}.")
        return _view(repository, journal, run or runs[-1])


def all_runs(cwd: Path) -> tuple[View, ...]:
    """Return all runs of the repository, the oldest first."""
    repository = look(cwd).repository  # refuses where there is none
    with _journal(repository) as journal:
        return tuple(_view(repository, journal, run) for run in journal.runs())


@contextmanager
def _journal(repository: Repository) -> Iterator[Store]:
    journal = open_to_look(repository)
    if journal is None:
        raise _no_run()
    with closing(journal):
        yield journal


def _no_run() -> BadUsage:
    return BadUsage("There is no run in this repository yet.", hint="Start one with `unstuck run PLAN`.")


def _view(repository: Repository, journal: Store, run: str) -> View:
    owner, entries, claim = living_owner(journal, run), tuple(journal.read(run)), journal.owner(run)
    seen = claim.heartbeat if claim is not None and claim.run == run else 0.0
    return View(repository=repository, run=run, entries=entries, state=fold(entries), owner=owner, seen=seen)


def living_owner(journal: Store, run: str) -> Owner | None:
    """Return the supervisor that works on a run, if there is one."""
    owner = journal.owner(run)
    return owner if owner is not None and owner.run == run and owner.is_alive(time.time()) else None


def entry_json(entry: Entry) -> str:
    """Return one event as one line of JSON."""
    return f'{{"schema": 1, "seq": {entry.seq}, "at": {entry.at:.6f}, "event": {encode(entry.event)}}}'


Used = dict[int, tuple[ToolCall, ...]]
"""What the agent of each attempt called, by the attempt's number."""


def tools_used(view: View, task: str, own: Mapping[str, AgentConfig] | None = None) -> Used:
    """Return what the agent of each attempt called, in all of its sessions, as far as what they printed is read.

    `own` are the agents of the configuration, where they are known already.
    """
    own = readable_config(view.repository.root).config.agents if own is None else own
    return {one.number: tuple(_tools(view, own, task, one)) for one in view.state.tasks[task].attempts}


def _tools(view: View, own: Mapping[str, AgentConfig], task: str, attempt: AttemptState) -> Iterator[ToolCall]:
    known = manifest(attempt.agent, own)
    for session in range(1, attempt.sessions + 1) if known is not None and known.program else ():
        printed = _layout(view.repository).transcript(task, attempt.number, session)
        if known is not None and printed.exists():
            yield from read_recorded_session(known.output, printed, None, code=0, meanings=known.exit_codes).tools


def brief_of(view: View, task: str, number: int | None = None) -> str:
    """Return what the last session of a task was told, or that of the attempt named."""
    attempts = view.state.tasks[task].attempts
    last = next((one for one in reversed(attempts) if number in (None, one.number)), None)
    if last is None:
        return ""
    return DiskFiles().read(_layout(view.repository).brief(task, last.number, max(last.sessions, 1))) or ""


def _layout(repository: Repository) -> Layout:
    return Layout(repository.root, repository.store)


def changed(view: View, task: str, number: int | None, *, stat: bool, since: int | None = None) -> str:
    """Return the work of a task as a patch: that of the attempt named, else what landed, else the last attempt's.

    `since` names an earlier attempt: what differs between the two.
    """
    state = view.state.tasks[task]
    chosen = _attempt(state, number)
    landed = state.commit if chosen is state.attempts[-1] else None
    unseen = chosen is state.attempts[-1] and state.stage in (Stage.RECONCILE, Stage.VERIFY)
    base, work = (f"{landed}^", landed) if landed else (chosen.base, chosen.work)
    work = work or (_put_away(view, state) if unseen else None)
    if since is not None:
        earlier = _attempt(state, since)
        base, work, chosen = earlier.work or "", chosen.work, chosen if earlier.work else earlier
    if unseen and not work:
        raise BadUsage(
            f"The work of attempt {chosen.number} of task {task} is looked at when its session has ended; "
            "where that was cut short, by `unstuck resume`.",
            hint="See where it stands: unstuck status",
        )
    if not work or not base:
        raise BadUsage(f"Attempt {chosen.number} of task {task} left no work.", hint=f"See `unstuck show {task}`.")
    options = ("--stat",) if stat else ("--patch", "--binary")
    found = view.repository.git.attempt(
        "diff", "--no-ext-diff", "--no-textconv", "--no-color", *options, base, work, "--"
    )
    if found.returncode != 0:
        raise BadUsage(
            f"The work of attempt {chosen.number} is not in the repository any more.",
            hint="`unstuck prune` removed it.",
        )
    return found.stdout


def _put_away(view: View, state: TaskState) -> str:
    """Return the snapshot of a session that was stopped: nobody has examined what it keeps."""
    ref = f"{SNAPSHOT_REFS}{view.run}/{state.last_seq}"
    return ref if view.repository.git.succeeds("rev-parse", "--verify", "--quiet", ref) else ""


def _attempt(state: TaskState, number: int | None) -> AttemptState:
    """Return the attempt that a person means; the last one, if none is named."""
    attempts = {attempt.number: attempt for attempt in state.attempts}
    if number is not None and number not in attempts:
        raise BadUsage(
            f"Task {state.task.id} has no attempt {number}.",
            hint=f"It has {', '.join(map(str, attempts)) or 'none yet'}.",
        )
    if not attempts:
        raise BadUsage(f"Nobody has worked on task {state.task.id} yet.", hint="See `unstuck status`.")
    return attempts[number] if number is not None else state.attempts[-1]


def waiting_work(cwd: Path, task: str) -> tuple[str, tuple[str, ...]]:
    """Return the tree that waits for a person's word about a task, and lines that show it; empty if there is none."""
    view = look(cwd)
    state = view.state.tasks[view.named(task)]
    verdict = state.verdict
    if verdict is None:
        return "", ()
    stat = view.repository.git.attempt("diff-tree", "-r", "--no-commit-id", "--stat=100", verdict.base, verdict.tree)
    red = [f"  not green: {result.command}" for result in verdict.results if result.status != "pass"]
    remarks = [f"  {remark}" for remark in verdict.remarks]
    head = f"The work of task {task}, tree {verdict.tree[:12]} on {verdict.base[:12]}:"
    return verdict.tree, (head, *stat.stdout.rstrip().splitlines(), *red, *remarks)


def before_landing(cwd: Path, task: str) -> str:
    """Return the commit that the run's branch stood at before the task landed."""
    view = look(cwd)
    task = view.named(task)
    commit = view.state.tasks[task].commit
    if commit is None:
        raise BadUsage(f"Task {task} has no commit on the run's branch.", hint="See `unstuck status`.")
    return commit_of_run(cwd, f"{commit}^")


def commit_of_run(cwd: Path, name: str) -> str:
    """Resolve a commit that a person named; one that is on the user's branch already cannot be rolled back here."""
    view = look(cwd)
    git = view.repository.git
    found = git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode != 0:
        raise BadUsage(f"There is no commit {name!r}.", hint=f"See them with `git log {run_branch(view.run)}`.")
    commit = found.stdout.strip()
    started = view.state.started
    home = started.branch if started and started.branch else view.repository.head
    if view.state.tip != commit and git.succeeds("merge-base", "--is-ancestor", view.state.tip, home):
        raise BadUsage(
            "The run's work is on your branch already.",
            hint=f"Take it back there: git revert {commit[:12]}..{view.state.tip[:12]}",
        )
    return commit


def prune(cwd: Path, *, dry_run: bool) -> tuple[str, ...]:
    """Remove what ended runs left behind; say what was removed, and what was kept and why."""
    repository = find_repository(cwd)
    journal = open_to_look(repository)
    if journal is None:
        return ("There is nothing of unstuck's here.",)
    with closing(journal), claimed(journal, "prune"):
        finished = [run for run in journal.runs() if not unfinished(tuple(journal.read(run)))]
        slots = slots_folder(repository, read_config(repository.root).workspace.slots)
        pruned = prune_repository(repository, finished, slots, dry_run=dry_run)
        abandoned = prune_abandoned(repository, slots, dry_run=dry_run)
    return (*pruned.removed, *pruned.kept, *abandoned.removed, *abandoned.kept) or ("There was nothing to remove.",)


class Follower:
    """Reads a journal on from where it left off. There need be none yet: it is opened when there is one."""

    def __init__(self, cwd: Path) -> None:
        self.repository = find_repository(cwd)
        self._journal: Store | None = None

    def runs(self) -> tuple[str, ...]:
        """List all runs, oldest first."""
        journal = self._opened()
        return tuple(journal.runs()) if journal is not None else ()

    def news(self, run: str, after: int) -> Sequence[Entry]:
        """Return the run's events behind a number."""
        journal = self._opened()
        return tuple(journal.read(run, after)) if journal is not None else ()

    def owner(self, run: str) -> Owner | None:
        """Return the living supervisor of a run, if there is one."""
        journal = self._opened()
        return living_owner(journal, run) if journal is not None else None

    def view(self, run: str, entries: Iterable[Entry], state: RunState) -> View:
        """Return a run of which so much was read."""
        return View(repository=self.repository, run=run, entries=tuple(entries), state=state, owner=self.owner(run))

    def doing(self, task: str) -> str:
        """Return in a line what the agent of a task last did, as far as its log tells."""
        path = _layout(self.repository).log(task)
        try:
            with path.open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        found = (one_line(gist(line), DID_CHARS) for line in reversed(lines))
        return next((line for line in found if line), "")

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _opened(self) -> Store | None:
        if self._journal is None:
            self._journal = open_to_look(self.repository)
        return self._journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The text of a pull request, where it is, and what became of it."""

    title: str
    body: str
    path: Path
    address: str = ""
    """Where it was opened."""
    why: str = ""
    """Why it was not, and what to type."""


def draft_request(cwd: Path, run: str | None, path: Path | None, *, only_file: bool) -> Opened:
    """Write a pull request for what a run landed into a file; open it where `gh` is there, logged in, and can see the branch."""
    view = look(cwd, run)
    repository = view.repository
    if not any(task.commit for task in view.state.tasks.values()):
        raise BadUsage(f"Nothing of run {view.run} has landed yet.", hint="See where it stands: unstuck status")
    title, body = pull_request(view.state, view.summary)
    file = path.absolute() if path is not None else repository.unstuck_folder / FILE
    repository.exclude_unstuck_folder()
    write_atomically(file, f"# {title}\n\n{body}")
    made = Opened(title=title, body=body, path=file)
    return made if only_file else _opened(view, made)


def _opened(view: View, made: Opened) -> Opened:
    """Ask for the user's own branch to be merged into the remote's main one, else for the run's."""
    repository, started, own = view.repository, view.state.started, run_branch(view.run)
    home = (started.branch or "").removeprefix("refs/heads/") if started else ""
    found = repository.git.attempt("symbolic-ref", "--short", "refs/remotes/origin/HEAD").stdout.strip()
    main = found.removeprefix("origin/")
    head, base = (home, main) if main and home and home != main else (own, home or main)
    typed = f"git push -u origin {head} && unstuck pr"
    gh = shutil.which("gh")
    if gh is None:
        return replace(made, why="gh is not on PATH, so nothing was opened. Paste the file, or install gh.")
    if _gh(repository, gh, "auth", "status").returncode != 0:
        return replace(made, why="gh is not logged in, so nothing was opened. Log in with: gh auth login")
    git = repository.git
    there = git.attempt("ls-remote", "--exit-code", "origin", f"refs/heads/{head}")
    tip = git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{head}").stdout.strip()
    if there.returncode != 0 or not tip or not there.stdout.startswith(tip):
        return replace(
            made, why=f"The branch {head} is not at origin as it is here. We push nothing by ourselves: {typed}"
        )
    words = ("--title", made.title, "--body", made.body, "--head", head, *(("--base", base) if base else ()))
    done = _gh(repository, gh, "pr", "create", *words)
    if done.returncode != 0:
        said = redactor({}).text(one_line(done.stderr, SAID_CHARS))
        return replace(made, why=f"gh could not open it: {said}")
    return replace(made, address=one_line(done.stdout, SAID_CHARS))


def _gh(repository: Repository, gh: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [gh, *arguments],
            cwd=repository.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GH_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(arguments, 1, "", str(error))
