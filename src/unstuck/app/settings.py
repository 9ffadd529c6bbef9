"""Edge: What a run here goes by: the plan, the profiles, the gates, the sandbox, the configuration. Nothing of a run itself is loaded for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from unstuck.app.config_file import has_config, meanings, read_config, readable_config
from unstuck.git.repository import Repository, find_repository, slots_folder
from unstuck.model.config import GATE_TIMEOUTS, Config
from unstuck.model.errors import BadUsage, Unavailable, UnstuckError
from unstuck.model.plan import Plan
from unstuck.model.verdict import Check
from unstuck.plans.plan_file import open_plan
from unstuck.plans.review import with_review_concerns
from unstuck.toolchain.detection import detect, is_present

if TYPE_CHECKING:
    from unstuck.agents.agent_set import Agent
    from unstuck.model.event import Options, Settings
    from unstuck.policy.profiles import Policy
    from unstuck.process.command import Command, Purpose
    from unstuck.process.sandbox import Sandbox


DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key."""

    key: str
    value: Any
    default: Any
    source: str
    """The file that says so, or `default`."""


def read_plan(path: Path, *, plan_format: str | None = None) -> Plan:
    """Read a plan and look it over; its problems and concerns are in it."""
    return with_review_concerns(open_plan(path, plan_format).read(), gates=len(gates(Path.cwd())))


def profiles(cwd: Path) -> "dict[str, Policy]":
    """Return the profiles that a run here could use: the catalog's, and the configuration's own."""
    from unstuck.policy import profiles as decide_policy

    return decide_policy.profiles(_own_profiles(config_here(cwd)))


def _own_profiles(config: Config) -> dict[str, dict[str, Any]]:
    return {name: profile.as_table() for name, profile in config.profiles.items()}


def config_here(cwd: Path) -> Config:
    """Return the configuration; outside of a repository, the defaults."""
    try:
        return read_config(find_repository(cwd).root)
    except Unavailable:
        return Config()


def gates(cwd: Path, wanted: Sequence[Check] = ()) -> tuple[Check, ...]:
    """Return the checks that hold after every task: the repository's, and those that a plan wants besides."""
    try:
        root = find_repository(cwd).root
    except Unavailable:
        return tuple(wanted)
    return gates_of(read_config(root), root, wanted)


def gates_of(config: Config, root: Path, wanted: Sequence[Check] = ()) -> tuple[Check, ...]:
    """Return the repository's gates, and the plan's where it has none of a kind, each with its own time limit."""
    asked = tuple(Check(command=line, kind=kind) for kind, line in config.checks.items())
    asked += tuple(check for check in wanted if check.kind not in config.checks)
    if not asked and config.verify.detect and not has_config(root):
        asked = _found_checks(root)
    limits = {**GATE_TIMEOUTS, **config.verify.timeouts}
    return tuple(replace(check, timeout=limits.get(check.kind, config.verify.timeout)) for check in asked)


def note_found(checks: Sequence[Check]) -> Iterator[str]:
    """Say which gates nobody asked for."""
    if found := [f"`{check.command}`" for check in checks if check.detected]:
        yield f"There is no configuration, so the checks are those that fit the project: {'; '.join(found)}"


@lru_cache(maxsize=8)
def _found_checks(root: Path) -> tuple[Check, ...]:
    return tuple(
        replace(check, detected=True) for check in detect(root, as_it_is=True).checks if is_present(check, root)
    )


def sandbox_of(config: Config, repository: Repository) -> "Sandbox | None":
    """Return the sandbox, or None where it is not used; raise if it is required and missing."""
    from unstuck.process.sandbox import Sandbox, sandbox_problem

    purposes, wanted = sandboxed_purposes(config), config.sandbox
    if not purposes or (missing := sandbox_problem()):
        if purposes and "bwrap" in (wanted.mode, wanted.checks):
            raise Unavailable(
                f"[sandbox] asks for bubblewrap, and {missing}.",
                hint='Install it (Debian: apt install bubblewrap), or set mode = "auto" to go on without one.',
            )
        return None
    return Sandbox(
        purposes=purposes,
        only_named=wanted.mode == "auto",
        offline=frozenset() if wanted.check_network else frozenset({"check"}),
        root=repository.root,
        common_dir=repository.common_dir,
        slots=slots_folder(repository, config.workspace.slots),
        linked=tuple(repository.root / name for name in config.workspace.link),
        write=wanted.write,
        read=tuple(Path(name).expanduser() for name in wanted.read),
    )


def sandbox_for_folder(cwd: Path) -> "Sandbox | None":
    """Return the sandbox that the repository's configuration requires, or None outside a repository."""
    try:
        repository = find_repository(cwd)
    except (BadUsage, Unavailable):
        return None
    return sandbox_of(read_config(repository.root), repository)


def missing_sandbox_notes(config: Config, named: Iterable[str]) -> tuple[str, ...]:
    """Say that agents which could work in a sandbox have none."""
    from unstuck.process.sandbox import sandbox_problem

    names = [name for name in named if _is_named(config, name)]
    if not names or config.sandbox.mode == "none" or not (missing := sandbox_problem()):
        return ()
    return (f"{', '.join(names)} works without a sandbox, in a clone of its own: {missing}. See `unstuck doctor`.",)


def sandbox_start_problems(config: Config, repository: Repository, agents: "Iterable[Agent]") -> dict[str, str]:
    """Return for each agent whose sandbox does not start the reason, by the agent's name.

    No agent is run. An empty folder stands for the slot.
    """
    sandbox = sandbox_of(config, repository)
    if sandbox is None:
        return {}
    with _trial_slot(sandbox.slots) as slot:
        if slot is None:
            return {}
        problems = {agent.name: sandbox.start_problem(_trial_command(agent, slot), "session") for agent in agents}
    return {name: problem for name, problem in problems.items() if problem}


def require_sandbox_starts(config: Config, repository: Repository, agents: "Iterable[Agent]") -> None:
    """Raise Unavailable if the sandbox of an agent does not start: every session of a run would fail."""
    from unstuck.process.sandbox import WAY_ON

    for name, problem in sandbox_start_problems(config, repository, agents).items():
        raise Unavailable(f"The sandbox of {name} does not start: {problem.rstrip('.')}.", hint=WAY_ON)


@contextmanager
def _trial_slot(slots: Path) -> Iterator[Path | None]:
    """Yield an empty folder beside the slots and remove it afterwards, or None where no folder can be made there."""
    try:
        slots.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix="trial-", dir=slots))
    except OSError:  # the run and the doctor report this themselves, with the way on
        yield None
        return
    try:
        yield folder
    finally:
        folder.rmdir()


def _trial_command(agent: "Agent", slot: Path) -> "Command":
    """Return the command of a session without a task."""
    from unstuck.agents.agent_set import Assignment

    file = slot / "brief.md"
    assignment = Assignment(
        run="",
        task="",
        attempt=1,
        session=1,
        slot=0,
        worktree=slot,
        brief="",
        brief_file=file,
        log=file,
        transcript=file,
    )
    return agent.command(assignment)


def works_inside(config: Config, agent: str) -> bool:
    """Whether the sessions of an agent are in a sandbox on this machine."""
    from unstuck.process.sandbox import sandbox_problem

    mode = config.sandbox.mode
    return not sandbox_problem() and (mode == "bwrap" or (mode == "auto" and _is_named(config, agent)))


def _is_named(config: Config, agent: str) -> bool:
    """Whether the agent says what it writes."""
    from unstuck.agents.manifests import manifest

    known = manifest(agent, config.agents)
    return known is not None and bool(known.writes)


def sandboxed_purposes(config: Config) -> "frozenset[Purpose]":
    """Return what the configuration wants in a sandbox."""
    mode, checks = config.sandbox.mode, config.sandbox.checks
    around_checks = checks == "bwrap" or (checks == "auto" and mode == "bwrap")
    sessions: frozenset[Purpose] = frozenset() if mode == "none" else frozenset({"session"})
    return sessions | (frozenset({"check", "setup"}) if around_checks else frozenset())


def resolved(options: "Options", config: Config, asked: "Settings") -> "Options":
    """Write down what the profile says where the user said nothing; a profile that does not exist is refused here."""
    policy = policy_of(options, config, asked)
    return replace(
        options,
        on_stuck=policy.on_stuck,
        max_attempts=policy.limits.attempts,
        siblings_first=policy.siblings_first,
        approve=config.approve.before,
    )


def policy_of(options: "Options", config: Config, asked: "Settings") -> "Policy":
    """Return the run's profile with what the user said about it, and the plan's own state file."""
    from unstuck.policy.profiles import profile, with_limits

    policy = profile(options.profile, _own_profiles(config))
    limits = replace(policy.limits, **asked.limits)
    if options.max_attempts:
        limits = replace(limits, attempts=options.max_attempts)
    return replace(
        with_limits(policy, limits),
        on_stuck=options.on_stuck or policy.on_stuck,
        land_unverified=config.verify.unverified == "land",
        quota=options.quota,
    )


# --- every key of the configuration: its value, its default, where the value comes from --------------


def settings_in(cwd: Path) -> tuple[tuple[Setting, ...], BadUsage | None]:
    """Return every key of the configuration that holds here, without what is wrong, and that as a run would tell it."""
    found = readable_config(_root(cwd))
    config, content = found.config, found.content
    return tuple(
        Setting(key=key, value=value, default=default, source=found.source if _stands_in(content, key) else DEFAULT)
        for key, value, default in (*_keys(config, Config()), *_agents(config, content))
    ), found.refused


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of `unstuck.toml`: unknown keys are refused, as a run refuses them."""
    from pydantic import TypeAdapter  # heavy, and only for this

    schema = TypeAdapter(Config).json_schema()
    shapes = {"Config": schema, **schema.get("$defs", {})}
    for shape in shapes.values():
        if "properties" in shape:
            shape["additionalProperties"] = False
    for key, meaning in meanings().items():
        *above, last = key.split(".")
        section = shapes.get(f"{above[0].capitalize()}Config", {}) if above else schema
        if last in section.get("properties", {}):
            section["properties"][last]["description"] = meaning
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "unstuck.toml"}


def _root(cwd: Path) -> Path:
    try:
        return find_repository(cwd).root
    except UnstuckError:  # outside of a repository the defaults hold, or the file that is here
        return cwd


def _keys(value: Any, default: Any, above: str = "") -> Iterator[tuple[str, Any, Any]]:
    for field in fields(value):
        key, part, ours = f"{above}{field.name}", getattr(value, field.name), getattr(default, field.name)
        if is_dataclass(part):
            yield from _keys(part, ours, f"{key}.")
        elif key == "agents" and part:
            continue  # each of them is told by itself
        elif key == "profiles" and part:
            yield from ((f"{key}.{name}", profile.as_table(), None) for name, profile in part.items())
        elif isinstance(part, Mapping) and part:
            yield from ((f"{key}.{name}", one, ours.get(name)) for name, one in part.items())
        else:
            yield key, part, ours


def _agents(config: Config, content: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what is said of agents; what a known one has by itself is its default."""
    from unstuck.agents.manifests import manifest

    for name, agent in config.agents.items():
        known = manifest(name, {})
        ours, theirs = asdict(known) if known else {}, asdict(agent)
        for key in content.get("agents", {}).get(name, {}):
            yield f"agents.{name}.{key}", theirs[key], ours.get(key)


def _stands_in(content: Mapping[str, Any], key: str) -> bool:
    place: Any = content
    for part in key.split("."):
        if not isinstance(place, Mapping) or part not in place:
            return False
        place = place[part]
    return True
