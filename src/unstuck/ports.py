"""The edges of the system, as protocols. The engine knows these; adapters implement them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from unstuck.core.attempt import Ended, Outcome
from unstuck.core.diagnosis import Diagnosis
from unstuck.core.event import Entry, Event, Request
from unstuck.core.evidence import Evidence, Hit
from unstuck.core.plan import Plan
from unstuck.core.state import RunState


class Clock(Protocol):
    """Time, so that tests need none."""

    def now(self) -> float:
        """Return seconds since 1970, UTC."""
        ...

    def wait(self, seconds: float) -> None: ...


class Stop(Protocol):
    """Whether, and by when, running work must end."""

    def deadline(self) -> float | None:
        """Return the `time.monotonic()` at which running processes are ended; None while nobody asked."""
        ...


class Scanner(Protocol):
    """Finds which classification rules fire on which lines."""

    def scan(self, lines: Sequence[str]) -> tuple[Hit, ...]:
        """Return the hits in the order of the lines."""
        ...


class Judge(Protocol):
    """Takes a closer look at the output of a command that failed."""

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:
        """Say what went wrong, or None if nothing did."""
        ...

    def resets_at(self, found: Diagnosis, now: float) -> float | None:
        """Return when the limit ends that was found, in seconds since 1970, where the provider says so."""
        ...


class NoJudge:
    """Has no opinion: what the engine itself knows must do."""

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:  # noqa: ARG002  # the port's signature
        return None

    def resets_at(self, found: Diagnosis, now: float) -> float | None:  # noqa: ARG002  # nothing was found
        return None


# --- processes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Ceilings in seconds; None is no limit."""

    first_output: float | None = None
    silence: float | None = None
    wall_clock: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to run: arguments, never a shell line."""

    argv: tuple[str, ...]
    cwd: Path
    log: Path
    """Both streams are appended here, redacted, bounded."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set on top of the supervisor's own environment."""
    stdin: bytes = b""
    limits: TimeLimits = TimeLimits()
    transcript: Path | None = None
    """Where stdout is kept, too; stderr beside it with `.err` at the end of the name."""


class Processes(Protocol):
    """Runs commands so that nothing of them is left when `run` returns, however they end."""

    def run(self, command: Command, *, stop: Stop, seen: Callable[[str], None] | None = None) -> Ended:
        """Run to the end. `seen` is told the last line printed, a few times a second at most."""
        ...

    def end_leftovers(self, marker: str) -> int:
        """End every process whose environment holds `marker` (``NAME=value``); return how many there were."""
        ...


# --- git -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Work that was put away before something destructive: tracked, untracked and index."""

    ref: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Exactly what would land: git's id of it, and what was left out of it, as sentences."""

    id: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two lines of work that cannot be merged by machine."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What to land: a verified tree, the commit it was verified on, and the commit's text and time."""

    tree: str
    base: str
    message: str
    at: float


class Workspace(Protocol):
    """The git side of one run. Every method may be repeated after a crash."""

    def open_branch(self, base: str) -> None:
        """Create the run's branch at `base` unless it exists."""
        ...

    def tip(self) -> str:
        """Return the commit at the end of the run's branch."""
        ...

    def prepare(self, slot: int, base: str, tree: str | None = None) -> Path:
        """Make the slot's worktree hold `base`, with `tree`'s files on top when given; return its path.

        Repairs a worktree that a crash left half made. What the worktree held before is not asked for:
        whoever calls this has taken a snapshot.
        """
        ...

    def path(self, slot: int) -> Path: ...

    def present(self, slot: int) -> bool:
        """Whether the slot's worktree is still there: a person may have removed it."""
        ...

    def tree(self, slot: int, base: str) -> Tree:
        """Write the slot's files as a git tree: what would land on `base`."""
        ...

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        """Put the slot's work away under `refs/unstuck/snapshots/<run>/<name>`; None if there is nothing to save."""
        ...

    def changed(self, base: str, tree: str) -> tuple[str, ...]:
        """List the paths in which the two differ."""
        ...

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        """Merge the landing's tree onto `tip`; return the merged tree."""
        ...

    def land(self, landing: Landing) -> str | None:
        """Put a commit on the run's branch by compare-and-swap and return it; None if the branch has moved.

        Landing the same thing twice returns the same commit and adds nothing.
        """
        ...

    def history(self, commit: str, base: str) -> tuple[str, ...]:
        """List the commits from `base` up to this one, newest first; `base` itself is the last."""
        ...

    def move_branch(self, commit: str, *, expected: str) -> None:
        """Set the run's branch by compare-and-swap."""
        ...

    def bring_in(self, commit: str, *, message: str, at: float) -> str | Conflict:
        """Merge a commit of the user's into the run's branch; return the new tip."""
        ...

    def keep(self, name: str, commit: str) -> Snapshot:
        """Keep a commit alive under a snapshot ref."""
        ...

    def watch(self) -> "Watch":
        """Remember what worktrees share with the user's repository: refs, stash, config, hooks."""
        ...


class Watch(Protocol):
    def restore(self) -> tuple[str, ...]:
        """Put back what was changed since, keeping a copy; return what was done as sentences."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyHome:
    """The user's branch has everything."""

    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForward:
    """The user's branch can simply move on to `commit`."""

    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """The user's branch moved; `commit` joins both. Its tree must be verified before it is applied."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPossible:
    """Why the branch stays where it is, as a sentence, and the command that brings it home by hand."""

    reason: str
    command: str
    files: tuple[str, ...] = ()


WayHome = AlreadyHome | FastForward | Merge | NotPossible


class Home(Protocol):
    """The user's branch, which the run's branch comes home to at the end."""

    def plan_merge(self, *, message: str, at: float) -> WayHome:
        """Say what would be done; change nothing of the user's."""
        ...

    def apply_merge(self, commit: str) -> AlreadyHome | NotPossible:
        """Move the user's branch and files on to a descendant; refuse rather than overwrite."""
        ...

    def commit_plan(self, paths: Sequence[str], message: str) -> str | NotPossible | None:
        """Commit the plan's own changes and nothing else; None if there are none."""
        ...

    def write_script(self) -> Path:
        """Write the script that makes the landed commits when the user runs it."""
        ...


# --- agents, plans, journal ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """All that an agent needs to start one session."""

    run: str
    task: str
    attempt: int
    session: int
    slot: int
    worktree: Path
    brief: str
    brief_file: Path
    log: Path
    transcript: Path
    resume: str = ""
    """The agent's own id of the session that this one continues."""


class Agent(Protocol):
    @property
    def name(self) -> str: ...

    def command(self, assignment: Assignment) -> Command:
        """Return the process that does the work."""
        ...

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        """Read what the agent says of its work and of its end. May be asked again after a crash."""
        ...


class PlanFile(Protocol):
    """The user's plan on disk: read it, and change ticks in place."""

    @property
    def path(self) -> Path: ...

    def read(self) -> Plan: ...

    def tick(self, done: Mapping[str, bool]) -> bool:
        """Tick or un-tick tasks in place, atomically; return whether anything changed."""
        ...


class Journal(Protocol):
    """The append-only list of events, and the requests that any process may leave beside it."""

    def append(self, event: Event) -> Entry: ...

    def read(self, run: str, after: int = 0) -> Iterator[Entry]: ...

    def requests(self, after: int) -> Sequence[Request]: ...

    def beat(self) -> None:
        """Renew the claim's heartbeat; raise OwnershipLost if it is no longer ours."""
        ...


class Desk(Protocol):
    """Our own files."""

    def put(self, path: Path, text: str) -> None:
        """Replace a file atomically."""
        ...

    def append(self, path: Path, text: str) -> None: ...

    def read(self, path: Path) -> str | None:
        """Return the text, or None if there is no such file."""
        ...


class Projections(Protocol):
    """The files that people read: made from the state, never read back except for a person's edits."""

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring the files of the changed tasks, and what follows from all of them, up to date."""
        ...

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
        """Yield (task, what was done) for every task that a person set back by editing our files."""
        ...
