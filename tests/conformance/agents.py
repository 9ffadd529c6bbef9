"""What each real agent needs to talk to the scripted model and to nobody else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class Settling:
    """How an agent is made at home: files written into its home, and its environment."""

    settle: Callable[[Path, str], Mapping[str, str]]
    command: str


def _claude(home: Path, url: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex(home: Path, url: str) -> Mapping[str, str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX.format(url=url), encoding="utf-8")
    return {"CODEX_HOME": str(home / ".codex"), "SCRIPTED_KEY": KEY}


AGENTS: Mapping[str, Settling] = {
    "claude": Settling(_claude, "claude -p --output-format stream-json --verbose --allowedTools Bash,Edit,Write,Read"),
    "codex": Settling(_codex, "codex exec --json --dangerously-bypass-approvals-and-sandbox -"),
}
