"""What a caller's tool is, by its name and its schema: which of them are shells, and what their parameters are called. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from unstuck.remedies.chain import NOTHING_GIVEN

SHELL = frozenset({"sh", "bash", "zsh", "shell", "exec", "command", "commands", "cmd", "terminal", "console"})
"""A name that has one of these words is a shell's ..."""
AROUND = frozenset(
    {"run", "execute", "exec", "in", "tool", "local", "line", "call", "invoke", "do", "the", "a", "interactive"}
)
"""... if its other words are among these: `execute_sql` is none."""
ALIASES = (
    frozenset({"file", "path", "filename", "file_path", "filepath", "file_name"}),
    frozenset({"dir", "directory", "folder", "path", "dir_path"}),
    frozenset({"script", "command", "cmd", "code"}),
    frozenset({"content", "text", "body", "contents", "data"}),
    frozenset({"url", "uri", "address", "link"}),
    frozenset({"query", "q", "pattern", "search"}),
)
"""Names that tools have for the same argument."""
SCHEMA_KEYS = ("input_schema", "inputSchema", "parameters", "schema")


def bare_name(name: str) -> str:
    """Return a tool's name without the server or space that it comes from: `mcp__box__run_command`, `container.exec`."""
    return re.split(r"__|[./:]", name)[-1]


def shell_like(name: str) -> bool:
    """Whether a tool of this name runs command lines."""
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", bare_name(name)).lower()))
    return bool(words & SHELL) and words <= SHELL | AROUND


def parameter(schema: Any, usual: str, place: int) -> str:
    """Return what a tool calls the argument that is usually called so: by name, by a name for the same, by its place."""
    names: list[str] = list(schema.get("properties", {})) if isinstance(schema, Mapping) else []
    if not names or usual in names:
        return usual
    for group in ALIASES:
        if usual in group and (
            shared := [name for name in names if name.lower() in group or _flat(name) in map(_flat, group)]
        ):
            return shared[0]
    required: list[str] = [name for name in schema.get("required", []) if name in names]
    return (required or names)[min(place, len(required or names) - 1)]


def _flat(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def read_tools(given: Any) -> tuple[frozenset[str] | None, Mapping[str, Any]]:
    """Read tools as callers have them: names, name → schema, or the definitions of OpenAI, Anthropic and MCP."""
    if given is None:
        return None, NOTHING_GIVEN
    if isinstance(given, Mapping):
        return frozenset(given), {name: _schema(one) for name, one in given.items() if _schema(one) is not None}
    names: list[Any] = []
    schemas: dict[Any, Any] = {}
    for one in given:
        tool = one.get("function", one) if isinstance(one, Mapping) else one
        name = tool.get("name") if isinstance(tool, Mapping) else tool
        names.append(name)
        if isinstance(tool, Mapping) and (schema := _schema(tool)) is not None:
            schemas[name] = schema
    return frozenset(names), schemas


def _schema(tool: Any) -> Any:
    """Return the schema in a tool's definition, or the schema itself."""
    if not isinstance(tool, Mapping):
        return tool
    return next(
        (tool[key] for key in SCHEMA_KEYS if isinstance(tool.get(key), Mapping)), tool if "name" not in tool else None
    )
