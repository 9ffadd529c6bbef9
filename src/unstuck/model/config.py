"""Define the settings of a user as frozen values.

The pages `configuration` and `agents` in `docs/reference/` explain each key. Tests compare them with these classes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from unstuck.model.outcome import End
from unstuck.model.verdict import CheckKind

Capability = Literal["resume", "steer", "cost", "usage", "exit_codes"]
OnStuck = Literal["skip", "halt"]
View = Literal["kind", "type", "phase_type"]
Charges = Literal["blame", "all"]
Classifier = Literal["unstuck", "auto-claude", "seed-002"]
"""The classifier of failures: the rules of unstuck, or Auto-Claude's word lists under either of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """One agent: a command line, a script, or a coding agent described like those of the catalogue."""

    command: str = ""
    script: str = ""
    program: str = ""
    arguments: tuple[str, ...] = ()
    permission: tuple[str, ...] | None = None
    permission_as_root: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    steer: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str = "plain"
    exit_codes: Mapping[int, End] = field(default_factory=dict)
    quiet: bool = False
    version: tuple[str, ...] = ("--version",)
    login_variables: tuple[str, ...] = ()
    login_files: tuple[str, ...] = ()
    login: str = ""
    capabilities: tuple[Capability, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceConfig:
    """The files and commands that a fresh worktree needs."""

    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 1800.0
    slots: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyConfig:
    """The settings of verification."""

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
    """Seconds that a session may take. 0 means no limit."""

    first_output: float = 180.0
    silence: float = 1200.0
    wall_clock: float | None = None
    drain: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """The files and network that sessions, checks and set-up commands can use under bubblewrap."""

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
    """The permissions and preferences of tool-level recovery."""

    allow: Literal["safe", "caution", "privileged", "destructive"] = "safe"
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
    """The steps that a person wants to approve."""

    before: tuple[Literal["plan", "land"], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FixesConfig:
    """The settings of fix tasks."""

    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookConfig:
    """The duties of a hook inside an agent, in addition to its advice."""

    guard: bool = True
    protected: tuple[str, ...] = ()
    stop: bool = True
    checks: tuple[str, ...] = ()
    seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """The store of a fleet's journals and jobs, and the remote that its work goes through."""

    url: str = ""
    remote: str = "origin"
    labels: tuple[str, ...] = ()
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyConfig:
    """The receivers of each notification: a command, an Apprise address, or a list of these."""

    stuck: str | tuple[str, ...] = ""
    ended: str | tuple[str, ...] = ""
    waiting: str | tuple[str, ...] = ""
    asks: str | tuple[str, ...] = ""
    repeat_hours: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelConfig:
    """Spans and metrics for OpenTelemetry."""

    endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderConfig:
    """One ladder of a profile: the failures that it is for, and its rungs as text."""

    of: tuple[str, ...] = ()
    rungs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLimitsConfig:
    """The limits that a profile sets. None keeps the limit of the profile below it."""

    attempts: int | None = None
    sessions: int | None = None
    rollbacks: int | None = None
    fixes: int | None = None
    fix_depth: int | None = None
    fixes_per_root: int | None = None
    modifications: int | None = None
    modification_depth: int | None = None
    executions: int | None = None
    executions_per_task: int | None = None
    executions_at_least: int | None = None
    wall_clock: float | None = None
    first_wait: float | None = None
    longest_wait: float | None = None
    reset_margin: float | None = None
    check_waits: int | None = None
    first_check_wait: float | None = None
    longest_check_wait: float | None = None
    task_seconds: float | None = None
    task_cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig:
    """A profile of the user. None leaves a value as the profile named by `like` has it."""

    like: str | None = None
    about: str | None = None
    view: View | None = None
    classifier: Classifier | None = None
    charges: Charges | None = None
    on_stuck: OnStuck | None = None
    green_base: bool | None = None
    siblings_first: bool | None = None
    spent: str | None = None
    ladder: tuple[LadderConfig, ...] | None = None
    limits: ProfileLimitsConfig = ProfileLimitsConfig()

    def as_table(self) -> dict[str, Any]:
        """Return only what the user wrote, in the form of the catalogue."""
        table = {key: value for key, value in asdict(self).items() if value is not None}
        table["limits"] = {key: value for key, value in table["limits"].items() if value is not None}
        if not table["limits"]:
            del table["limits"]
        return table


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
    profiles: Mapping[str, ProfileConfig] = field(default_factory=dict)
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


Quota = Literal["wait", "switch", "exit"]
"""The reaction to a provider's limit: wait for its end, switch to another agent, or end the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Ceilings in seconds. None means no limit."""

    first_output: float | None = None
    silence: float | None = None
    wall_clock: float | None = None
