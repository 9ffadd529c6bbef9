"""The manifests of coding agents, from the catalogue and the user's configuration."""

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
def agent_catalog() -> Mapping[str, AgentConfig]:
    """Return the manifests of the catalogue, in the order in which agents are looked for."""
    tables = {name: tomllib.loads(text) for name, text in shipped_in("agents").items()}
    in_order = sorted(tables, key=lambda name: (tables[name].pop("order", len(tables)), name))
    return {name: _as_manifest(tables[name]) for name in in_order}


def manifest(name: str, own: Mapping[str, AgentConfig]) -> AgentConfig | None:
    """Return the manifest of an agent: that of the catalogue with the user's changes. `own` are the user's manifests."""
    catalog, user = agent_catalog().get(name), own.get(name)
    if catalog is None or user is None:
        return user or catalog
    default = AgentConfig()
    values = {field.name: getattr(user, field.name) for field in fields(AgentConfig)}
    changes = {key: value for key, value in values.items() if value != getattr(default, key)}
    if changes.keys() & {"command", "script"}:
        return user  # the catalogue's arguments do not fit the user's own command line
    if "permission" in changes:
        changes.setdefault("permission_as_root", ())
    merged = [key for key in ("environment", "exit_codes") if key in changes]
    changes |= {key: {**getattr(catalog, key), **changes[key]} for key in merged}
    return replace(catalog, **changes)


def permission(agent: AgentConfig) -> tuple[str, ...]:
    """Return the arguments that let the agent work without asking. Some agents refuse the usual ones as root."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == ROOT_USER
    return agent.permission_as_root if as_root and agent.permission_as_root else agent.permission or ()


def how_to_log_in(agent: AgentConfig) -> str:
    """Return how the user logs the agent in, or an empty string."""
    variable = f"set {agent.login_variables[0]}" if agent.login_variables else ""
    return ", or ".join(part for part in (agent.login, variable) if part)


def logged_in(agent: AgentConfig, environment: Mapping[str, str], home: Path) -> bool | None:
    """Return whether a variable or a file shows a login, or None if the manifest names no such sign."""
    if not agent.login_variables and not agent.login_files:
        return None
    by_variable = any(environment.get(name) for name in agent.login_variables)
    return by_variable or any((home / name).exists() for name in agent.login_files)


def _as_manifest(content: Mapping[str, Any]) -> AgentConfig:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}
    if "exit_codes" in values:
        values["exit_codes"] = {int(code): end for code, end in values["exit_codes"].items()}
    return AgentConfig(**values)


# --- the agents on this machine

VERSION_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """A known agent, which may be missing on this machine."""

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
    """Return the known agents that can start on this machine."""
    return tuple(name for name, agent in agent_catalog().items() if shutil.which(agent.program, path=path))


def survey_agents(config: Config) -> tuple[KnownAgent, ...]:
    """Return all known agents. The programs on this machine print their versions, all at the same time."""
    manifests = {name: manifest(name, config.agents) for name in (*agent_catalog(), *config.agents)}
    programs = [(name, agent) for name, agent in manifests.items() if agent is not None and agent.program]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # only `unstuck agents` and `init` need it

    with ThreadPoolExecutor(max_workers=8) as pool:
        return tuple(pool.map(lambda pair: _known_agent(*pair), programs))


def _known_agent(name: str, agent: AgentConfig) -> KnownAgent:
    path = shutil.which(agent.program)
    if path is None:
        return KnownAgent(name=name, program=agent.program)
    return KnownAgent(
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
        process = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    version = re.search(r"\d+\.\d+[\w.+-]*", f"{process.stdout}\n{process.stderr}")
    return version[0] if version else ""
