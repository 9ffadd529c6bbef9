"""What an agent's settings must say so that it calls us: a table of agents, and edits of their text. Pure."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from unstuck.hook import jsonc

Scope = Literal["user", "project"]
QUICK, LONG = 20, 300
"""Seconds that the agent waits for us: after a call, and while checks are run at its end."""
BEGIN = "# unstuck: begin (made by `unstuck install`, taken out by `unstuck uninstall`)"
END = "# unstuck: end"
BLOCK = re.compile(rf"\n?{re.escape(BEGIN)}\n.*?{re.escape(END)}\n?", re.DOTALL)
SERVER, OPENCODE_SERVERS = "unstuck", "mcp"


class Event(NamedTuple):
    """One event that we listen to."""

    name: str
    matcher: str | None = None
    """Which tools; None where the event has none."""
    seconds: int = QUICK
    guards: bool = False


class Wiring(NamedTuple):
    """How one agent is told of a hook, in a JSON file."""

    events: tuple[Event, ...]
    user: str
    """The file below the agent's own folder."""
    project: str
    home: tuple[str, str]
    """The variable that names the agent's folder, and where it is otherwise."""
    unit: int = 1
    """How many of its units a second has."""
    note: str = ""
    """What is left for the person to do."""
    server: tuple[str, str] | None = None
    """The file for MCP servers of a person and of a project, below the same places; None: not ours to edit."""


WIRINGS: Mapping[str, Wiring] = {
    "claude": Wiring(
        events=(
            Event("PreToolUse", "Bash|Edit|MultiEdit|Write|NotebookEdit", guards=True),
            Event("PostToolUse", "*"),
            Event("PostToolUseFailure", "*"),
            Event("UserPromptSubmit"),
            Event("Stop", seconds=LONG),
        ),
        user="settings.json",
        project=".claude/settings.json",
        home=("CLAUDE_CONFIG_DIR", "~/.claude"),
        server=("", ".mcp.json"),
    ),
    "codex": Wiring(
        events=(
            Event("PreToolUse", "Bash", guards=True),
            Event("PostToolUse", "*"),
            Event("UserPromptSubmit"),
            Event("Stop", seconds=LONG),
        ),
        user="hooks.json",
        project=".codex/hooks.json",
        home=("CODEX_HOME", "~/.codex"),
        note="Codex runs hooks only when they are trusted: say so once in its `/hooks`, or start it with --dangerously-bypass-hook-trust.",
        server=("config.toml", ".codex/config.toml"),
    ),
    "gemini": Wiring(
        events=(
            Event("BeforeTool", "run_shell_command|replace|write_file", guards=True),
            Event("AfterTool", "*"),
            Event("BeforeAgent"),
            Event("AfterAgent", seconds=LONG),
        ),
        user="settings.json",
        project=".gemini/settings.json",
        home=("GEMINI_CONFIG_DIR", "~/.gemini"),
        unit=1000,
        server=("settings.json", ".gemini/settings.json"),
    ),
}


class CannotEdit(ValueError):
    """The settings cannot be edited without risk, and why."""


def hooked(agent: str, text: str, command: str, *, guard: bool) -> str:
    """Return the settings with our hook in them, once; everything else stays as it is."""
    wiring, made = WIRINGS[agent], text if text.strip() else "{}\n"
    _refuse_other_shapes(made, wiring)
    for event in wiring.events:
        path = ("hooks", event.name)
        if event.guards and not guard:
            made = jsonc.without_items(made, path, _ours)
            continue
        made = jsonc.with_item(made, path, _group(wiring, event, command), _ours)
    return _checked(made, wiring, command, guard=guard)


def unhooked(agent: str, text: str) -> str:
    """Return the settings without our hook."""
    wiring = WIRINGS[agent]
    if not text.strip():
        return text
    _refuse_other_shapes(text, wiring)
    for event in wiring.events:
        text = jsonc.without_items(text, ("hooks", event.name), _ours)
    return text


def served(name: str, text: str, command: list[str]) -> str:
    """Return a file of MCP servers with ours in it, JSON or TOML by its name."""
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if not name.endswith(".toml"):
        made, key = text if text.strip() else "{}\n", _servers(name)
        _refuse_unless_object(_read(made), key)
        ours = {"type": "local", "command": command} if key == OPENCODE_SERVERS else {"type": "stdio", **entry}
        return jsonc.with_member(made, (key, SERVER), ours)
    entry = {**entry, "startup_timeout_sec": QUICK * 3}
    known, bare = _toml(text), BLOCK.sub("", text)
    _refuse_unless_object(known, "mcp_servers")
    if SERVER in _toml(bare).get("mcp_servers", {}):
        raise CannotEdit(f"it has a server {SERVER!r} that is not of our making")
    block = [BEGIN, f"[mcp_servers.{SERVER}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items()), END]
    gap = "" if not bare else "\n" if bare.endswith("\n") else "\n\n"
    made = "\n".join([f"{bare}{gap}{block[0]}", *block[1:], ""])
    others = {key: value for key, value in known.get("mcp_servers", {}).items() if key != SERVER}
    if _toml(made) != {**known, "mcp_servers": {**others, SERVER: entry}}:
        raise CannotEdit("its tables leave no place for another server")
    return text if BLOCK.findall(text) and _toml(text) == _toml(made) else made


def unserved(name: str, text: str) -> str:
    """Return a file of MCP servers without ours."""
    if name.endswith(".toml"):
        return BLOCK.sub("", text)
    if not text.strip():
        return text
    _refuse_unless_object(_read(text), _servers(name))
    return jsonc.without_member(text, (_servers(name), SERVER))


def _servers(name: str) -> str:
    """Return the key under which a file has its MCP servers."""
    return OPENCODE_SERVERS if name.startswith("opencode.") else "mcpServers"


def snippet(agent: str, command: str, *, guard: bool) -> str:
    """Return what a person may add by hand."""
    return hooked(agent, "", command, guard=guard)


def _group(wiring: Wiring, event: Event, command: str) -> dict[str, Any]:
    hook = {"type": "command", "command": command, "timeout": event.seconds * wiring.unit}
    return {**({"matcher": event.matcher} if event.matcher is not None else {}), "hooks": [hook]}


def _ours(group: Any) -> bool:
    """Whether a group of hooks is of our making: it calls `unstuck hook` and nothing else."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [hook.get("command", "") for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []
    return len(commands) == 1 and re.search(r"\bunstuck['\"]? hook \w+$", str(commands[0])) is not None


def _read(text: str) -> Any:
    try:
        return jsonc.parse(text).value
    except jsonc.Broken as error:
        raise CannotEdit(str(error)) from error


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit(f"it is no TOML: {error}") from error


def _refuse_unless_object(content: Any, key: str) -> None:
    if not isinstance(content, dict) or not isinstance(content.get(key, {}), dict):
        raise CannotEdit(f"it is not an object with an object {key!r}")


def _refuse_other_shapes(text: str, wiring: Wiring) -> None:
    content = _read(text)
    _refuse_unless_object(content, "hooks")
    for event in wiring.events:
        if not isinstance(content.get("hooks", {}).get(event.name, []), list):
            raise CannotEdit(f"its hooks for {event.name} are no list")


def _checked(made: str, wiring: Wiring, command: str, *, guard: bool) -> str:
    """Refuse an edit that did not come to what it should: a file is never damaged by a fault of ours."""
    hooks = _read(made)["hooks"]
    for event in wiring.events:
        found = [group for group in hooks.get(event.name, []) if _ours(group)]
        if found != ([_group(wiring, event, command)] if guard or not event.guards else []):
            raise CannotEdit(f"its hooks for {event.name} cannot be changed safely")
    return made
