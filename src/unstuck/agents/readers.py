"""The table of output formats, and reading a recorded session from its files."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from unstuck.agents.streams.stream import LONGEST_LINE, Format, read
from unstuck.agents.transcript import End, Transcript

FORMATS: Mapping[str, str] = {
    "claude": "anthropic",
    "qwen": "anthropic",
    **{
        name: name
        for name in ("codex", "gemini", "opencode", "goose", "copilot", "kimi", "pi", "cline", "plain", "aider", "mini")
    },
}
"""Format → the module that reads it."""


def format_named(name: str) -> Format:
    """Return a format by the name that manifests know it by."""
    found: Format = import_module(f"unstuck.agents.streams.{FORMATS[name]}").FORMAT
    return found


def read_files(
    name: str, stdout: Path, stderr: Path | None, *, code: int | None, meanings: Mapping[int, End] | None = None
) -> Transcript:
    """Read a session that was recorded; a file that is missing counts as empty."""
    return read(format_named(name), _lines(stdout), _lines(stderr) if stderr else (), code=code, meanings=meanings)


def as_json(agent: str, found: Transcript) -> dict[str, Any]:
    """Return the public form of what was read."""
    from datetime import UTC, datetime  # noqa: PLC0415  # only where somebody asks for it

    resets = datetime.fromtimestamp(found.resets_at, UTC).isoformat(timespec="seconds") if found.resets_at else None
    usage = found.usage
    return {
        "schema": 1,
        "agent": agent,
        "end": found.end,
        "resets_at": resets,
        "session_id": found.session or None,
        "cost_usd": found.cost_usd,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens} if usage else None,
        "claim": found.claim,
        "message": found.message or None,
        "tools": [
            {"name": tool.name, "input": tool.input, "exit_code": tool.exit_code, "ok": bool(tool.ok)}
            for tool in found.tools
        ],
    }


def _lines(path: Path) -> Iterable[str]:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        yield from _bounded(file)


def _bounded(file: Any) -> Iterator[str]:
    """Yield lines; of one that is longer than any event, only pieces that no reader takes for one."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
