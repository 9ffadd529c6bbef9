"""Edge: Agent manifests: how each coding agent is called, what it prints, and what its exit codes mean. Data, not code."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from unstuck.config import AgentConfig
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
