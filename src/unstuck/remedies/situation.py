"""One failed call with all that a strategy may know: the call, the tools, the machine, the user's wishes, and what it is about."""

import re
import shlex
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unstuck.model.failure import Kind
from unstuck.remedies.call_words import (
    Address,
    address,
    destroys,
    download_target,
    file_address,
    local_path,
    loud,
    plain_words,
    program,
    restrains,
    ssh_address,
)
from unstuck.remedies.chain import (
    NOTHING_GIVEN,
    NOTHING_MORE,
    REMEDY,
    RISKS,
    Catalog,
    Expects,
    Operation,
    OwnShell,
    Rendered,
    Risk,
    Script,
    Shell,
    Step,
    TaskType,
    Tools,
    Use,
    listed,
    name_words,
    no_way,
    parameter,
    shape,
    shell_like,
)
from unstuck.remedies.schemas import breaks, typed
from unstuck.remedies.surroundings import Surroundings
from unstuck.shipped import shipped_table
from unstuck.toolchain.command_roles import role
from unstuck.toolchain.shell import parts

SERVER_SECONDS = 60.0
"""Until a server listens."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
MAYBE_DONE = frozenset(
    {Kind.TIMEOUT, Kind.HANG, Kind.NETWORK_ERROR, Kind.OUT_OF_MEMORY, Kind.OUTPUT_FLOOD, Kind.KILLED}
)
"""How a call ends that may have had its effect all the same; others were refused before they had any."""


LOG = ".unstuck/remedy-output.log"


class Preferences(NamedTuple):
    """What the user allows, and would rather have."""

    allow: Risk = "safe"  # the gravest risk that may be run without asking
    never: tuple[str, ...] = ()  # strategies that are never proposed
    never_sudo: bool = False
    never_install: bool = False
    prefer_mirrors: bool = False
    mirrors: Mapping[str, str] = NOTHING_GIVEN
    allowed_hosts: tuple[str, ...] = ()  # empty: any
    allowed_folders: tuple[str, ...] = ()  # where remedies may write besides the workspace
    sandbox: str = ".unstuck/sandbox"
    longest_wait: float = 900.0
    timeout: float = 120.0  # seconds for one step

    def may_reach(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if host.rsplit(":", 1)[-1].isdigit() else host
        return not self.allowed_hosts or name in LOOPBACK or bool({host, name}.intersection(self.allowed_hosts))


class Call(NamedTuple):
    """What failed, as it was called."""

    tool: str = ""
    args: Mapping[str, Any] = NOTHING_GIVEN
    command: str = ""
    schema: Mapping[str, Any] | None = None  # the JSON schema of the tool's arguments

    @property
    def line(self) -> str:
        """The command line, where the call is one."""
        if self.command or not self.line_argument:
            return self.command
        given, words = self.args[self.line_argument], [self.args.get(name) for name in listed("word_arguments")]
        more = next((one for one in words if one is not given and isinstance(one, list) and _line(one)), [])
        return _line([given, *more]) if more and isinstance(given, str) else _line(given)

    @property
    def line_argument(self) -> str:
        """The argument that holds the command line, or the program of one."""
        names = list(listed("script_arguments"))
        names += [parameter(self.schema, names[0], 0)] if shell_like(self.tool) and self.schema else []
        return next((name for name in names if _line(self.args.get(name))), "")

    @property
    def words(self) -> tuple[str, ...] | None:
        return plain_words(self.line) if self.line else None

    @property
    def program(self) -> str:
        """What was called, by a name that may be kept: the program of a command, else the tool."""
        name = program(self.words) if self.line else self.tool
        return name if re.fullmatch(r"[\w.+:-]{1,60}", name) else ""


class Situation(NamedTuple):
    kind: Kind
    tools: Tools
    catalog: Catalog
    message: str = ""
    text: str = ""  # the output of the call
    names: Mapping[str, str] = NOTHING_GIVEN
    where: tuple[tuple[str, int | None], ...] = ()
    call: Call = Call()
    around: Surroundings = Surroundings()
    preferences: Preferences = Preferences()
    task_type: TaskType = ""
    reset: float | None = None  # seconds until a stated limit ends

    def table(self, name: str) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self.catalog.tables.get(name, {})
        return table

    @property
    def is_command(self) -> bool:
        """Whether a shell ran the call, rather than a tool of the caller's with arguments of its own."""
        return bool(self.call.line) and (not self.call.tool or self.tools.is_shell(self.call.tool))

    def schema(self, tool: str | None) -> Any:
        """Return the schema of a tool's arguments, where the caller gave it."""
        own = self.call.schema if tool == self.call.tool else None
        return own if own is not None else self.tools.schemas.get(tool or "")

    def rendered(self, operation: Operation) -> Rendered:
        """Return the call of the caller's tool that does this, in the shell of the failed call where it needs one."""
        tool, argument = self.call.tool, self.call.line_argument
        known = self.tools.is_shell(tool) and self.tools.has(tool) and argument
        return self.tools.render(operation, OwnShell(tool, argument, self.call.args) if known else None)

    @property
    def broken(self) -> str:
        """How the arguments break the schema of their tool, where that is what failed."""
        args, schema = self.call.args, self.call.schema
        if self.kind != Kind.INVALID_ARGUMENTS or self.is_command or schema is None:
            return ""
        return next(iter((*breaks(typed(args, schema), schema), *breaks(args, schema))), "")

    @property
    def failed_part(self) -> str:
        """The one command of a line that complains, if running the line again does nothing twice; empty if there is none."""
        line = self.call.line if self.is_command and self.call.words is None else ""
        every = parts(line[:MOST_READ])
        named = [part for part in every if line.count(part) == 1 and self._complains(plain_words(part))]
        if len(named) != 1:
            return ""
        before, _, after = line.partition(named[0])
        others = (*parts(before), *(() if re.fullmatch(shape("never_run"), after) else parts(after)))
        twice = (words for part in others if (words := tuple(part.split())) and words[0] not in listed("of_one_shell"))
        return named[0] if all(map(self.repeatable, twice)) else ""

    def _complains(self, words: tuple[str, ...] | None) -> bool:
        says = rf"(?mi)^(?:usage: |\S*/)?{re.escape(program(words))}:? "
        return words is not None and bool(re.search(says, self.text[-8_000:]))

    # --- the call once more, which is how every way proves itself ---

    def again(
        self,
        action: str,
        *,
        words: tuple[str, ...] | None = None,
        script: str | None = None,
        args: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] = NOTHING_GIVEN,
        expects: Expects = NOTHING_MORE,
    ) -> Step:
        """Return the call once more: with other words, another script or other arguments where they are given."""
        said = "The call succeeds"
        other = words not in {None, self.call.words} or script not in {None, self.call.line}
        guessed = other and destroys(self.call.line)  # what was not said is never destroyed unasked
        if words is None and script is None and (args is not None or not self.is_command):
            own = dict(self.call.args if args is None else args)
            return Step(action, Use(self.call.tool, own), said, self.calling(self.call.tool), expects, again=True)
        words = words or (self.call.words if script is None else None)
        if words is not None:
            words = loud(words)
            risk: Risk = "destructive" if guessed else "safe" if self.repeatable(words) else self._repeating(words)
            return Step(action, Shell(words, timeout, env), said, risk, promised(words, expects), again=True)
        text = self.call.line if script is None else script
        operation = Shell(("bash", "-c", text), timeout, env) if env else Script(text, timeout)
        risks = [self._repeating(tuple(part.split())) for part in parts(text)]
        risk = "destructive" if guessed else max(risks, key=RISKS.index, default="caution")
        return Step(action, operation, said, risk, expects, again=True)

    def served(self, action: str, number: int, step: Step | None = None) -> Step:
        """Return the call, or a changed form of it, as one that listens on a port: it does, or it ends by itself."""
        step = step or self.again(action)
        checks = role(self.call.line, self.call.tool)
        if checks or not isinstance(step.operation, Shell | Script):
            return step
        operation = step.operation._replace(timeout=SERVER_SECONDS)
        expects = step.expects._replace(listens=number)
        return step._replace(operation=operation, expects=expects, expected=f"It listens on port {number}")

    def wrapped(
        self,
        action: str,
        text: str,
        *first: str,
        expected: str = "It ends with exit code 0",
        timeout: float | None = None,
        env: Mapping[str, str] = NOTHING_GIVEN,
        risk: Risk | None = None,
        expects: Expects = NOTHING_MORE,
    ) -> Step:
        """Return the call inside a fixed script, which gets its words as arguments and is as harmless as they are."""
        words = self.call_words()
        operation = Shell(("bash", "-c", text, REMEDY, *first, *words), timeout, env)
        return Step(action, operation, expected, risk or self.again("").risk, promised(words, expects), again=True)

    def changed(
        self,
        action: str,
        word: Callable[[str], str],
        line: Callable[[str], str],
        keys: Container[str] | None = None,
        **more: Any,
    ) -> Step | None:
        """Return the call with its arguments, its words or its line changed; None if that changes nothing."""
        if not self.is_command:
            args = {
                key: self._otherwise(value, word) if isinstance(value, str) and (keys is None or key in keys) else value
                for key, value in self.call.args.items()
            }
            return self.again(action, args=args) if self.call.tool and args != dict(self.call.args) else None
        if self.call.words is not None:
            words = tuple(map(word, self.call.words))
            if words != self.call.words:
                return self.again(action, words=words, **more)
        text = line(self.call.line)
        return self.again(action, script=text, **more) if text != self.call.line else None

    def _otherwise(self, value: str, word: Callable[[str], str]) -> str:
        """Return an argument that is changed as a word is; an address of a file stays one."""
        new = word(local_path(value))
        return value if new == local_path(value) else file_address(self.around.cwd, new) if "://" in value else new

    def known_repair(self) -> Step | None:
        """Return the call as the catalogue says that it has to be, where its program complains in known words."""
        line = self.call.line.strip()
        words = self.call.words or _unglobbed(line) if self.is_command else None
        for says, wrong, right in self.table("repairs").get(program(words), ()) if words else ():
            if not words or not re.search(says, self.text[-8_000:]):
                continue
            fixed = tuple(new for word in words for new in _repaired(word, wrong, right) if new)
            if self.call.words is None and wrong:  # its patterns are still the shell's to read
                script = f"{shlex.join(_repaired(words[0], wrong, right))}{line.removeprefix(words[0])}"
                if script != line:
                    return self.again(f"Call it as {script}", script=script)
            elif fixed != self.call.words:
                switches = words[:2] == ("git", "checkout") and len(words) == 3  # noqa: PLR2004  # to a branch, and no file is named
                step = self.again(f"Call it as {shlex.join(fixed)}", words=fixed)
                return step._replace(risk="caution") if switches else step
        return None

    def call_words(self) -> tuple[str, ...]:
        """Return the call as arguments: its own words, or a shell that reads it."""
        if not self.is_command:
            no_way("the call is not a command")
        return loud(self.call.words) if self.call.words else ("bash", "-c", self.call.line)

    def _repeating(self, words: tuple[str, ...]) -> Risk:
        """Return the risk of a call that is made again: grave if it may have had its effect on others already."""
        begins = [word for word in words[:4] if not word.startswith("-")]
        named = set().union(*map(name_words, begins))
        sends = program(words) in self.table("outward")["senders"] and self._changes(words)
        reached = self.kind in MAYBE_DONE and not re.search(shape("never_reached"), self.text[-8_000:])
        held_back = self.repeatable(words) or any(word.startswith("-") and restrains(word) for word in words)
        if reached and not held_back and (sends or self._elsewhere(named, starts(words))):
            return "destructive"
        return "caution"

    def calling(self, tool: str) -> Risk:
        """Return the risk of calling a tool: it only looks, or it was refused before it did anything that cannot be undone."""
        named = name_words(tool)
        looks = not named.isdisjoint(listed("reading")) and named.isdisjoint((*listed("changing"), *listed("removing")))
        if looks or (self.kind not in MAYBE_DONE and named.isdisjoint(listed("removing"))):
            return "safe"
        return "destructive" if self.kind in MAYBE_DONE and self._elsewhere(named, named) else "caution"

    def _elsewhere(self, named: set[str], calls: set[str]) -> bool:
        """Whether what these words name has its effect elsewhere: it deploys, sends, publishes, or tells another machine to."""
        table = self.table("outward")
        remote = not calls.isdisjoint(table["calls"]) and named.isdisjoint((*listed("reading"), *table["reading"]))
        return remote or not named.isdisjoint(table["words"])

    def _changes(self, words: tuple[str, ...]) -> bool:
        """Whether an option lets a program that otherwise only reads change something."""
        forbidden = self.table("repeatable").get("unless", {}).get(program(words), ())
        return any(word.split("=")[0] in forbidden or _bundled(word, forbidden) for word in words[1:])

    def repeatable(self, words: tuple[str, ...]) -> bool:
        """Whether these words may be run again without asking: they only read, or were made to be repeated."""
        table, name = self.table("repeatable"), program(words)
        if name in {"sh", "bash"}:
            return False
        if self._changes(words):
            return False
        return name in table.get("programs", ()) or not starts(words).isdisjoint(table.get("calls", ()))


def _repaired(word: str, wrong: str, right: list[str]) -> list[str]:
    found = re.fullmatch(wrong, word)
    return [found.expand(new) for new in right] if found else [word]


def _unglobbed(line: str) -> tuple[str, ...] | None:
    """Return the words of a command that needs a shell for nothing but its patterns, which are left as they are."""
    return tuple(shlex.split(line)) if plain_words(re.sub(r"[*?\[\]]", "x", line)) else None


def starts(words: tuple[str, ...]) -> set[str]:
    """Return what the tables of calls may name a call by: its program, with one and with two more words."""
    return {" ".join((program(words), *words[1:end])) for end in (1, 2, 3)}


def promised(words: tuple[str, ...], expects: Expects = NOTHING_MORE) -> Expects:
    """Return what must hold after a call: the file that a download writes is there, and is what its name says."""
    target = download_target(words)
    return expects._replace(exists=(*expects.exists, target), sound=(*expects.sound, target)) if target else expects


def _line(value: Any) -> str:
    """Return a command line that is given as one, or as a list of words."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not value or not all(isinstance(word, str) for word in value):
        return ""
    wrapped = len(value) == 3 and program(tuple(value)) in {"sh", "bash", "zsh"} and value[1] in {"-c", "-lc"}  # noqa: PLR2004
    return str(value[2]) if wrapped else shlex.join(value)


def _bundled(word: str, options: tuple[str, ...]) -> bool:
    """Whether a bundle of short options, as in `-sXPOST`, holds one of these."""
    letters = {option[1:] for option in options if not option.startswith("--") and option[2:] == ""}
    return word.startswith("-") and not word.startswith("--") and not letters.isdisjoint(word[1:])


# --- what a failure is about: the path, address, port, command or lock that its output or its call names ----------

LOWEST_FREE_PORT, HIGHEST_PORT = 1024, 65535
MOST_READ = 100_000


def _said(s: Situation) -> tuple[str, str]:
    return s.message, s.text[-8_000:]


def _paths() -> Iterator[str]:
    """Yield what the paths in messages look like: reasons and quotes stand in them as `<why>`, `<` and `>`."""
    for pattern in shipped_table("chains")["paths"]["shapes"]:
        quoted = pattern.replace("<why>", shape("reasons")).replace("<(", "['\"\u2018\u201c`](")
        yield quoted.replace(")>", ")['\"\u2019\u201d]")


def path(s: Situation) -> str:
    """Return the path that the failure is about; empty if none is named."""
    if not s.is_command:
        for name in listed("path_keys"):
            value = s.call.args.get(name)
            if isinstance(value, str) and "\0" not in value and local_path(value):
                return local_path(value)
    for text in _said(s):
        for pattern in _paths():
            found = re.search(pattern, text)
            if found and not _is_none(found, s.call.line):
                return found[1]
    return next((file for file, _ in s.where if file), "")


def places(s: Situation) -> list[tuple[str, int | None]]:
    """Return the places that the output names: what it is about first, then where a traceback ends, and failing tests."""
    text = s.text[-MOST_READ:]
    frames = [(file, int(line)) for file, line in re.findall(shape("frame"), text)]
    tests = [(file, None) for file in re.findall(shape("failed_test"), text)]
    return list(dict.fromkeys((*s.where, *reversed(frames), *tests)))


def _is_none(found: re.Match[str], line: str) -> bool:
    """Whether what stands where a path stands in messages is none: an address, or words of the message's own."""
    name, quoted = found[1], found.string[: found.start(1)].endswith(("'", '"', "`", "\u2018", "\u201c"))
    words = " " in name and not quoted and name not in line
    return words or "\0" in name or bool(address(name) or re.fullmatch(shape("no_path"), name))


def url(s: Situation) -> Address | None:
    """Return the address that was called, from the call first."""
    values = [value for value in s.call.args.values() if isinstance(value, str)]
    texts = (s.call.line, *values, *_said(s))
    return next(filter(None, (*map(address, texts), *map(ssh_address, s.call.words or ()))), None)


def host(s: Situation) -> str:
    found = url(s)
    return found.place if found else ":".join(filter(None, _groups(s, "server")))


def port(s: Situation) -> int | None:
    """Return the port that is taken."""
    for text in (*_said(s), s.call.line):
        for found in re.finditer(shape("port"), text):
            number = int(found[1] or found[2])
            if number <= HIGHEST_PORT:
                return number
    named = map(int, re.findall(r"(?<![\w.=/])\d{2,5}(?![\w.])", s.call.line))
    likely = sorted(
        (number for number in named if number <= HIGHEST_PORT), key=lambda number: number < LOWEST_FREE_PORT
    )
    return next(iter(likely), None)


def command(s: Situation) -> str:
    """Return the program that is missing."""
    named = s.names.get("command", "")
    if named:
        return named.rsplit("/", 1)[-1] if "/" not in named.strip("./") else named
    return _named(s, "not_found") or (s.call.words or ("",))[0]


def lock(s: Situation) -> str:
    """Return the lock file that stands in the way."""
    return _named(s, "lock")


def package(s: Situation) -> str:
    """Return the package or module that is missing."""
    return next(iter(s.names.values()), "")


def home_of(s: Situation) -> str:
    """Return the package of the project's own that should have held a missing module; empty for what others provide."""
    top, dot, _ = package(s).partition(".")
    return top if dot and top in s.around.root_names else ""


def variable(s: Situation) -> str:
    """Return the variable that is not set."""
    return s.names.get("env", "") or _named(s, "variable")


def _named(s: Situation, name: str) -> str:
    return next(filter(None, _groups(s, name)), "")


def _groups(s: Situation, name: str) -> Sequence[str]:
    found = next(filter(None, (re.search(shape(name), text) for text in _said(s))), None)
    return found.groups() if found else ()


def blanks(s: Situation) -> dict[str, str]:
    """Return what fills the blanks of a question, as far as it is known."""
    called = command(s) if s.kind == Kind.COMMAND_NOT_FOUND else s.call.line
    taken = port(s) if s.kind == Kind.PORT_IN_USE else None
    named, home, asked = package(s), home_of(s), url(s) if s.kind == Kind.FILE_NOT_FOUND else None
    where = (s.around.full or s.around.cwd) if s.kind == Kind.DISK_FULL else lock(s) or path(s)
    gone = s.around.gone
    return {
        "gone": f"{gone.old} was {gone.told}" if gone else "",
        "command": called or s.call.tool,
        "call": s.call.line if s.is_command else s.call.tool,
        "tool": s.call.tool or (s.call.words or ("",))[0],
        "path": where or (asked.text if asked else ""),
        "host": host(s)
        or (f"the server that `{s.call.line}` asks" if s.call.line and s.kind == Kind.NETWORK_ERROR else ""),
        "port": f"port {taken}" if taken else "",
        "package": f"{named}, which the project's own {home} does not have" if home else named,
        "env": variable(s),
        "message": s.broken or s.message or s.text.strip()[-200:] or "it failed without a word",
    }
