"""Edge: put our hook into an agent's settings and take it out again: backed up, atomic, and never on top of what cannot be read."""

import difflib
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from unstuck.errors import BadUsage, CannotWrite
from unstuck.hook.heads import root_of
from unstuck.hook.opencode_plugin import plugin
from unstuck.hook.wiring import WIRINGS, CannotEdit, Scope, Wiring, hooked, served, snippet, unhooked, unserved

AGENTS = (*WIRINGS, "opencode")
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
        """The change as people read it."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def edits_to_install(agent: str, scope: Scope, cwd: Path, *, guard: bool, mcp: bool) -> tuple[Edit, ...]:
    """Return the edits that make an agent call us."""
    if agent == "opencode":
        path, settings = _opencode(scope, cwd)
        return (
            Edit(path, _text(path), plugin(_program(scope), guard=guard)),
            *([_serving(settings, [*_program(scope), "mcp"])] if mcp else []),
        )
    wiring, command = WIRINGS[agent], f"{shlex.join(_program(scope))} hook {agent}"
    edits = [_edited(_place(wiring, wiring.user, wiring.project, scope, cwd), lambda text: hooked(agent, text, command, guard=guard),
                     lambda: snippet(agent, command, guard=guard))]  # fmt: skip
    if mcp:
        edits = _with_server(edits, agent, scope, cwd)
    return tuple(edits)


def edits_to_uninstall(agent: str, scope: Scope, cwd: Path) -> tuple[Edit, ...]:
    """Return the edits that take us out again."""
    if agent == "opencode":
        path, settings = _opencode(scope, cwd)
        edits = [Edit(path, _text(path), None), _edited(settings, lambda text: unserved(settings.name, text), str)]
        return tuple(edit for edit in edits if edit.before is not None)
    wiring = WIRINGS[agent]
    path = _place(wiring, wiring.user, wiring.project, scope, cwd)
    edits = [_edited(path, lambda text: unhooked(agent, text), str)]
    if (other := _server_file(wiring, scope, cwd)) is not None:
        before = edits[0].after if other == path else None
        more = _edited(other, lambda text: unserved(other.name, text if before is None else before), str)
        edits = [more] if other == path else [*edits, more]
    return tuple(edit for edit in edits if edit.before is not None)


def carry_out(edit: Edit) -> Path | None:
    """Write an edit; return the backup of what was there. A file that changed meanwhile is left alone."""
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
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.", hint="Make it writable.") from error
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
        return [first._replace(after=served(path.name, first.after or "", command))]
    return [*edits, _serving(path, command)]


def _serving(path: Path, command: list[str]) -> Edit:
    return _edited(path, lambda text: served(path.name, text, command), lambda: served(path.name, "", command))


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
    """Return where its plugin and its settings are, or would be."""
    root = Path(root_of(str(cwd)))
    person = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "opencode"
    plugins, settings = (person, person) if scope == "user" else (root / ".opencode", root)
    there = [settings / name for name in OPENCODE_SETTINGS if (settings / name).exists()]
    return plugins / OPENCODE_PLUGIN, there[0] if there else settings / OPENCODE_SETTINGS[-1]


def _program(scope: Scope) -> list[str]:
    """Return how this very program is started: in a project's settings by name where that works, for others read them."""
    script = Path(sys.argv[0]).absolute()
    if scope == "project" and shutil.which("unstuck"):
        return ["unstuck"]
    if script.name == "unstuck" and os.access(script, os.X_OK):
        return [str(script)]
    return [sys.executable, "-m", "unstuck"]


def _text(path: Path) -> str | None:
    """Return a file's text with its line ends as they are; None if there is no file."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path} was left as it is: it is not UTF-8.", hint=f"Correct {path.name}.") from error
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}.", hint="Make it readable.") from error
