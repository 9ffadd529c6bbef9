"""The library's façade: read plans, look at runs, open them. Surfaces know this and nothing below it."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.adapters.agents.manifest import manifest
from unstuck.adapters.agents.readers import as_json, read_files
from unstuck.adapters.agents.survey import Found, survey
from unstuck.adapters.agents.trial import trial_ground
from unstuck.adapters.codec import encode
from unstuck.adapters.config_file import read_config
from unstuck.adapters.desk import put
from unstuck.adapters.doctor import Finding, examine
from unstuck.adapters.first_config import FirstConfig
from unstuck.adapters.first_config import write_config as write_first_config
from unstuck.adapters.gates import gates as all_gates
from unstuck.adapters.junit import junit as junit_text
from unstuck.adapters.owner import Owner
from unstuck.adapters.plans.plan_file import open_plan
from unstuck.adapters.policies import profiles as all_profiles
from unstuck.adapters.policies import resolved
from unstuck.adapters.pruning import prune as prune_repository
from unstuck.adapters.remarks import sarif_text
from unstuck.adapters.repository import find
from unstuck.adapters.sqlite import SqliteJournal, open_to_write
from unstuck.adapters.states.spec_folder import asked_by
from unstuck.config import Config
from unstuck.core.attempt import Verdict
from unstuck.core.event import Entry, Options
from unstuck.core.plan import Check, Plan, Problem, check, named
from unstuck.core.policy import Policy
from unstuck.core.report import Summary, summary
from unstuck.core.review import reviewed
from unstuck.core.spec_folder import RECOVERY
from unstuck.core.state import RunState, fold
from unstuck.errors import BadUsage, Unavailable, UnstuckError
from unstuck.ports import Clock
from unstuck.run import Run, Watcher, refuse_inside_an_agent
from unstuck.verifying import Verification, Verified

__all__ = ["Finding", "Run", "View", "Watcher", "examine", "look", "open_run", "read_plan", "reopen_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One run as the journal has it, for whoever looks at it from outside."""

    run: str
    entries: tuple[Entry, ...]
    state: RunState
    owner: Owner | None
    """The living supervisor, if there is one."""

    @property
    def summary(self) -> Summary:
        live = self.owner is not None
        return summary(self.state, time.time() if live else self.entries[-1].at, live=live)

    def named(self, task: str) -> str:
        """Return the id of the task that a person means."""
        found = named((one.task for one in self.state.tasks.values()), task)
        if found is None:
            raise BadUsage(f"There is no task {task} in run {self.run}.", hint="See all of them with `unstuck status`.")
        return found


# --- plans and looking -------------------------------------------------------------------------------


def read_plan(path: Path, *, plan_format: str | None = None) -> Plan:
    """Read a plan and look it over; its problems and concerns are in it."""
    return reviewed(open_plan(path, plan_format).read(), gates=len(gates(Path.cwd())))


def plan_problems(plan: Plan) -> tuple[Problem, ...]:
    return check(plan)


def profiles(cwd: Path) -> dict[str, Policy]:
    """Return the profiles that a run here could use: the catalog's, and the configuration's own."""
    try:
        own = read_config(find(cwd).root).profiles
    except Unavailable:
        own = {}
    return all_profiles(own)


def gates(cwd: Path) -> tuple[Check, ...]:
    """Return the checks that hold after every task; none outside of a repository."""
    try:
        root = find(cwd).root
        return all_gates(read_config(root), root)
    except UnstuckError:
        return ()


def entry_json(entry: Entry) -> str:
    """Return one event as one line of JSON."""
    return f'{{"schema": 1, "seq": {entry.seq}, "at": {entry.at:.6f}, "event": {encode(entry.event)}}}'


def look(cwd: Path, run: str | None = None) -> View:
    """Return the latest run of the repository, or the one named."""
    repository = find(cwd)
    path = repository.ours / "journal.db"
    if not path.exists():
        raise BadUsage("There is no run in this repository yet.", hint="Start one with `unstuck run PLAN`.")
    journal = SqliteJournal(path)
    try:
        runs = journal.runs()
        if not runs or (run is not None and run not in runs):
            raise BadUsage(
                f"There is no run {run or ''} in this repository.", hint=f"Runs: {', '.join(runs[-5:]) or 'none'}."
            )
        chosen = run or runs[-1]
        owner = journal.owner()
        alive = owner if owner is not None and owner.run == chosen and owner.alive(time.time()) else None
        entries = tuple(journal.read(chosen))
    finally:
        journal.close()
    return View(run=chosen, entries=entries, state=fold(entries), owner=alive)


def write_config(cwd: Path, *, force: bool = False) -> FirstConfig:
    """Write a first `unstuck.toml` into the root of the repository."""
    return write_first_config(find(cwd).root, force=force)


# --- agents ------------------------------------------------------------------------------------------


def known_agents(cwd: Path) -> tuple[Found, ...]:
    """Look which coding agents are here: ours, and those of the repository's configuration."""
    return survey(_config(cwd))


def read_session(cwd: Path, name: str, stdout: Path, stderr: Path | None, exit_code: int | None) -> dict[str, Any]:
    """Return what a recorded session says, in the public form."""
    known = manifest(name, _config(cwd).agents)
    if known is None or not known.program:
        raise BadUsage(f"There is no known agent {name!r}.", hint="See them with `unstuck agents`.")
    return as_json(name, read_files(known.output, stdout, stderr, code=exit_code, meanings=known.exit_codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How an agent did with one small task."""

    agent: str
    landed: bool
    end: str
    """Why its session ended, as it was read; empty for an agent whose output is not read."""
    exit_code: int | None
    message: str
    session: str
    cost_usd: float | None
    seconds: float


def check_agent(cwd: Path, name: str, watcher: Watcher | None = None) -> Trial:
    """Let the agent do one small task in a scratch repository, with one attempt."""
    config = _config(cwd)
    config = Config(agents=config.agents, limits=config.limits)
    with trial_ground() as plan:
        repository = find(plan.parent)
        plan_file = open_plan(plan, None, root=repository.root)
        wanted = Options(agents=(name,), max_attempts=1, quota="exit")
        options = resolved(wanted, config, asked_by(plan_file))
        run = Run(repository, config, plan_file, options, watcher or Watcher())
        run.go()
        task = run.state.tasks["1.1"]
        outcome = task.current.outcome if task.attempts else None
        return Trial(
            agent=name,
            landed=task.status == "complete",
            end=outcome.end if outcome else "",
            exit_code=outcome.ended.exit_code if outcome else None,
            message=(outcome.message or outcome.ended.tail) if outcome else task.question,
            session=outcome.session if outcome else "",
            cost_usd=task.cost_usd,
            seconds=task.seconds,
        )


def _config(cwd: Path) -> Config:
    """Return the configuration; outside of a repository, the defaults."""
    try:
        return read_config(find(cwd).root)
    except Unavailable:
        return Config()


# --- running -----------------------------------------------------------------------------------------


def open_run(
    plan: str | Path,
    *,
    agents: Sequence[str] = (),
    options: Options | None = None,
    parallel: int | None = None,
    profile: str | None = None,
    recovery_mode: bool = False,
    cwd: Path | None = None,
    plan_format: str | None = None,
    watcher: Watcher | None = None,
    open_journal: Callable[[Path], SqliteJournal] = open_to_write,
    clock: Clock | None = None,
) -> Run:
    """Open a plan's run: its unfinished one with its stored options, or a new one.

    `recovery_mode` is the profile `fix-tasks`; a spec folder whose state file says `recoveryMode` has it, too.
    """
    repository = find(cwd or Path.cwd())
    config = read_config(repository.root)
    plan_file = open_plan(_found(Path(plan), repository.root), plan_format, root=repository.root)
    asked = asked_by(plan_file)
    chosen = replace(
        options or Options(agents=()),
        agents=tuple(agents),
        parallel=parallel or config.parallel,
        profile=profile or (RECOVERY if recovery_mode or asked.recovery else config.profile),
    )
    chosen = resolved(chosen, config, asked)
    return Run(repository, config, plan_file, chosen, watcher or Watcher(), open_journal=open_journal, clock=clock)


def _found(plan: Path, root: Path) -> Path:
    """Return where the plan is: our own summaries name it from the repository's root, wherever they are read."""
    return root / plan if not os.path.lexists(plan) and os.path.lexists(root / plan) else plan


def reopen_run(run: str | None = None, *, cwd: Path | None = None, watcher: Watcher | None = None) -> Run:
    """Open the latest run again, or the one named."""
    view = look(cwd or Path.cwd(), run)
    started = view.state.started
    assert started is not None
    repository = find(cwd or Path.cwd())
    known = {name: task.task.title for name, task in view.state.tasks.items()}
    plan_file = open_plan(repository.root / started.plan, started.format, root=repository.root, known=known)
    config = read_config(repository.root)
    return Run(repository, config, plan_file, started.options, watcher or Watcher(), view.run)


# --- operating ---------------------------------------------------------------------------------------


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
    repository, view = find(cwd), look(cwd)
    git = repository.git
    found = git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode != 0:
        raise BadUsage(f"There is no commit {name!r}.", hint=f"See them with `git log unstuck/{view.run}`.")
    commit = found.stdout.strip()
    started = view.state.started
    home = started.branch if started and started.branch else repository.head
    if view.state.tip != commit and git.succeeds("merge-base", "--is-ancestor", view.state.tip, home):
        raise BadUsage(
            "The run's work is on your branch already.",
            hint=f"Take it back there: git revert {commit[:12]}..{view.state.tip[:12]}",
        )
    return commit


def prune(cwd: Path, *, dry_run: bool) -> tuple[str, ...]:
    """Remove what ended runs left behind; say what was removed, and what was kept and why."""
    repository = find(cwd)
    path = repository.ours / "journal.db"
    if not path.exists():
        return ("There is nothing of unstuck's here.",)
    journal = SqliteJournal(path)
    try:
        journal.claim("prune")
        try:
            ended = {run: fold(journal.read(run)).ended for run in journal.runs()}
            finished = [run for run, end in ended.items() if end is not None and end.exit_code == 0]
            pruned = prune_repository(repository, finished, dry_run=dry_run)
        finally:
            journal.release()
    finally:
        journal.close()
    return (*pruned.removed, *pruned.kept) or ("There was nothing to remove.",)


# --- verifying by hand -------------------------------------------------------------------------------


def verification(cwd: Path, *, cache: bool = True) -> Verification:
    """Open a verification by hand; a session of a run is refused, as its supervisor verifies it anyway."""
    refuse_inside_an_agent()
    return Verification(cwd, cache=cache)


def verify(opened: Verification, cwd: Path, name: str | None = None) -> Verified:
    """Verify the last work on a task of the latest run, or a commit; without a name, HEAD."""
    if name is not None and (find(cwd).ours / "journal.db").exists():
        state = look(cwd).state
        if name in state.tasks:
            return opened.of_task(state, name)
    return opened.of_commit(name or "HEAD")


def write_findings(verdict: Verdict, name: str, *, sarif: Path | None, junit: Path | None) -> None:
    """Write a verdict in the forms that other tools read."""
    if sarif is not None:
        put(sarif.absolute(), sarif_text(verdict.remarks))
    if junit is not None:
        put(junit.absolute(), junit_text("unstuck verify", [(name, verdict)]))
