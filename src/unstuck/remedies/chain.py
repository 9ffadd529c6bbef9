"""Chains of strategies, the steps that a strategy is made of, and how a caller's tools are told to do them. Pure.

A step is a closed union: match on it. Arguments are lists, never a shell line of ours.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn, get_args

from unstuck.model.failure import KINDS, Kind
from unstuck.shipped import shipped_table

Risk = Literal["safe", "caution", "privileged", "destructive"]
RISKS: tuple[Risk, ...] = get_args(Risk)
"""From what may run by itself to what nobody should do unasked."""
TaskType = Literal["", "exploratory", "implementation"]
ASK = "ask_user"
"""Every way of asking a person; always the last."""
NOTHING_GIVEN: Mapping[str, Any] = MappingProxyType({})
REMEDY = "remedy"
"""What stands for `$0` in the small fixed scripts; all that varies comes in as arguments."""


class StrategyRow(NamedTuple):
    """One strategy of a chain, before it is filled in."""

    name: str
    confidence: float
    iterations: int
    creates: bool = False  # it makes new files, which an agent that only explores must not
    between_attempts: bool = False  # the supervisor may do its safe steps between two attempts


class Chain(NamedTuple):
    """The strategies for one category, in their order."""

    name: str
    strategies: tuple[StrategyRow, ...]
    ask: str  # the question, with blanks
    ask_confidence: float
    looks_at: frozenset[str] = frozenset()  # what must be known about the machine to fill it in


class Catalog(NamedTuple):
    """All chains, and the tables that their strategies look things up in."""

    chains: Mapping[str, Chain]
    tables: Mapping[str, Any] = NOTHING_GIVEN

    def chain(self, kind: Kind) -> Chain:
        """Return the chain of a kind: its own, its category's, or the one that only asks."""
        for name in (str(kind), KINDS[kind].category or ""):
            if name in self.chains:
                return self.chains[name]
        return self.chains["unknown"]


def read_catalog() -> Catalog:
    """Return all chains and their tables, from the compiled form: reading TOML would cost more than a whole plan."""
    content = shipped_table("chains")
    chains = {name: _chain(name, row) for name, row in content["chains"].items()}
    return Catalog(chains=chains, tables=content)


@cache
def listed(name: str) -> tuple[str, ...]:
    """Return a list of words of the catalogue."""
    return tuple(shipped_table("chains")["words"][name].split())


def shape(name: str) -> str:
    """Return a pattern of the catalogue, as a string: most failures need none of them."""
    pattern: str = shipped_table("chains")["shapes"][name]
    return pattern


def fixed(name: str) -> str:
    """Return one of the fixed scripts."""
    text: str = shipped_table("chains")["scripts"][name]
    return text


def names_of(argument: str) -> Iterator[list[str]]:
    """Yield the groups of names that tools have for the same argument."""
    return (row["same"] for row in shipped_table("chains")["aliases"] if argument in row["same"])


def _chain(name: str, row: dict[str, Any]) -> Chain:
    strategies = tuple(StrategyRow(**one) for one in row["strategies"])
    return Chain(name, strategies, row["ask"], row["ask_confidence"], frozenset(row["looks_at"]))


# --- what a step does ---------------------------------------------------------------------------------------------


class Shell(NamedTuple):
    """Run one command: arguments, no shell."""

    argv: tuple[str, ...]
    timeout: float | None = None
    env: Mapping[str, str] = NOTHING_GIVEN
    detached: bool = False  # it goes on by itself; the step ends at once


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


Operation = Shell | Script | ListFolder | ReadFile | WriteFile | MakeFolder | Remove | Use | Ask


class Expects(NamedTuple):
    """What must hold after a step, besides its own success."""

    exists: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    prints: bool = False  # it prints something
    listens: int = 0  # a port on which it listens then: a server does not end by itself
    sound: tuple[str, ...] = ()  # files that must hold what their names say, rather than a server's page about an error
    unasked: str = ""  # a question that it must not print: nobody answers


NOTHING_MORE: Expects = Expects()


class Step(NamedTuple):
    action: str
    operation: Operation
    expected: str
    risk: Risk = "safe"
    expects: Expects = NOTHING_MORE
    again: bool = False
    """The failing call once more, or its repaired form with the same effect: its success is what recovery means."""
    back: "Operation | None" = None
    """What takes it back if the way does not work, where the step is no file that was written."""


class Recipe(NamedTuple):
    """A way, filled in for one failure."""

    steps: tuple[Step, ...]
    requires: tuple[str, ...] = ()  # programs it needs
    hosts: tuple[str, ...] = ()  # hosts it talks to
    likelihood: float = 1.0  # how likely it is that the repair is what was meant, where it is a guess


def recipe(*steps: Step, requires: Sequence[str] = (), hosts: Sequence[str] = (), likelihood: float = 1.0) -> Recipe:
    return Recipe(steps, tuple(requires), tuple(hosts), likelihood)


def run(
    action: str, *argv: str, expected: str = "It ends with exit code 0", timeout: float | None = None, **more: Any
) -> Step:
    """Return the step that runs one command."""
    return Step(action, Shell(argv, timeout), expected, **more)


class NoWay(Exception):
    """A way cannot work here: it is left out, and the reason is told."""


def no_way(because: str) -> NoReturn:
    """Leave the way out, and say why; it never returns, so it can stand behind an `or`."""
    raise NoWay(because)


def script(operation: Operation) -> str:
    """Return an operation as one line for a shell; whatever came from a failure is quoted."""
    match operation:
        case Shell(argv=argv, env=env):
            return shlex.join((*(("env", *(f"{key}={value}" for key, value in env.items())) if env else ()), *argv))
        case Script(text=text, shell=shell):
            return text if shell == "bash" else shlex.join((shell, "-c", text))
        case Remove(paths=paths):
            return shlex.join(("rm", "-rf", "--", *paths))
        case MakeFolder(path=path):
            return shlex.join(("mkdir", "-p", "--", path))
        case _:
            return ""


# --- how a caller's tools are told to do it -----------------------------------------------------------------------


class Rendered(NamedTuple):
    tool: str | None
    args: dict[str, Any]


class OwnShell(NamedTuple):
    """The shell that ran the failed call: its name, the argument that held the line, and all that it was given."""

    tool: str
    argument: str
    args: Mapping[str, Any]


class Tools(NamedTuple):
    """The caller's tools: which of the basic ones they have, under which names and with which arguments."""

    names: frozenset[str] | None  # None: nobody said, so everything is there
    known: Mapping[str, Sequence[Sequence[str]]]
    """Basic tool → its names elsewhere, each with the names of its arguments."""
    schemas: Mapping[str, Any] = NOTHING_GIVEN  # the schemas of their arguments, where the caller gave them
    folder: str = ""  # where the call works, seen from where the caller is: nothing if it is the same

    def has(self, tool: str) -> bool:
        return self.names is None or tool in self.names

    def is_shell(self, tool: str) -> bool:
        return any(tool == row[0] for row in self.known["run_bash"]) or shell_like(tool)

    def basic(self, role: str) -> Sequence[str] | None:
        """Return what the caller calls a basic tool, with the names of its arguments; None if they have none."""
        rows = {row[0]: row for row in self.known[role]}
        row = next((row for name, row in rows.items() if self.has(name)), None)
        if row is None:
            like = shell_like if role == "run_bash" else lambda name: bare_name(name) in rows or plays(name, role)
            name = next((name for name in sorted(self.names or ()) if like(name)), "")
            if not name:
                return None
            row = (name, *(rows.get(bare_name(name)) or self.known[role][1])[1:])
        schema = self.schemas.get(row[0])
        if schema is None:
            return row
        return (row[0], *(parameter(schema, name, place) for place, name in enumerate(row[1:])))

    def render(self, operation: Operation, own: OwnShell | None = None) -> Rendered:
        """Return the call of the caller's tool, in the shell of the failed call where it needs one; no way, if there is none."""
        match operation:
            case Ask():
                return Rendered(None, {})
            case Use():
                return (
                    Rendered(operation.tool, dict(operation.args))
                    if self.has(operation.tool)
                    else _missing(operation.tool)
                )
            case ListFolder(path=path):
                return self._call("read_dir", self._there(path)) or self.render(Shell(("ls", "-la", "--", path)), own)
            case ReadFile(path=path):
                return self._call("read_file", self._there(path)) or self.render(Shell(("cat", "--", path)), own)
            case WriteFile(path=path, content=content):
                copied = ("bash", "-c", 'printf %s "$2" > "$1"', REMEDY, path, content)
                return self._call("write_file", self._there(path), content) or self.render(Shell(copied), own)
            case Shell(argv=("sleep", seconds)) if own is None and self.basic("run_bash") is None:
                return Rendered(None, {"seconds": float(seconds)})  # whoever has no shell waits by themselves
            case _:
                if own is None:
                    name, argument = self.basic("run_bash") or _missing("run_bash")
                    own = OwnShell(name, argument, NOTHING_GIVEN)
                line = f"cd {shlex.quote(self.folder)} && {script(operation)}" if self.folder else script(operation)
                return Rendered(own.tool, self._in_shell(own, line, getattr(operation, "timeout", None)))

    def _in_shell(self, shell: OwnShell, line: str, timeout: float | None) -> dict[str, Any]:
        """Return the arguments with which a shell runs a line, as its schema or its failed call has them."""
        schema = (self.schemas.get(shell.tool) or {}).get("properties", {})

        def is_list(name: str) -> bool:
            return isinstance(shell.args.get(name), list) or schema.get(name, {}).get("type") == "array"

        words = next((name for name in listed("word_arguments") if name != shell.argument and is_list(name)), "")
        through = ["bash", "-lc", line]
        args = {**shell.args, shell.argument: through if is_list(shell.argument) else line}
        if words:
            args |= {shell.argument: "bash", words: through[1:]}
        if timeout and shell.argument == "script":
            args["timeout_ms"] = round(timeout * 1000)
        for name in listed("limit_keys"):
            least = shell.args.get(name)
            if timeout and isinstance(least, int | float):  # never less than the call had, whatever it is counted in
                args[name] = max(least, round(timeout * (1000 if name.endswith(("ms", "Ms")) else 1)))
        return args

    def _there(self, path: str) -> str:
        return f"{self.folder}/{path}" if self.folder and not path.startswith(("/", "~")) else path

    def _call(self, role: str, *values: str) -> Rendered | None:
        row = self.basic(role)
        return Rendered(row[0], dict(zip(row[1:], values, strict=True))) if row is not None else None


def _missing(tool: str) -> NoReturn:
    no_way(f"it needs the tool {tool}, which is not among the tools")


def bare_name(name: str) -> str:
    """Return a tool's name without the server or space that it comes from: `mcp__box__run_command`, `container.exec`."""
    return re.split(r"__|[./:]", name)[-1]


def name_words(name: str) -> set[str]:
    """Return the words of a tool's name, however it is spelled: `readFile`, `read_file`, `ReadFile`."""
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def flat(name: str) -> str:
    """Return a name without what spellings differ in."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def shell_like(name: str) -> bool:
    """Whether a tool of this name runs command lines."""
    words = name_words(bare_name(name))
    return not words.isdisjoint(listed("shell")) and words.issubset((*listed("shell"), *listed("around")))


def plays(name: str, role: str) -> bool:
    """Whether a tool does what a basic one does, by the words of its name: `read_text_file`, `fs.getFileContents`."""
    words, row = name_words(bare_name(name)), shipped_table("chains")["roles"][role]
    does, of, more = (set(row[key].split()) for key in ("does", "of", "more"))
    return bool(words & does) and bool(words & of) and words <= does | of | more


def parameter(schema: Any, usual: str, place: int) -> str:
    """Return what a tool calls the argument that is usually called so: by name, by a name for the same, by its place."""
    names: list[str] = list(schema.get("properties", {})) if isinstance(schema, Mapping) else []
    if not names or usual in names:
        return usual
    groups = [list(map(flat, group)) for group in names_of(usual)]
    same = [name for group in groups for name in names if flat(name) in group]
    like = [name for group in groups for name in names if not name_words(name).isdisjoint(group)]
    if same or like:
        return (same or like)[0]
    beside = [name for name in names if name_words(name).isdisjoint(listed("beside"))] or names
    asked = [name for name in schema.get("required", []) if name in beside] or beside
    return asked[min(place, len(asked) - 1)]


def read_tools(given: Any) -> tuple[frozenset[str] | None, Mapping[str, Any]]:
    """Read tools as callers have them: names, name → schema, or the definitions of OpenAI, Anthropic and MCP."""
    if given is None:
        return None, NOTHING_GIVEN
    tools: dict[Any, Any] = dict(given) if isinstance(given, Mapping) else {}
    for one in () if isinstance(given, Mapping) else given:
        tool = one.get("function", one) if isinstance(one, Mapping) else one
        name = tool.get("name") if isinstance(tool, Mapping) else tool
        tools[name] = tool if isinstance(tool, Mapping) else None
    schemas = {name: _schema(tool) for name, tool in tools.items()}
    return frozenset(tools), {name: schema for name, schema in schemas.items() if schema is not None}


def _schema(tool: Any) -> Any:
    """Return the schema in a tool's definition, or the schema itself."""
    if not isinstance(tool, Mapping):
        return tool
    inside = (tool[key] for key in listed("schema_keys") if isinstance(tool.get(key), Mapping))
    return next(inside, tool if "name" not in tool else None)
