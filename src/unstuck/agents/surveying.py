"""Look which coding agents are on this machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.agents.manifests import catalog, logged_in, manifest, permission
from unstuck.config import AgentConfig, Config

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


def survey(config: Config) -> tuple[Found, ...]:
    """Look at all known agents; those that are here are asked for their versions, all at once."""
    known = [
        (name, found)
        for name in dict.fromkeys([*catalog(), *config.agents])
        if (found := manifest(name, config.agents))
    ]
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
    return next(_numbers(told.stdout, told.stderr), "")


def _numbers(*texts: str) -> Iterator[str]:
    for text in texts:
        yield from re.findall(r"\d+\.\d+[\w.+-]*", text)[:1]
