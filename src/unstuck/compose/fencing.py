"""Edge: Say what sandbox a run has: what the configuration asks for, on this machine."""

from collections.abc import Iterable
from pathlib import Path

from unstuck.agents import manifest
from unstuck.config import Config
from unstuck.errors import Unavailable
from unstuck.git import Repository, slots_folder
from unstuck.ports import Fence, NoFence, Purpose
from unstuck.process import Bubblewrap, trouble


def fence_of(config: Config, repository: Repository) -> Fence:
    """Return the sandbox; refuse to begin where one is asked for that is not there."""
    purposes, wanted = fenced(config), config.sandbox
    if not purposes or (missing := trouble()):
        if purposes and "bwrap" in (wanted.mode, wanted.checks):
            raise Unavailable(
                f"[sandbox] asks for bubblewrap, and {missing}.",
                hint='Install it (Debian: apt install bubblewrap), or set mode = "auto" to go on without one.',
            )
        return NoFence()
    return Bubblewrap(
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


def without_fence(config: Config, agents: Iterable[str]) -> tuple[str, ...]:
    """Say that agents which could work in a sandbox have none."""
    names = [name for name in agents if _is_named(config, name)]
    if not names or config.sandbox.mode == "none" or not (missing := trouble()):
        return ()
    return (f"{', '.join(names)} works without a sandbox, in a clone of its own: {missing}. See `unstuck doctor`.",)


def works_inside(config: Config, agent: str) -> bool:
    """Whether the sessions of an agent are in a sandbox on this machine."""
    mode = config.sandbox.mode
    return not trouble() and (mode == "bwrap" or (mode == "auto" and _is_named(config, agent)))


def _is_named(config: Config, agent: str) -> bool:
    """Whether the agent says what it writes."""
    known = manifest(agent, config.agents)
    return known is not None and bool(known.writes)


def fenced(config: Config) -> frozenset[Purpose]:
    """Return what the configuration wants in a sandbox."""
    mode, checks = config.sandbox.mode, config.sandbox.checks
    around_checks = checks == "bwrap" or (checks == "auto" and mode == "bwrap")
    sessions: frozenset[Purpose] = frozenset() if mode == "none" else frozenset({"session"})
    return sessions | (frozenset({"check", "setup"}) if around_checks else frozenset())
