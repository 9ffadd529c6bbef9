"""What each real agent needs to talk to the scripted model and to nobody else."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY = "conformance-0000-not-a-secret"
CODEX = """\
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[features]
plugins = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
FIRST_ROWS = ("success", "false done", "401")
"""What the agents are held to that take ten seconds to start."""
GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "model": {"name": "gemini-2.5-pro"},
    "general": {"maxAttempts": 2, "disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
}


@dataclass(frozen=True, slots=True)
class Settling:
    """How an agent is made at home."""

    settle: Callable[[Path, str], Mapping[str, str]]
    """Write its files into a home, for a model's address; return its environment."""
    tries: frozenset[str] = frozenset()
    """Where it knocks whatever one sets; the door is shut."""
    rows: tuple[str, ...] = ()
    """The rows of the matrix that it is held to; none named is all."""


def _claude(_home: Path, url: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex(home: Path, url: str) -> Mapping[str, str]:
    _put(home / ".codex" / "config.toml", CODEX.format(url=url))
    return {"CODEX_HOME": str(home / ".codex"), "SCRIPTED_KEY": KEY}


def _gemini(home: Path, url: str) -> Mapping[str, str]:
    _put(home / ".gemini" / "settings.json", json.dumps(GEMINI))
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}


def _opencode(home: Path, url: str) -> Mapping[str, str]:
    provider: dict[str, Any] = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": {}},
    }
    settings = {"provider": {"scripted": provider}, "model": "scripted/scripted", "autoupdate": False}
    _put(home / ".config" / "opencode" / "opencode.json", json.dumps(settings))
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")


AGENTS: Mapping[str, Settling] = {
    "claude": Settling(_claude),
    "codex": Settling(_codex),
    "gemini": Settling(_gemini, rows=FIRST_ROWS),
    "opencode": Settling(_opencode, rows=FIRST_ROWS, tries=frozenset({"registry.npmjs.org:443"})),
}
