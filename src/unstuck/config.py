"""What a user can set, as frozen values. Reading them from files is an adapter's work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unstuck.agents import End
from unstuck.plans import CheckKind
from unstuck.remedies import Risk

Capability = Literal["resume", "steer", "cost", "usage", "exit_codes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """One agent: a command line or a script of the user's own, or a coding agent in the shape of the catalogue's manifests."""

    command: str = ""
    """A command line, split as a shell would and run without one."""
    script: str = ""
    """A script for the scripted agent."""
    program: str = ""
    """What is looked for on PATH."""
    arguments: tuple[str, ...] = ()
    """What makes it work without a terminal and print its output format."""
    permission: tuple[str, ...] | None = None
    """What lets it edit and run commands without asking; an empty list means nothing does."""
    permission_as_root: tuple[str, ...] = ()
    """The same where the usual way is refused to root."""
    prompt: tuple[str, ...] = ()
    """How the brief goes in, with {brief} in place of it; without any it comes on stdin."""
    resume: tuple[str, ...] = ()
    """What continues a session, with {session} in place of its id."""
    steer: tuple[str, ...] = ()
    """What lets it take messages on stdin while it works, one JSON object per line."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Set for it where the user has not set it: among others what turns its own retries down."""
    output: str = "plain"
    """Its output format: the name of a reader."""
    exit_codes: Mapping[int, End] = field(default_factory=dict)
    """What an exit code means where the output tells nothing."""
    quiet: bool = False
    """It prints nothing until it is done, so its silence means nothing."""
    version: tuple[str, ...] = ("--version",)
    login_variables: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    """Signs of a login: variables, and files below the home directory. They are only looked for, never read."""
    login: str = ""
    """How a person logs it in."""
    capabilities: tuple[Capability, ...] = ()
    writes: tuple[str, ...] = ()
    """What it writes outside of its slot: paths below the home directory, a folder with a slash at its end, or `$VARIABLE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceConfig:
    """What a fresh worktree needs besides git's files."""

    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 1800.0
    slots: str = ""
    """The folder that slots are made in; empty for one in the user's state folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyConfig:
    """How results are checked."""

    unverified: Literal["ask", "land"] = "ask"
    timeout: float = 900.0
    """For a task's own Verify commands."""
    timeouts: Mapping[CheckKind, float] = field(default_factory=dict)
    """For the repository's checks, by kind; where none is given, ours."""
    reruns: int = 2
    """How often a failing test is run again, to tell flaky from broken."""
    cache: bool = True
    """A check that passed on the very same tree with the same tools is not run again."""
    detect: bool = True
    """Without a configuration, use the checks that fit the repository."""
    scope: Literal["warn", "reject", "off"] = "warn"
    """Files that a task touches outside of those that it names."""
    tampered: Literal["reject", "ask", "warn", "off"] = "reject"
    """A change that makes the checks mean less."""
    doubtful: Literal["reject", "ask", "warn", "off"] = "ask"
    """A change that may make the checks mean less, or may be meant so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """Seconds that a session may take; 0 is no limit."""

    first_output: float = 180.0
    silence: float = 1200.0
    wall_clock: float | None = None
    """Where nobody says: the profile's, else two hours."""
    drain: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """What sessions, checks and set-up commands can reach, where bubblewrap is there."""

    mode: Literal["auto", "bwrap", "none"] = "auto"
    """`auto`: sessions of agents that say what they write, where there is a sandbox; `bwrap`: all, or no run; `none`: none."""
    checks: Literal["auto", "bwrap", "none"] = "auto"
    """The same for checks and set-up commands; `auto` puts them into a sandbox where `mode` is `bwrap`."""
    check_network: bool = True
    """Whether checks in a sandbox have the network; set-up commands always have."""
    write: tuple[str, ...] = ()
    """What may be written besides: paths, absolute or below the home directory."""
    read: tuple[str, ...] = ()
    """What is there to read although it lies in the checkout, a temporary folder or among credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitConfig:
    sign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediesConfig:
    """What tool-level recovery may do, and would rather do."""

    allow: Risk = "safe"
    """The gravest risk that is run without asking."""
    never: tuple[str, ...] = ()
    never_sudo: bool = False
    never_install: bool = False
    prefer_mirrors: bool = False
    mirrors: Mapping[str, str] = field(default_factory=dict)
    allowed_hosts: tuple[str, ...] = ()
    allowed_folders: tuple[str, ...] = ()
    sandbox: str = ".unstuck/sandbox"
    longest_wait: float = 900.0
    timeout: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveConfig:
    """What a person wants to approve."""

    before: tuple[Literal["plan", "land"], ...] = ()
    """Before the plan is begun, and before work that passed all checks lands: `unstuck approve`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixesConfig:
    """How fix tasks are written."""

    scope: str = ""
    """The scope of their commits; empty takes that of the original's commit. Smart-ralph's example has `recovery`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookConfig:
    """What a hook inside an agent does besides telling ways out."""

    guard: bool = True
    """Refuse calls that are known to destroy work."""
    protected: tuple[str, ...] = ()
    """Files that the agent may not change, as patterns from the top of the repository."""
    stop: bool = True
    """Hold what the agent says at its end against what is there."""
    checks: tuple[str, ...] = ()
    """Quick commands that must hold when it stops; without any, the gates in `[checks]`."""
    seconds: float = 120.0
    """For all of them together; what is not over then says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Where a fleet meets: the store of its journals and jobs, and the remote that its work goes through."""

    url: str = ""
    """A Postgres, without a password: `postgresql://HOST/NAME`. Empty: the journal is a file in the repository, and all work is done here."""
    remote: str = "origin"
    """The git remote that all machines share: a name, a URL or a path."""
    labels: tuple[str, ...] = ()
    """What a worker must have to get work of a run here."""
    priority: int = 0
    """Runs with a higher one get workers first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyConfig:
    """Whom to tell of what: each a command, an Apprise address, or a list of these."""

    stuck: str | tuple[str, ...] = ""
    """A task waits for a person."""
    ended: str | tuple[str, ...] = ""
    """The run has ended."""
    waiting: str | tuple[str, ...] = ""
    """The run waits for longer than a minute, for a provider's limit or another fault to pass."""
    asks: str | tuple[str, ...] = ""
    """An agent asks something, or work or the plan is to be approved."""
    repeat_hours: float = 0.0
    """Tell what still stands again after so many hours; 0 tells every cause once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelConfig:
    """Spans and metrics for OpenTelemetry."""

    endpoint: str = ""
    """Where they go, by OTLP over HTTP; empty: nowhere."""


WALL_CLOCK = 7200.0
GATE_TIMEOUTS: Mapping[CheckKind, float] = {
    "lint": 300.0,
    "format": 120.0,
    "types": 600.0,
    "test": 900.0,
    "build": 900.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything in `unstuck.toml`, or `[tool.unstuck]` in `pyproject.toml`."""

    agent: tuple[str, ...] = ()
    """Agents to use, in order, where the command line names none."""
    parallel: int = 4
    agents: Mapping[str, AgentConfig] = field(default_factory=dict)
    checks: Mapping[Literal["test", "lint", "types", "format", "build"], str] = field(default_factory=dict)
    """The repository's gates: they must hold after every task."""
    profile: str = "adaptive"
    """The profile to use, where the command line names none."""
    profiles: Mapping[str, Any] = field(default_factory=dict)
    """Profiles of your own, in the shape of the catalog's; `like` names one to begin with."""
    workspace: WorkspaceConfig = WorkspaceConfig()
    verify: VerifyConfig = VerifyConfig()
    limits: LimitsConfig = LimitsConfig()
    sandbox: SandboxConfig = SandboxConfig()
    git: GitConfig = GitConfig()
    remedies: RemediesConfig = RemediesConfig()
    fixes: FixesConfig = FixesConfig()
    approve: ApproveConfig = ApproveConfig()
    hook: HookConfig = HookConfig()
    store: StoreConfig = StoreConfig()
    notify: NotifyConfig = NotifyConfig()
    otel: OtelConfig = OtelConfig()
