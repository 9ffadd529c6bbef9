"""The one table of stacks, as values: what shows them, sets them up, checks them and judges them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from unstuck.model.verdict import CheckKind
from unstuck.shipped import shipped_table
from unstuck.toolchain.shell import ENDS, QUOTED, before_program, programs

Signs = Sequence[Sequence[str]]
"""Files or patterns, each with a regular expression that it must hold; any of them shows."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What makes a fresh checkout ready."""

    shown_by: Signs
    manager: str
    line: str
    makes: str = ""
    extra: str = ""
    group: str = ""
    each: str = ""
    runs: str = ""
    alone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What must hold after every task, where its signs are there."""

    kind: CheckKind
    line: str
    needs: str = ""
    shown_by: Signs = ()
    scripts: Sequence[str] = ()
    fallback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A stack: all rows about it."""

    name: str
    shows: Sequence[str]
    bare: Sequence[str] = ()
    """What shows it where nothing else shows anything: a script with a test needs no manifest."""
    manifests: Sequence[str] = ()
    tests: Sequence[str] = ()
    """Where its tests may lie."""
    settings: Sequence[str] = ()
    locks: Sequence[str] = ()
    setup: Sequence[Setup] = ()
    gate: Sequence[Gate] = ()
    runner: Sequence[Row] = ()
    """Test runners that can be asked for some files only."""
    checking: Sequence[str] = ()
    developing: Sequence[str] = ()
    linting: Sequence[str] = ()
    requirements: Sequence[str] = ()


@cache
def toolchains() -> tuple[Toolchain, ...]:
    return tuple(map(_chain, shipped_table("toolchains")["stack"]))


def _chain(row: Row) -> Toolchain:
    setup = [Setup(**one) for one in row.get("setup", ())]
    gate = [Gate(**{**one, "shown_by": _spread(one.get("shown_by", ()), row)}) for one in row.get("gate", ())]
    return Toolchain(**{**row, "setup": setup, "gate": gate})


def _spread(signs: Signs, row: Row) -> Signs:
    """Put all places where tests may lie in the place of their name."""
    return [(one, text) for name, text in signs for one in (row["tests"] if name == "{tests}" else (name,))]


def _fixers() -> Sequence[Row]:
    """Return the tools that may repair what they should check, and how they are asked not to."""
    found: Sequence[Row] = shipped_table("toolchains")["fixer"]
    return found


def judges() -> tuple[str, str]:
    """Return regular expressions of the names of files that say what passes, of all stacks: settings, and locks."""
    chains = toolchains()
    return "|".join(one for row in chains for one in row.settings), "|".join(one for row in chains for one in row.locks)


def manifest_files() -> tuple[str, ...]:
    """Name the files in which projects say what they need; a checkout is set up anew when one of them changes."""
    named = (
        (*one.manifests, *one.shows, *(file for row in one.setup for file, _ in row.shown_by)) for one in toolchains()
    )
    return tuple(dict.fromkeys(name for some in named for name in some if not re.search(r"[*?\[]", name)))


# --- what test runners and formatters can be asked for: some test files only, or a look without repairs

_PLAIN = re.compile(r"[\w./-]+", re.ASCII)
"""Folders and stems that need no quotes."""


def selecting(commands: Iterable[str], files: Sequence[str]) -> str | None:
    """Return a command that runs these test files and no others; None where no check shows how."""
    for command in commands:
        for part in _parts(command):
            before = before_program(part)
            for runner in _runners():
                shown = re.match(runner["shows"], part[len(before) :])
                mine = [file for file in sorted(files) if re.search(runner["takes"], file)]
                if shown and mine and (items := _items(runner, mine)):
                    line = before + shown.expand(runner["keeps"]) if runner["keeps"] else ""
                    space = " " if line and not line.endswith((" ", "=")) else ""
                    between: str = runner.get("between", " ")
                    return (
                        line
                        + space
                        + between.join(item.replace(r"\1", before + shown[1]) for item in dict.fromkeys(items))
                    )
    return None


def is_plain_run(command: str) -> bool:
    """Whether the line is one test run and nothing else, so that its exit code is the runner's own."""
    bare = QUOTED.sub("''", command).strip()
    return not ENDS.search(bare) and not bare.startswith("!") and _runner(bare) is not None


def shows_tests(command: str, output: str) -> bool:
    """Whether the output of a runner says in its own way that it ran tests."""
    runner = _runner(command) or {}
    return "ran" in runner and re.search(runner["ran"], output, re.MULTILINE) is not None


def checking_form(command: str) -> str:
    """Say how the tool of a command is asked to look without repairing; empty where the table does not know it."""
    asked = (fixer["asks"] for fixer in _fixers() for part in programs(command) if re.match(fixer["shows"], part))
    return next(asked, "")


def looking_line(command: str) -> str:
    """Return a line with every tool in it in the form that changes no file, as far as the table knows one."""
    for fixer in _fixers():
        if "writes" in fixer and any(re.match(fixer["shows"], part) for part in programs(command)):
            command = re.sub(fixer["writes"], fixer.get("looks", ""), command)
    return command


def _runner(command: str) -> Row | None:
    plain = command.strip()
    plain = plain[len(before_program(plain)) :]
    return next((runner for runner in _runners() if re.match(runner["shows"], plain)), None)


def _parts(command: str) -> list[str]:
    """Return the simple commands of a line that begins where the checks begin; a changed folder is not followed."""
    parts = [part.strip() for part in ENDS.split(command)]
    return [] if any(part.startswith(("cd ", "(cd ")) for part in parts) else parts


def _items(runner: Row, files: Sequence[str]) -> list[str]:
    """Write each file as the runner wants it; nothing where one of them cannot be written safely."""
    items = []
    for file in files:
        folder, _, name = file.rpartition("/")
        stem = name.partition(".")[0]
        if "{path}" in runner["item"]:
            safe = file.replace("'", "'\"'\"'")  # quoted for the shell: file names are foreign text
            items.append(runner["item"].replace("{path}", f"'./{safe}'"))
        elif _PLAIN.fullmatch(stem) and _PLAIN.fullmatch(folder or "."):
            items.append(runner["item"].replace("{folder}", folder).replace("{stem}", stem).replace("{bare}", file))
        else:
            return []
    return items


def _runners() -> Iterator[Row]:
    return (runner for chain in toolchains() for runner in chain.runner)
