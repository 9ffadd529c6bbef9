"""Look up stacks, their test runners and their tools in the table of stacks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from unstuck.model.verdict import CheckKind
from unstuck.shipped import shipped_toml
from unstuck.toolchain.shell import ENDS, QUOTED, before_program, programs

Signs = Sequence[Sequence[str]]
"""Files or patterns, each with a regular expression that it must match; any of them is a sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A command that makes a fresh checkout ready."""

    shown_by: Signs
    manager: str
    line: str
    makes: str = ""
    """The folder that it fills."""
    extra: str = ""
    group: str = ""
    each: str = ""
    """The argument for one requirement file."""
    runs: str = ""
    """The Python interpreter after the set-up."""
    alone: str = ""
    """The Python interpreter without a set-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A check that must hold after every task, where its signs exist."""

    kind: CheckKind
    line: str
    needs: str = ""
    shown_by: Signs = ()
    scripts: Sequence[str] = ()
    fallback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectiveRunner:
    """A test runner that can run some files only."""

    name: str
    shows: str
    """Matches the start of a simple command."""
    keeps: str
    """The part of the command that stays."""
    item: str
    """The argument for one file."""
    takes: str
    """Matches the files that the runner can run."""
    between: str = " "
    ran: str = ""
    """Matches the output of a run with tests, where the usual counts do not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The rows of the table about one stack."""

    name: str
    shows: Sequence[str]
    bare: Sequence[str] = ()
    """Signs of the stack where no manifest shows any: a script with a test needs no manifest."""
    manifests: Sequence[str] = ()
    tests: Sequence[str] = ()
    """Where its tests may be."""
    settings: Sequence[str] = ()
    locks: Sequence[str] = ()
    setup: Sequence[Setup] = ()
    gate: Sequence[Gate] = ()
    runner: Sequence[SelectiveRunner] = ()
    checking: Sequence[str] = ()
    developing: Sequence[str] = ()
    linting: Sequence[str] = ()
    requirements: Sequence[str] = ()


@cache
def toolchains() -> tuple[Toolchain, ...]:
    return tuple(map(_toolchain, shipped_toml("toolchains")["stack"]))


def _toolchain(row: Mapping[str, Any]) -> Toolchain:
    tests = row.get("tests", ())
    gates = [
        Gate(**{**gate, "shown_by": _with_test_files(gate.get("shown_by", ()), tests)}) for gate in row.get("gate", ())
    ]
    setups = [Setup(**setup) for setup in row.get("setup", ())]
    runners = [SelectiveRunner(**runner) for runner in row.get("runner", ())]
    return Toolchain(**{**row, "setup": setups, "gate": gates, "runner": runners})


def _with_test_files(signs: Signs, tests: Sequence[str]) -> Signs:
    """Return the signs with the places of tests instead of the name {tests}."""
    spread: list[tuple[str, str]] = []
    for name, pattern in signs:
        names = tests if name == "{tests}" else (name,)
        spread += [(file, pattern) for file in names]
    return spread


def judging_files() -> tuple[str, str]:
    """Return regular expressions of the names of settings and of lock files of all stacks."""
    settings = [name for chain in toolchains() for name in chain.settings]
    locks = [name for chain in toolchains() for name in chain.locks]
    return "|".join(settings), "|".join(locks)


def manifest_files() -> tuple[str, ...]:
    """Return the names of files in which projects list what they need."""
    names: list[str] = []
    for chain in toolchains():
        names += [*chain.manifests, *chain.shows]
        names += [file for setup in chain.setup for file, _ in setup.shown_by]
    return tuple(dict.fromkeys(name for name in names if not re.search(r"[*?\[]", name)))


# --- selecting test files ---------------------------------------------------------------------------------

_PLAIN_PATH = re.compile(r"[\w./-]+", re.ASCII)
"""Folders and stems that need no quotes."""


def selecting_command(commands: Iterable[str], files: Sequence[str]) -> str | None:
    """Return a command that runs only these test files, or None if no check shows how."""
    for command in commands:
        for part in _parts_in_root(command):
            before = before_program(part)
            for runner in _runners():
                match = re.match(runner.shows, part[len(before) :])
                own_files = [file for file in sorted(files) if re.search(runner.takes, file)]
                items = _file_arguments(runner, own_files) if match and own_files else []
                if match and items:
                    return _selecting_line(runner, before, match, items)
    return None


def _selecting_line(runner: SelectiveRunner, before: str, match: re.Match[str], items: Sequence[str]) -> str:
    line = before + match.expand(runner.keeps) if runner.keeps else ""
    space = " " if line and not line.endswith((" ", "=")) else ""
    arguments = [item.replace(r"\1", before + match[1]) for item in dict.fromkeys(items)]
    return line + space + runner.between.join(arguments)


def is_plain_run(command: str) -> bool:
    """Return whether the line is one test run only, so that its exit code is the runner's own."""
    bare = QUOTED.sub("''", command).strip()
    return not ENDS.search(bare) and not bare.startswith("!") and _runner(bare) is not None


def shows_tests(command: str, output: str) -> bool:
    """Return whether the output of a runner says in its own way that it ran tests."""
    runner = _runner(command)
    return runner is not None and bool(runner.ran) and re.search(runner.ran, output, re.MULTILINE) is not None


def _runner(command: str) -> SelectiveRunner | None:
    bare = command.strip()
    bare = bare[len(before_program(bare)) :]
    return next((runner for runner in _runners() if re.match(runner.shows, bare)), None)


def _runners() -> Iterator[SelectiveRunner]:
    return (runner for chain in toolchains() for runner in chain.runner)


def _parts_in_root(command: str) -> list[str]:
    """Return the simple commands of a line, or nothing if it changes the folder."""
    parts = [part.strip() for part in ENDS.split(command)]
    return [] if any(part.startswith(("cd ", "(cd ")) for part in parts) else parts


def _file_arguments(runner: SelectiveRunner, files: Sequence[str]) -> list[str]:
    """Return the argument for each file, or nothing if one of them cannot be written safely."""
    arguments = []
    for file in files:
        folder, _, name = file.rpartition("/")
        stem = name.partition(".")[0]
        if "{path}" in runner.item:
            safe = file.replace("'", "'\"'\"'")  # file names are foreign text
            arguments.append(runner.item.replace("{path}", f"'./{safe}'"))
        elif _PLAIN_PATH.fullmatch(stem) and _PLAIN_PATH.fullmatch(folder or "."):
            item = runner.item.replace("{folder}", folder).replace("{stem}", stem)
            arguments.append(item.replace("{bare}", file))
        else:
            return []
    return arguments


# --- looking without repairs ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fixer:
    """A tool that may repair what it should check."""

    shows: str
    """Matches the start of a simple command."""
    asks: str
    """The form that only looks, for people."""
    writes: str = ""
    """Matches the option that repairs files."""
    looks: str = ""
    """The text in its place."""


# fmt: off
FIXERS = (
    Fixer(r"ruff\s+format", "--check", r"\bruff\s+format\b(?!.*--(?:check|diff))", "ruff format --check"),
    Fixer(r"ruff", "--no-fix", r"\s--fix\b", " --no-fix"),
    Fixer(r"prettier", "--check", r"\s(?:--write|-w)\b", " --check"),
    Fixer(r"(?:black|isort)", "--check", r"\b(black|isort)\b(?!.*--(?:check|diff))", r"\1 --check"),
    Fixer(r"rustfmt|dprint|nixfmt|google-java-format|yapf", "--check"),
    Fixer(r"cargo\s+fmt", "--check", r"\bcargo\s+fmt\b(?!.*--check)", "cargo fmt --check"),
    Fixer(r"(?:cargo|mix|deno|dart|terraform|tofu|zig|biome|pint)\s+(?:fmt|format)", "--check"),
    Fixer(r"biome", "no --write", r"\s--(?:write|apply|apply-unsafe|fix)\b", ""),
    Fixer(r"go\s+mod\s+tidy", "-diff"),
    Fixer(r"(?:gofmt|gofumpt|goimports)", "-l instead of -w"),
    Fixer(r"(?:eslint|stylelint|golangci-lint|standard|semistandard|xo|markdownlint\S*|oxlint|tslint|autoflake|\S+\s+clippy)", "no --fix (rubocop: no -a)", r"\s--fix(?:=\S+)?(?=\s|$)", ""),
    Fixer(r"rubocop", "no --fix (rubocop: no -a)", r"\s(?:-a|-A|-x|--auto-?correct(?:-all)?|--fix-layout)(?=\s|$)", ""),
    Fixer(r"clippy", "no --fix (rubocop: no -a)"),
    Fixer(r"(?:jest|vitest)", "--ci, and no -u", r"\s(?:-u|--update(?:Snapshot)?)(?=\s|$)", ""),
    Fixer(r"(?:npm|pnpm|yarn|bun)\s+(?:i|install|add)", "`npm ci`, `pnpm install --frozen-lockfile`, `yarn install --immutable`"),
    Fixer(r"(?:uv|poetry|pdm|cargo|bundle)\s", "--locked or --frozen"),
)
# fmt: on


def checking_form(command: str) -> str:
    """Return how to ask the tool of a command to only look, or an empty string."""
    for fixer in FIXERS:
        if any(re.match(fixer.shows, part) for part in programs(command)):
            return fixer.asks
    return ""


def looking_line(command: str) -> str:
    """Return a line with every known tool in the form that changes no file."""
    for fixer in FIXERS:
        if fixer.writes and any(re.match(fixer.shows, part) for part in programs(command)):
            command = re.sub(fixer.writes, fixer.looks, command)
    return command
