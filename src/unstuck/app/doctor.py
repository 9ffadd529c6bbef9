"""Edge: Examine a machine and a repository: what is missing, what is left over, and the remedy for each."""

import os
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from unstuck.agents.agent_set import Agent, find_agent, first_agent_on_path, login_remarks
from unstuck.agents.manifests import agents_on_path
from unstuck.app.config_file import NAME as CONFIG_NAME
from unstuck.app.config_file import has_config, read_config
from unstuck.app.journal_location import journal_path, open_to_look
from unstuck.app.settings import sandbox_start_problems, sandboxed_purposes
from unstuck.app.verify_command import first_checking_slot, separate_check_context
from unstuck.app.worker_setup import fleet_of
from unstuck.engine.stops import RunStop
from unstuck.git.git_command import git_processes
from unstuck.git.pruning import SNAPSHOT_REFS
from unstuck.git.repository import Repository, find_repository, slots_folder
from unstuck.git.untracked_files import unsafe_copies
from unstuck.model.config import Config
from unstuck.model.errors import CannotWrite, GitFailed, Interrupted, UnstuckError
from unstuck.model.landing import RUN_BRANCH_REFS
from unstuck.model.text import counted, one_line
from unstuck.process.caller import calling_session
from unstuck.process.sandbox import WAY_ON, sandbox_problem
from unstuck.toolchain.ci_workflows import ci_commands, differences
from unstuck.toolchain.detection import detect, way_around
from unstuck.toolchain.shell import BUILTINS, parts, words
from unstuck.verify.check_context import CheckContext
from unstuck.verify.checks import CleanCheckout, SetupFailed

NAME = "doctor"
"""The name of the log."""
SECONDS, SAID_CHARS = 60.0, 200
LEAST_SPACE = 500_000_000
SHOWN = 3
FINDS = "import importlib.util, sys; sys.exit(importlib.util.find_spec({!r}) is None)"
MAKE_ROOM = "Make room, or make it writable for you, and look again: unstuck doctor"

Grade = Literal["ok", "note", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it is, and what to do about it."""

    about: str
    grade: Grade
    says: str
    remedy: str = ""


def examine(
    cwd: Path, *, run_stop: RunStop | None = None, seen: Callable[[str, str], None] | None = None
) -> tuple[Finding, ...]:
    """Look at everything that a run needs; stop early only where nothing further can be seen.

    Where the checks run is looked at only if somebody is told: the set-up of a slot can take a while.
    """
    findings = [_platform()]
    try:
        repository = find_repository(cwd)
    except UnstuckError as error:
        return (*findings, Finding("repository", "bad", error.message, error.hint))
    findings.append(Finding("git", "ok", repository.git("version")))
    findings.append(Finding("repository", "ok", f"{repository.root} at {repository.head[:12]}"))
    for part in (_checkout, _writable, _space, _journal, _locks):
        findings += _told(part.__name__, part(repository))
    try:
        config = read_config(repository.root)
    except UnstuckError as error:
        return (*findings, Finding("configuration", "bad", error.message, error.hint))
    for more in (_slots, _leftovers, _agents, _workspace, _sandbox):
        findings += _told(more.__name__, more(repository, config))
    missing: Mapping[str, str] | None = None
    if seen is not None and not calling_session():
        try:
            missing = _missing_where_checks_run(repository, config, run_stop or RunStop(drain_seconds=0.0), seen)
        except Interrupted as error:
            raise KeyboardInterrupt from error
        except (SetupFailed, UnstuckError, OSError) as error:
            log = repository.store / "logs" / "task-doctor.log"
            remedy = f"Correct `setup` in [workspace]; all of its output: {log}"
            why, other = _no_look(error)
            findings.append(Finding("workspace", "bad", f"A slot cannot be set up: {why}", other or remedy))
    return (*findings, *_checks(repository, config, missing))


def _told(name: str, part: Iterator[Finding]) -> Iterator[Finding]:
    """Yield what a part finds; where it cannot even look, that is what it found."""
    try:
        yield from part
    except (UnstuckError, OSError) as error:
        yield Finding(name.strip("_"), "bad", *_no_look(error))


def _no_look(error: SetupFailed | UnstuckError | OSError) -> tuple[str, str]:
    """Return what stands in the way of a look, and what to do; there may be no run that could go on."""
    if isinstance(error, SetupFailed):
        return one_line(error.failure.summary, SAID_CHARS), ""
    if isinstance(error, OSError):
        return f"{error.filename} cannot be used: {error.strerror}.", MAKE_ROOM
    return error.message, MAKE_ROOM if isinstance(error, CannotWrite | GitFailed) else error.hint


def _platform() -> Finding:
    if sys.platform == "linux":
        return Finding("platform", "ok", f"Linux {platform.release()}: no process of an agent can escape.")
    says = f"{platform.system()} has no child subreaper: processes that an agent hides well may outlive it."
    return Finding(
        "platform", "note", says, "Run unattended work on Linux, or in a Linux container or virtual machine."
    )


def _checkout(repository: Repository) -> Iterator[Finding]:
    if repository.branch is None:
        says = "HEAD is detached: at the end the work stays on the run's branch."
        yield Finding(
            "branch", "note", says, "Switch to a branch first, if it should come home by itself: git switch BRANCH"
        )
    if files := tuple(name for name in repository.uncommitted() if name != CONFIG_NAME):  # that is read where it lies
        says = f"Not used by a run, because it is not committed: {_some(files)}."
        yield Finding("uncommitted", "note", says, "Commit what the agent should see.")
    if modules := repository.submodules():
        yield Finding("submodules", "ok", f"{counted(len(modules), 'submodule')}, taken from the local clone.")
    if lfs := repository.lfs_files():
        says = f"{len(lfs)} files are kept by git-lfs: {_some(lfs)}. A slot may hold only their pointers."
        yield Finding("git-lfs", "note", says, "Add them to `copy` in [workspace], or run `git lfs pull` in `setup`.")


def _writable(repository: Repository) -> Iterator[Finding]:
    """Name what a run must write and cannot; of what is not there yet, the folder that it would be made in."""
    wanted = (repository.root, repository.common_dir, repository.store, repository.unstuck_folder)
    places = [path for path in wanted if path.exists() and not (path.is_dir() and os.access(path, os.W_OK))]
    if places:
        yield Finding("writable", "bad", f"Cannot be written: {', '.join(map(str, places))}.", MAKE_ROOM)


def _space(repository: Repository) -> Iterator[Finding]:
    free = shutil.disk_usage(repository.root).free
    says = f"{free // 1_000_000} MB are free."
    if free >= LEAST_SPACE:
        yield Finding("disk", "ok", says)
    else:
        yield Finding("disk", "bad", says, "Make room before a run: a full disk stops it.")


def _journal(repository: Repository) -> Iterator[Finding]:
    for aside in sorted(journal_path(repository).parent.glob("journal.db.damaged-*")):
        if not aside.name.endswith(("-wal", "-shm")):
            says = f"A damaged journal was set aside as {aside}."
            yield Finding("journal", "note", says, "Delete it when you no longer need it.")
    try:
        journal = open_to_look(repository)
        if journal is None:
            return
        with closing(journal):
            owner = journal.owner()
        yield from _fleet(repository)
    except UnstuckError as error:
        yield Finding("journal", "bad", *_no_look(error))
        return
    if owner is None:
        yield Finding("journal", "ok", "No supervisor is working here.")
    elif owner.is_alive(time.time()):
        yield Finding("journal", "ok", f"Run {owner.run} is being worked on by pid {owner.pid}.")
    else:
        says = f"The supervisor of run {owner.run} (pid {owner.pid}) died."
        yield Finding("journal", "note", says, "Go on with: unstuck resume")


def _fleet(repository: Repository) -> Iterator[Finding]:
    """Say who would work, where the journal is in a store."""
    seen = fleet_of(repository.root)
    if seen is None:
        return
    workers, silent = counted(len(seen.workers), "worker"), sum(one.beat > one.lease for one in seen.workers)
    waiting = counted(sum(one.jobs for one in seen.queued), "job")
    says = f"The store answers: {workers}, {silent} of them silent; {waiting} waiting."
    if len(seen.workers) > silent:
        yield Finding("fleet", "ok", says)
    else:
        yield Finding("fleet", "note", says, "Start one: unstuck worker --store URL --repo URL")


def _locks(repository: Repository) -> Iterator[Finding]:
    lock = repository.git_dir / "index.lock"
    if lock.exists() and not git_processes(repository.root):
        yield Finding("lock", "bad", f"{lock} is left over: no git command is running.", f"Remove it: rm {lock}")


def _slots(repository: Repository, config: Config) -> Iterator[Finding]:
    """Say where no slot could be made: of folders that are not there yet, the one that they would be made in."""
    folder = slots_folder(repository, config.workspace.slots)
    place = next(path for path in (folder, *folder.parents) if path.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        says = f"No slot can be made in {folder}: {place} is no folder that can be written."
        yield Finding("slots", "bad", says, "Make it one, or name another folder as `slots` in [workspace].")


def _leftovers(repository: Repository, config: Config) -> Iterator[Finding]:
    slots = [path for path in slots_folder(repository, config.workspace.slots).glob("w*") if path.is_dir()]
    refs = repository.git("for-each-ref", "--format=%(refname)", RUN_BRANCH_REFS, SNAPSHOT_REFS).splitlines()
    branches = [ref for ref in refs if ref.startswith(RUN_BRANCH_REFS)]
    left = {"slots": len(slots), "branches": len(branches), "snapshots": len(refs) - len(branches)}
    if any(left.values()):
        says = f"Left by runs: {', '.join(f'{noun} {count}' for noun, count in left.items())}."
        yield Finding("leftovers", "ok", says, "See what may go: unstuck prune --dry-run")


def _agents(repository: Repository, config: Config) -> Iterator[Finding]:
    for name in config.agent:
        try:
            found = find_agent(name, config, repository.root)
        except UnstuckError as error:
            yield Finding("agent", "bad", error.message, error.hint)
        else:
            yield Finding("agent", "ok", f"{name} can be started.")
            yield from (Finding("agent", "note", remark) for remark in login_remarks({name: found}))
    if not config.agent:
        says = f"None is configured; on PATH: {', '.join(agents_on_path()) or 'none that unstuck knows'}."
        yield Finding("agent", "note", says, "Name one with --agent, or as `agent` in unstuck.toml.")


def _checks(repository: Repository, config: Config, missing: Mapping[str, str] | None) -> Iterator[Finding]:
    """Say of every check whether its programs are there, as far as somebody looked; what else could hold, and what CI runs."""
    for kind, command in config.checks.items():
        if missing and command in missing:
            says = f"{kind}: {command} ({missing[command]} is not where checks run)"
            yield Finding("check", "bad", says, "Let `setup` in [workspace] install it, or install it for yourself.")
        else:
            where = "not looked at" if missing is None else "found where checks run"
            yield Finding("check", "ok", f"{kind}: {command} ({where})")
    if not config.checks:
        listed = "; ".join(f"`{check.command}`" for check in detect(repository.root).checks)
        how = "Name them under [checks]." if has_config(repository.root) else "Write them down with `unstuck init`."
        remedy = f"{how} Found here: {listed}" if listed else "Name them under [checks] in unstuck.toml."
        says = "No checks of the repository are configured; only a task's own Verify lines count."
        yield Finding("check", "note", says, remedy)
    for says, remedy in differences(config.checks.items(), ci_commands(repository.root)) if config.checks else ():
        yield Finding("ci", "note", says, remedy)


def _workspace(repository: Repository, config: Config) -> Iterator[Finding]:
    for linked, names in ((False, config.workspace.copy), (True, config.workspace.link)):
        for trap in unsafe_copies(repository.root, names, linked=linked):
            yield Finding("workspace", "note", trap.message, way_around(repository.root, trap))


def _sandbox(repository: Repository, config: Config) -> Iterator[Finding]:
    wanted, missing = config.sandbox, sandbox_problem()
    if wanted.mode == "none" and wanted.checks != "bwrap":
        yield Finding("sandbox", "note", "None is wanted: a session can write whatever you can. What changes is told.")
    elif missing:
        says = f"There is none: {missing}. A session has a clone of its own; what it does elsewhere is told, not prevented."
        grade: Grade = "bad" if "bwrap" in (wanted.mode, wanted.checks) else "note"
        remedy = "Install bubblewrap (Debian: apt install bubblewrap), and allow user namespaces."
        yield Finding("sandbox", grade, says, remedy)
    else:
        who = "All sessions" if wanted.mode == "bwrap" else "Sessions of agents that say what they write"
        checks = "checks as well" if "check" in sandboxed_purposes(config) else "checks not"
        says = f"{who} see the machine read-only, and nothing of your checkout, journal and credentials; {checks}."
        problems = sandbox_start_problems(config, repository, _configured_agents(repository, config))
        for name, problem in problems.items():
            yield Finding("sandbox", "bad", f"The sandbox of {name} does not start: {problem.rstrip('.')}.", WAY_ON)
        if not problems:
            yield Finding("sandbox", "ok", says)


def _configured_agents(repository: Repository, config: Config) -> Iterator[Agent]:
    """Yield the agents that runs use here, without those that cannot be started."""
    for name in config.agent or first_agent_on_path(config):
        with suppress(UnstuckError):
            yield find_agent(name, config, repository.root)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")


def _missing_where_checks_run(
    repository: Repository, config: Config, run_stop: RunStop, seen: Callable[[str, str], None]
) -> dict[str, str]:
    """Set a slot up as a run does, and ask there for the programs of every check; return what each would not find."""
    lines = tuple(config.checks.values())
    if not lines and not config.workspace.setup:
        return {}
    with first_checking_slot(repository) as slot:
        context = separate_check_context(repository, config, slot, run_stop, seen)
        CleanCheckout(context=context, name=NAME, slot=slot).stand(repository.head)
        return {line: word for line in lines for word in islice(_not_there(context, slot, line), 1)}


def _not_there(context: CheckContext, slot: int, line: str) -> Iterator[str]:
    """Yield what a line calls and the slot has not; a folder that it changes into is changed into."""
    before = ""
    for called in map(words, parts(line)):
        if called[:1] == ["cd"]:
            before += f"{shlex.join(called)} && "
        elif called and called[0] not in BUILTINS:
            ask = f"{before}command -v -- {shlex.quote(called[0])}"
            module = called[2] if called[1:2] == ["-m"] and len(called) > 2 else ""  # noqa: PLR2004  # python -m MODULE
            if not _holds(context, slot, ask):
                yield called[0]
            elif module:
                finds = FINDS.format(module.partition(".")[0])
                if not _holds(context, slot, f"{before}{shlex.quote(called[0])} -c {shlex.quote(finds)}"):
                    yield f"the module {module} of {called[0]}"


def _holds(context: CheckContext, slot: int, line: str) -> bool:
    return context.processes.run(context.command(NAME, line, slot, timeout=SECONDS), stop=context.stop).ok
