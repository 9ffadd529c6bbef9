"""What a user can set, as frozen values; what each key means stands in `docs/reference/configuration.md`, which tests hold against this."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyConfig:
    """How results are checked."""

    unverified: Literal["ask", "land"] = "ask"
    timeout: float = 900.0
    timeouts: Mapping[CheckKind, float] = field(default_factory=dict)
    reruns: int = 2
    cache: bool = True
    detect: bool = True
    scope: Literal["warn", "reject", "off"] = "warn"
    tampered: Literal["reject", "ask", "warn", "off"] = "reject"
    doubtful: Literal["reject", "ask", "warn", "off"] = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """Seconds that a session may take; 0 is no limit."""

    first_output: float = 180.0
    silence: float = 1200.0
    wall_clock: float | None = None
    drain: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """What sessions, checks and set-up commands can reach, where bubblewrap is there."""

    mode: Literal["auto", "bwrap", "none"] = "auto"
    checks: Literal["auto", "bwrap", "none"] = "auto"
    check_network: bool = True
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GitConfig:
    sign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediesConfig:
    """What tool-level recovery may do, and would rather do."""

    allow: Risk = "safe"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FixesConfig:
    """How fix tasks are written."""

    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookConfig:
    """What a hook inside an agent does besides telling ways out."""

    guard: bool = True
    protected: tuple[str, ...] = ()
    stop: bool = True
    checks: tuple[str, ...] = ()
    seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Where a fleet meets: the store of its journals and jobs, and the remote that its work goes through."""

    url: str = ""
    remote: str = "origin"
    labels: tuple[str, ...] = ()
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyConfig:
    """Whom to tell of what: each a command, an Apprise address, or a list of these."""

    stuck: str | tuple[str, ...] = ""
    ended: str | tuple[str, ...] = ""
    waiting: str | tuple[str, ...] = ""
    asks: str | tuple[str, ...] = ""
    repeat_hours: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelConfig:
    """Spans and metrics for OpenTelemetry."""

    endpoint: str = ""


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
    parallel: int = 4
    agents: Mapping[str, AgentConfig] = field(default_factory=dict)
    checks: Mapping[Literal["test", "lint", "types", "format", "build"], str] = field(default_factory=dict)
    profile: str = "adaptive"
    profiles: Mapping[str, Any] = field(default_factory=dict)
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
