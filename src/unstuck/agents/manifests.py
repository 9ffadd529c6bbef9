"""Edge: Agent manifests: how each coding agent is called, what it prints, what its exit codes mean, and which are here."""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from unstuck.model.config import AgentConfig, Config
from unstuck.shipped import shipped_in

ROOT_USER = 0


@cache
def catalog() -> Mapping[str, AgentConfig]:
    """Return the agents that we know, in the order in which they are looked for."""
    found = {name: tomllib.loads(text) for name, text in shipped_in("agents").items()}
    in_order = sorted(found, key=lambda name: (found[name].pop("order", len(found)), name))
    return {name: _manifest(found[name]) for name in in_order}


def manifest(name: str, own: Mapping[str, AgentConfig]) -> AgentConfig | None:
    """Return the agent of that name: ours, with what the user's configuration says about it; None for no known agent."""
    ours, theirs = catalog().get(name), own.get(name)
    if ours is None or theirs is None:
        return theirs or ours
    blank = AgentConfig()
    said = {field.name: getattr(theirs, field.name) for field in fields(AgentConfig)}
    changes = {key: value for key, value in said.items() if value != getattr(blank, key)}
    if changes.keys() & {"command", "script"}:
        return theirs  # a command line of the user's own: nothing of ours fits it
    if "permission" in changes:
        changes.setdefault("permission_as_root", ())
    changes |= {key: {**getattr(ours, key), **changes[key]} for key in ("environment", "exit_codes") if key in changes}
    return replace(ours, **changes)


def permission(agent: AgentConfig) -> tuple[str, ...]:
    """Return the arguments that let the agent work without asking; some refuse the usual ones as root."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == ROOT_USER
    return agent.permission_as_root if as_root and agent.permission_as_root else agent.permission or ()


def how_to_log_in(agent: AgentConfig) -> str:
    """Say how a person logs the agent in; empty where we do not know."""
    variable = f"set {agent.login_variables[0]}" if agent.login_variables else ""
    return ", or ".join(part for part in (agent.login, variable) if part)


def logged_in(agent: AgentConfig, environment: Mapping[str, str], home: Path) -> bool | None:
    """Say whether there are signs of a login: a variable, or a file; None where we know of no sign."""
    if not agent.login_variables and not agent.login_files:
        return None
    by_variable = any(environment.get(name) for name in agent.login_variables)
    return by_variable or any((home / name).exists() for name in agent.login_files)


def _manifest(content: Mapping[str, Any]) -> AgentConfig:
    known = {field.name for field in fields(AgentConfig)}
    assert content.keys() <= known, content.keys() - known
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}
    if "exit_codes" in values:
        values["exit_codes"] = {int(code): end for code, end in values["exit_codes"].items()}
    return AgentConfig(**values)


# --- which of them are on this machine

PATIENCE = 10.0
"""Seconds that an agent may take to say its version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One known agent, here or not."""

    name: str
    program: str
    path: str | None = None
    version: str = ""
    logged_in: bool | None = None
    permission: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "found": self.path is not None,
            "path": self.path,
            "version": self.version or None,
            "logged_in": self.logged_in,
            "permission": list(self.permission),
            "capabilities": list(self.capabilities),
        }


def agents_on_path(path: str | None = None) -> tuple[str, ...]:
    """List the known agents that can be started."""
    return tuple(name for name, agent in catalog().items() if shutil.which(agent.program, path=path))


def survey(config: Config) -> tuple[Found, ...]:
    """Look at all known agents; those that are here are asked for their versions, all at once."""
    known = [
        (name, found)
        for name in dict.fromkeys([*catalog(), *config.agents])
        if (found := manifest(name, config.agents))
    ]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # only where somebody asks for versions

    with ThreadPoolExecutor(max_workers=8) as pool:
        return tuple(pool.map(lambda pair: _look(*pair), [pair for pair in known if pair[1].program]))


def _look(name: str, agent: AgentConfig) -> Found:
    path = shutil.which(agent.program)
    if path is None:
        return Found(name=name, program=agent.program)
    return Found(
        name=name,
        program=agent.program,
        path=path,
        version=_version(path, agent.version),
        logged_in=logged_in(agent, os.environ, Path.home()),
        permission=permission(agent),
        capabilities=agent.capabilities,
    )


def _version(path: str, arguments: tuple[str, ...]) -> str:
    try:
        told = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return next(iter(re.findall(r"\d+\.\d+[\w.+-]*", f"{told.stdout}\n{told.stderr}")), "")
