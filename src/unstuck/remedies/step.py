"""What one step of a remedy does. A closed union: match on it. Arguments are lists, never a shell line of ours."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unstuck.remedies.caller_tools import bare_name, parameter, shell_like
from unstuck.remedies.chain import NOTHING_GIVEN, Risk

REMEDY = "remedy"
"""What stands for `$0` in the small fixed scripts; all that varies comes in as arguments."""


class Shell(NamedTuple):
    """Run one command: arguments, no shell."""

    argv: tuple[str, ...]
    timeout: float | None = None
    env: Mapping[str, str] = NOTHING_GIVEN
    detached: bool = False
    """It goes on by itself; the step ends at once."""


class Script(NamedTuple):
    """Run the caller's own command line, changed by us. It is a shell's to read, as it was before."""

    text: str
    timeout: float | None = None
    shell: str = "bash"


class ListFolder(NamedTuple):
    path: str


class ReadFile(NamedTuple):
    path: str


class WriteFile(NamedTuple):
    path: str
    content: str


class MakeFolder(NamedTuple):
    path: str


class Remove(NamedTuple):
    """Delete exactly these paths, which are ours and inside the workspace."""

    paths: tuple[str, ...]


class Use(NamedTuple):
    """Call a tool of the caller's own."""

    tool: str
    args: Mapping[str, Any]


class Ask(NamedTuple):
    """Ask a person."""


Deed = Shell | Script | ListFolder | ReadFile | WriteFile | MakeFolder | Remove | Use | Ask


class Expects(NamedTuple):
    """What must hold after a step, besides its own success."""

    exists: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    prints: bool = False
    """It prints something."""
    sound: tuple[str, ...] = ()
    """Files that must hold what their names say, rather than a server's page about an error."""


class Step(NamedTuple):
    action: str
    deed: Deed
    expected: str
    risk: Risk = "safe"
    expects: Expects = Expects()
    again: bool = False
    """The failing call once more, or its repaired form with the same effect: its success is what recovery means."""
    back: "Deed | None" = None
    """What takes it back if the way does not work, where the step is no file that was written."""


class Recipe(NamedTuple):
    """A way, filled in for one failure."""

    steps: tuple[Step, ...]
    requires: tuple[str, ...] = ()
    """Programs it needs."""
    hosts: tuple[str, ...] = ()
    """Hosts it talks to."""
    likelihood: float = 1.0
    """How likely it is that the repair is what was meant, where it is a guess."""


# --- how a caller's tools are told to do it -----------------------------------------------------------------------


class Rendered(NamedTuple):
    tool: str | None
    args: dict[str, Any]


class Tools(NamedTuple):
    """The caller's tools: which of the basic ones they have, under which names and with which arguments."""

    names: frozenset[str] | None
    """None: nobody said, so everything is there."""
    known: Mapping[str, Sequence[Sequence[str]]]
    """Basic tool → its names elsewhere, each with the names of its arguments."""
    schemas: Mapping[str, Any] = NOTHING_GIVEN
    """The schemas of their arguments, where the caller gave them."""

    def has(self, tool: str) -> bool:
        return self.names is None or tool in self.names

    def is_shell(self, tool: str) -> bool:
        return any(tool == row[0] for row in self.known["run_bash"]) or shell_like(tool)

    def basic(self, role: str) -> Sequence[str] | None:
        """Return what the caller calls a basic tool, with the names of its arguments; None if they have none."""
        row = next((row for row in self.known[role] if self.has(row[0])), None)
        if row is None and self.names is not None:
            like = (
                shell_like
                if role == "run_bash"
                else lambda name: bare_name(name) in {row[0] for row in self.known[role]}
            )
            name = next((name for name in sorted(self.names) if like(name)), "")
            rows = {row[0]: row for row in self.known[role]}
            usual = rows.get(bare_name(name)) or self.known[role][1]
            row = (name, *usual[1:]) if name else None
        if row is None:
            return None
        schema = self.schemas.get(row[0])
        return (
            row if schema is None else (row[0], *(parameter(schema, name, place) for place, name in enumerate(row[1:])))
        )

    def render(self, deed: Deed) -> Rendered | str:
        """Return the call of the caller's tool, or the name of the tool that is missing."""
        match deed:
            case Ask():
                return Rendered(None, {})
            case Use():
                return Rendered(deed.tool, dict(deed.args)) if self.has(deed.tool) else deed.tool
            case ListFolder(path=path):
                return self._call("read_dir", path) or self.render(Shell(argv=("ls", "-la", "--", path)))
            case ReadFile(path=path):
                return self._call("read_file", path) or self.render(Shell(argv=("cat", "--", path)))
            case WriteFile(path=path, content=content):
                copied = ("bash", "-c", 'printf %s "$2" > "$1"', REMEDY, path, content)
                return self._call("write_file", path, content) or self.render(Shell(argv=copied))
            case _:
                row = self.basic("run_bash")
                if row is None:
                    return "run_bash"
                timeout = getattr(deed, "timeout", None)
                limit = {"timeout_ms": round(timeout * 1000)} if timeout and row[1] == "script" else {}
                wants = (self.schemas.get(row[0]) or {}).get("properties", {}).get(row[1], {})
                line: Any = ["bash", "-lc", script(deed)] if wants.get("type") == "array" else script(deed)
                return Rendered(row[0], {row[1]: line, **limit})

    def _call(self, role: str, *values: str) -> Rendered | None:
        row = self.basic(role)
        return Rendered(row[0], dict(zip(row[1:], values, strict=True))) if row is not None else None


def script(deed: Deed) -> str:
    """Return a deed as one line for a shell; whatever came from a failure is quoted."""
    match deed:
        case Shell(argv=argv, env=env):
            words = (*(("env", *(f"{key}={value}" for key, value in env.items())) if env else ()), *argv)
            return shlex.join(words)
        case Script(text=text, shell=shell):
            return text if shell == "bash" else shlex.join((shell, "-c", text))
        case Remove(paths=paths):
            return shlex.join(("rm", "-rf", "--", *paths))
        case MakeFolder(path=path):
            return shlex.join(("mkdir", "-p", "--", path))
        case _:
            return ""
