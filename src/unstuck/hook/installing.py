"""The installation of the hook in an agent's settings.

A file that cannot be read is not changed. Every changed file has a backup and is replaced in one step.
"""

import difflib
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from unstuck.hook import jsonc
from unstuck.hook.workspace_head import root_of
from unstuck.model.errors import BadUsage, CannotWrite, unwritable
from unstuck.shipped import shipped

Scope = Literal["user", "project"]
QUICK = 20
"""Seconds that the agent waits for the hook after a call."""
BEGIN = "# unstuck: begin (made by `unstuck install`, taken out by `unstuck uninstall`)"
END = "# unstuck: end"
BLOCK = re.compile(rf"\n?{re.escape(BEGIN)}\n.*?{re.escape(END)}\n?", re.DOTALL)
SERVER, OPENCODE_SERVERS = "unstuck", "mcp"


class Event(NamedTuple):
    """An event of an agent that calls the hook."""

    name: str
    matcher: str | None = None
    """A pattern of tools, or None if the event is about no tool."""
    seconds: int = QUICK
    guards: bool = False


class Wiring(NamedTuple):
    """The place and form of an agent's hook settings in a JSON file."""

    events: tuple[Event, ...]
    user: str
    """The settings of the user, relative to the agent's own folder."""
    project: str
    home: tuple[str, str]
    """The variable that names the agent's folder, and the folder without it."""
    unit: int = 1
    """The number of the agent's time units in a second."""
    note: str = ""
    """An instruction for the user after the installation."""
    server: tuple[str, str] | None = None
    """The files for MCP servers of the user and of a project. An empty name must not be edited."""


WIRINGS: Final[Mapping[str, Wiring]] = {
    "claude": Wiring(
        events=(
            Event("PreToolUse", matcher="Bash|Edit|MultiEdit|Write|NotebookEdit", guards=True),
            Event("PostToolUse", matcher="*"),
            Event("PostToolUseFailure", matcher="*"),
            Event("UserPromptSubmit"),
            Event("Stop", seconds=300),
        ),
        user="settings.json",
        project=".claude/settings.json",
        home=("CLAUDE_CONFIG_DIR", "~/.claude"),
        server=("", ".mcp.json"),
    ),
    "codex": Wiring(
        events=(
            Event("PreToolUse", matcher="Bash", guards=True),
            Event("PostToolUse", matcher="*"),
            Event("UserPromptSubmit"),
            Event("Stop", seconds=300),
        ),
        user="hooks.json",
        project=".codex/hooks.json",
        home=("CODEX_HOME", "~/.codex"),
        note="Codex runs hooks only when they are trusted: say so once in its `/hooks`, or start it with --dangerously-bypass-hook-trust.",
        server=("config.toml", ".codex/config.toml"),
    ),
    "gemini": Wiring(
        events=(
            Event("BeforeTool", matcher="run_shell_command|replace|write_file", guards=True),
            Event("AfterTool", matcher="*"),
            Event("BeforeAgent"),
            Event("AfterAgent", seconds=300),
        ),
        user="settings.json",
        project=".gemini/settings.json",
        home=("GEMINI_CONFIG_DIR", "~/.gemini"),
        unit=1000,
        server=("settings.json", ".gemini/settings.json"),
    ),
}
"""The agents whose hooks are set in a JSON file."""


class CannotEdit(ValueError):
    """Raised for settings that cannot be edited safely."""


def with_hook(agent: str, text: str, command: str, *, guard: bool) -> str:
    """Return the settings with our hook added once. Everything else stays unchanged."""
    wiring, made = WIRINGS[agent], text if text.strip() else "{}\n"
    _refuse_other_shapes(made, wiring)
    for event in wiring.events:
        path = ("hooks", event.name)
        if event.guards and not guard:
            made = jsonc.without_items(made, path, _ours)
            continue
        made = jsonc.with_item(made, path, _group(wiring, event, command), _ours)
    return _checked(made, wiring, command, guard=guard)


def without_hook(agent: str, text: str) -> str:
    """Return the settings without our hook."""
    wiring = WIRINGS[agent]
    if not text.strip():
        return text
    _refuse_other_shapes(text, wiring)
    for event in wiring.events:
        text = jsonc.without_items(text, ("hooks", event.name), _ours)
    return text


def with_mcp_server(name: str, text: str, command: list[str]) -> str:
    """Return the text of a file of MCP servers with ours added, as JSON or TOML by the file name."""
    entry: dict[str, Any] = {"command": command[0], "args": command[1:]}
    if not name.endswith(".toml"):
        made, key = text if text.strip() else "{}\n", _servers(name)
        _refuse_unless_object(_read(made), key)
        ours = {"type": "local", "command": command} if key == OPENCODE_SERVERS else {"type": "stdio", **entry}
        return jsonc.with_member(made, (key, SERVER), ours)
    entry = {**entry, "startup_timeout_sec": QUICK * 3}
    content, bare = _toml(text), BLOCK.sub("", text)
    _refuse_unless_object(content, "mcp_servers")
    if SERVER in _toml(bare).get("mcp_servers", {}):
        raise CannotEdit(f"it has a server {SERVER!r} that is not of our making")
    block = [BEGIN, f"[mcp_servers.{SERVER}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items()), END]
    gap = "" if not bare else "\n" if bare.endswith("\n") else "\n\n"
    made = "\n".join([f"{bare}{gap}{block[0]}", *block[1:], ""])
    other_servers = {key: value for key, value in content.get("mcp_servers", {}).items() if key != SERVER}
    if _toml(made) != {**content, "mcp_servers": {**other_servers, SERVER: entry}}:
        raise CannotEdit("its tables leave no place for another server")
    return text if BLOCK.findall(text) and _toml(text) == _toml(made) else made


def without_mcp_server(name: str, text: str) -> str:
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
    """Return the settings that the user can add by hand."""
    return with_hook(agent, "", command, guard=guard)


def _group(wiring: Wiring, event: Event, command: str) -> dict[str, Any]:
    hook = {"type": "command", "command": command, "timeout": event.seconds * wiring.unit}
    return {**({"matcher": event.matcher} if event.matcher is not None else {}), "hooks": [hook]}


def _ours(group: Any) -> bool:
    """Return whether a group of hooks calls `unstuck hook` and nothing else."""
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
    """Return the edited settings, or raise CannotEdit if their hooks are not the expected ones."""
    hooks = _read(made)["hooks"]
    for event in wiring.events:
        groups = [group for group in hooks.get(event.name, []) if _ours(group)]
        if groups != ([_group(wiring, event, command)] if guard or not event.guards else []):
            raise CannotEdit(f"its hooks for {event.name} cannot be changed safely")
    return made


AGENTS = ("claude", "codex", "gemini", "opencode")
BACKUP = ".unstuck-backup"
OPENCODE_PLUGIN = Path("plugin", "unstuck.js")
OPENCODE_SETTINGS = ("opencode.jsonc", "opencode.json")


class Edit(NamedTuple):
    """One file, before and after."""

    path: Path
    before: str | None
    after: str | None

    @property
    def needed(self) -> bool:
        return self.before != self.after and (self.before or "").strip() != (self.after or "").strip()

    @property
    def shown(self) -> str:
        """The change as a diff."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def edits_to_install(agent: str, scope: Scope, cwd: Path, *, guard: bool, mcp: bool) -> tuple[Edit, ...]:
    """Return the edits that make an agent call the hook."""
    if agent == "opencode":
        path, settings = _opencode(scope, cwd)
        return (
            Edit(path, _text(path), _plugin(_program(scope), guard=guard)),
            *([_serving(settings, [*_program(scope), "mcp"])] if mcp else []),
        )
    wiring, command = WIRINGS[agent], f"{shlex.join(_program(scope))} hook {agent}"
    edits = [_edited(_place(wiring, wiring.user, wiring.project, scope, cwd), lambda text: with_hook(agent, text, command, guard=guard),
                     lambda: snippet(agent, command, guard=guard))]  # fmt: skip
    if mcp:
        edits = _with_server(edits, agent, scope, cwd)
    return tuple(edits)


def edits_to_uninstall(agent: str, scope: Scope, cwd: Path) -> tuple[Edit, ...]:
    """Return the edits that remove the hook."""
    if agent == "opencode":
        path, settings = _opencode(scope, cwd)
        edits = [
            Edit(path, _text(path), None),
            _edited(settings, lambda text: without_mcp_server(settings.name, text), str),
        ]
        return tuple(edit for edit in edits if edit.before is not None)
    wiring = WIRINGS[agent]
    path = _place(wiring, wiring.user, wiring.project, scope, cwd)
    edits = [_edited(path, lambda text: without_hook(agent, text), str)]
    if (other := _server_file(wiring, scope, cwd)) is not None:
        before = edits[0].after if other == path else None
        more = _edited(other, lambda text: without_mcp_server(other.name, text if before is None else before), str)
        edits = [more] if other == path else [*edits, more]
    return tuple(edit for edit in edits if edit.before is not None)


def carry_out(edit: Edit) -> Path | None:
    """Write an edit and return the backup of the old file. A file that changed meanwhile is not written."""
    path = edit.path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if _text(path) != edit.before:
            raise CannotWrite(f"{path} was changed by somebody else just now.", hint="Run the command again.")
        backup = None
        if edit.before is not None:
            backup = path.with_name(f"{path.name}{BACKUP}")
            shutil.copy2(path, backup)
        if edit.after is None:
            path.unlink()
            return backup
        new = path.with_name(f".{path.name}.{os.getpid()}.new")
        with new.open("w", encoding="utf-8", newline="") as file:
            file.write(edit.after)
            file.flush()
            os.fsync(file.fileno())
        if edit.before is not None:
            shutil.copymode(path, new)
        new.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error
    return backup


def _with_server(edits: list[Edit], agent: str, scope: Scope, cwd: Path) -> list[Edit]:
    path = _server_file(WIRINGS[agent], scope, cwd)
    command = [*_program(scope), "mcp"]
    if path is None:
        raise BadUsage(
            f"The file in which {agent} keeps a person's MCP servers holds its own state and is not ours to edit.",
            hint=f"Run: claude mcp add --scope user unstuck -- {shlex.join(command)}",
        )
    if path == edits[0].path:
        first = edits[0]
        return [first._replace(after=with_mcp_server(path.name, first.after or "", command))]
    return [*edits, _serving(path, command)]


def _serving(path: Path, command: list[str]) -> Edit:
    return _edited(
        path, lambda text: with_mcp_server(path.name, text, command), lambda: with_mcp_server(path.name, "", command)
    )


def _edited(path: Path, change: Callable[[str], str], by_hand: Callable[[], str]) -> Edit:
    before = _text(path)
    try:
        return Edit(path, before, change(before or "") if before is not None or by_hand is not str else None)
    except CannotEdit as error:
        text = by_hand()
        more = f" Add this to it yourself:\n\n{text}" if text else ""
        raise BadUsage(
            f"{path} was left as it is: {error}.{more}", hint=f"Correct {path.name}, then run this again."
        ) from error


def _place(wiring: Wiring, user: str, project: str, scope: Scope, cwd: Path) -> Path:
    if scope == "project":
        return Path(root_of(str(cwd))) / project
    variable, folder = wiring.home
    return Path(os.environ.get(variable) or folder).expanduser() / user


def _server_file(wiring: Wiring, scope: Scope, cwd: Path) -> Path | None:
    if wiring.server is None or (scope == "user" and not wiring.server[0]):
        return None
    return _place(wiring, *wiring.server, scope, cwd)


def _opencode(scope: Scope, cwd: Path) -> tuple[Path, Path]:
    """Return the paths of opencode's plugin and settings."""
    root = Path(root_of(str(cwd)))
    person = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "opencode"
    plugins, settings = (person, person) if scope == "user" else (root / ".opencode", root)
    there = [settings / name for name in OPENCODE_SETTINGS if (settings / name).exists()]
    return plugins / OPENCODE_PLUGIN, there[0] if there else settings / OPENCODE_SETTINGS[-1]


def _plugin(program: Sequence[str], *, guard: bool) -> str:
    """Return the plugin by which opencode calls our hook: its own hooks are functions in JavaScript."""
    return shipped("opencode_plugin.js") % (json.dumps([*program, "hook", "opencode"]), json.dumps(guard))


def _program(scope: Scope) -> list[str]:
    """Return the command that starts this program.

    In the settings of a project, which others read, it is the plain name if that works.
    """
    script = Path(sys.argv[0]).absolute()
    if scope == "project" and shutil.which("unstuck"):
        return ["unstuck"]
    if script.name == "unstuck" and os.access(script, os.X_OK):
        return [str(script)]
    return [sys.executable, "-m", "unstuck"]


def _text(path: Path) -> str | None:
    """Return the text of a file with its line ends, or None if there is no file."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path} was left as it is: it is not UTF-8.", hint=f"Correct {path.name}.") from error
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}.", hint="Make it readable.") from error
