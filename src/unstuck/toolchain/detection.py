"""Detect the stacks of a repository with the checks, set-ups and folders that fit them."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.git.git_command import Git
from unstuck.git.untracked_files import UnsafeCopy, unsafe_copies
from unstuck.model.verdict import Check, CheckKind
from unstuck.toolchain.python_needs import (
    NOT_OWN_FOLDERS,
    VENVS,
    PythonNeeds,
    has_sign,
    project_files,
    python_needs,
    text_of,
)
from unstuck.toolchain.toolchains import Gate, Setup, Toolchain, looking_line, toolchains

NPM_PLACEHOLDER_TEST = "no test specified"
"""Written by `npm init` into a package that has no tests."""
LOCAL_PROGRAMS = 'export PATH="$PWD/node_modules/.bin:$PATH" && '
"""Lets npm find the programs of a script."""
MOST_PARTS = 20
UNCHECKED_PART = "{part} ({stack}) is a project of its own, which nothing at the top is known to check: name what must hold there under [checks]."
NODE_MANAGERS = ("npm", "pnpm", "yarn", "bun")
COPIED_NAMES = (".env", ".env.local", ".env.test", ".venv", "venv", "node_modules", "vendor", "target")
"""Files and folders that a project often needs and git often ignores."""
PART_FOLDERS = ("*", "packages/*", "apps/*", "services/*", "libs/*", "crates/*", "modules/*")
"""Where the parts of a monorepo are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A check that fits, with the commands that could be it, the best first."""

    stack: str
    kind: CheckKind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The languages of a repository, and proposals that a run or a person must confirm."""

    languages: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    copy: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    """The folders that the set-up fills."""
    instead: tuple[str, ...] = ()
    """Folders to copy where the set-up cannot run."""
    notes: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """Return the first command of each proposal."""
        return joined_checks([(proposal.kind, proposal.lines[0]) for proposal in self.proposals])


def joined_checks(lines: Sequence[tuple[CheckKind, str]]) -> tuple[Check, ...]:
    """Return one check for each kind, in which all lines of the kind must hold."""
    checks = []
    for kind in dict.fromkeys(kind for kind, _ in lines):
        of_kind = dict.fromkeys(line for line_kind, line in lines if line_kind == kind)
        checks.append(Check(kind=kind, command=" && ".join(of_kind)))
    return tuple(checks)


def detect(root: Path, *, as_it_is: bool = False, has: Callable[[str], object] = shutil.which) -> Stack:
    """Return the stack that the files of a repository show. Nothing is run.

    `as_it_is` proposes only checks with installed programs, and no set-up. `has` finds a program of this machine.
    """
    search = _Search(has_setup=not as_it_is, has=has)
    stack, notes = _stack_of_folder(root, search), []
    top_languages = stack.languages
    without_manifest = stack if top_languages else _stack_of_folder(root, search, is_bare=True)
    parts = _parts(root, search, is_bare=not without_manifest.languages)
    if top_languages:
        for part, part_stack in parts:
            unchecked = [name for name in part_stack.languages if name not in top_languages]
            notes += [UNCHECKED_PART.format(part=part.relative_to(root), stack=name) for name in unchecked]
    else:
        placed = [_in_folder(inner, shlex.quote(str(part.relative_to(root)))) for part, inner in parts]
        stack = _merged([without_manifest, *placed])
    copy, copy_notes = _copies(root)
    return replace(
        stack,
        copy=tuple(name for name in copy if name not in stack.makes),
        instead=tuple(name for name in copy if name in stack.makes),
        notes=(*notes, *(() if stack.setup else copy_notes)),
    )


def way_around(root: Path, unsafe: UnsafeCopy) -> str:
    """Return what to do about a folder that cannot be copied."""
    lines = detect(root).setup
    return f"Make it anew instead: setup = {json.dumps(lines)} in `[workspace]`." if lines else unsafe.suggestion


def is_present(check: Check, root: Path) -> bool:
    """Return whether the program of a proposed check is installed, or the Python module that it runs."""
    line = re.sub(r"^\(cd [^&]+&& ", "", check.command)
    words = line.split()
    program = shutil.which(words[0]) or shutil.which(str(root / words[0]))
    if program is None:
        return False
    if words[1:2] != ["-m"]:
        return words[0] not in NODE_MANAGERS or (root / "node_modules").is_dir()
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({words[2]!r}) is None)"
    return subprocess.run([program, "-I", "-c", script], capture_output=True, check=False).returncode == 0


# --- one folder -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Options of the search for stacks."""

    has_setup: bool
    has: Callable[[str], object]

    def setup(self, folder: Path, chain: Toolchain) -> Setup | None:
        """Return the set-up that fits, preferably one whose program this machine has."""
        setups = [setup for setup in chain.setup if has_sign(folder, setup.shown_by)]
        runnable = [setup for setup in setups if setup.line.startswith("./") or self.has(setup.line.split(" ", 1)[0])]
        return next(iter((*runnable, *setups)), None)


def _stack_of_folder(folder: Path, search: _Search, *, is_bare: bool = False) -> Stack:
    stacks: list[Stack] = []
    for chain in toolchains():
        signs = (*chain.shows, *(chain.bare if is_bare else ()))
        if chain.shows and not has_sign(folder, tuple((name, "") for name in signs)):
            continue
        kinds = {proposal.kind for stack in stacks for proposal in stack.proposals}
        stack = _stack_of_chain(folder, chain, kinds, search)
        if stack.languages:
            stacks.append(stack)
    return _merged(stacks)


def _stack_of_chain(folder: Path, chain: Toolchain, kinds: set[CheckKind], search: _Search) -> Stack:
    """Return what one stack proposes, with fallbacks only for kinds that no other stack has."""
    setup = search.setup(folder, chain)
    needs = python_needs(folder, chain, setup.manager if setup else "") if chain.checking else None
    used_setup = setup if search.has_setup else None
    values = _template_values(folder, used_setup, setup) | {"tests": _test_folder(folder, chain)}
    lines: dict[CheckKind, list[str]] = {}
    for gate in chain.gate:
        if gate.fallback and (gate.kind in kinds or lines.get(gate.kind)):
            continue
        if gate.scripts:
            lines.setdefault(gate.kind, []).extend(_script_lines(folder, gate, values))
        elif has_sign(folder, gate.shown_by) and _is_declared(folder, chain, gate, needs, used_setup):
            lines.setdefault(gate.kind, []).append(gate.line.format(**values).rstrip())
    proposals = tuple(
        Proposal(stack=chain.name, kind=kind, lines=tuple(of_kind)) for kind, of_kind in lines.items() if of_kind
    )
    is_used = bool(proposals or chain.shows) and (chain.name != "node" or _package_json(folder) is not None)
    stack = Stack(languages=(chain.name,) if is_used else (), proposals=proposals)
    if not is_used or used_setup is None:
        return stack
    line = needs.install_command(used_setup) if needs else used_setup.line
    return replace(stack, setup=(line,), makes=(used_setup.makes,) if used_setup.makes else ())


def _is_declared(folder: Path, chain: Toolchain, gate: Gate, needs: PythonNeeds | None, setup: Setup | None) -> bool:
    """Return whether a manifest names the tool of a check, or no manifest exists."""
    if not gate.needs:
        return True
    if needs is not None:
        return setup is None or needs.names(gate.needs)
    pattern = rf"(?<![\w.-]){re.escape(gate.needs)}(?![\w.])"
    has_manifest = has_sign(folder, tuple((name, "") for name in chain.manifests))
    return not has_manifest or has_sign(folder, tuple((name, pattern) for name in chain.manifests))


def _template_values(folder: Path, setup: Setup | None, unused_setup: Setup | None) -> dict[str, str]:
    """Return the values for the blanks in the command lines of the table."""
    venv = next((name for name in VENVS if (folder / name / "pyvenv.cfg").is_file()), None)
    python = (unused_setup.alone if unused_setup else "") or (f"{venv}/bin/python" if venv else "python3")
    has_mypy_targets = {"files", "packages", "modules"} & _tool_settings(folder, "mypy").keys()
    return {
        "python": (setup.runs if setup else "") or python,
        "targets": "" if has_mypy_targets else ".",
        "sources": " ".join(sorted(path.parent.name for path in folder.glob("*/__init__.py"))) or ".",
        "manager": unused_setup.manager if unused_setup else "npm",
        "local": LOCAL_PROGRAMS,
    }


def _test_folder(folder: Path, chain: Toolchain) -> str:
    """Return the outermost folder that holds tests."""
    folders = [path.parent.relative_to(folder) for pattern in chain.tests for path in project_files(folder, pattern)]
    inner = sorted((path for path in folders if path.parts), key=lambda path: (len(path.parts), path))
    return shlex.quote(str(inner[0])) if inner else "."


def _script_lines(folder: Path, gate: Gate, values: dict[str, str]) -> Iterator[str]:
    """Yield the scripts of a package that a check could run, in the form that repairs no files."""
    scripts: Any = (_package_json(folder) or {}).get("scripts")
    for script in gate.scripts if isinstance(scripts, dict) else ():
        text = str(scripts.get(script, ""))
        if text and NPM_PLACEHOLDER_TEST not in text:
            looking = looking_line(text)
            yield LOCAL_PROGRAMS + looking if looking != text else gate.line.format(**values, script=script)


# --- several folders --------------------------------------------------------------------------------------


def _parts(root: Path, search: _Search, *, is_bare: bool) -> list[tuple[Path, Stack]]:
    """Return the folders that are projects of their own, with their stacks."""
    folders = sorted({path for pattern in PART_FOLDERS for path in root.glob(pattern) if path.is_dir()})
    own = [path for path in folders if path.name not in NOT_OWN_FOLDERS and not path.name.startswith(".")]
    parts = [(path, _stack_of_folder(path, search, is_bare=is_bare)) for path in own]
    return [(path, stack) for path, stack in parts if stack.languages][:MOST_PARTS]


def _merged(stacks: Sequence[Stack]) -> Stack:
    return Stack(
        languages=tuple(dict.fromkeys(name for stack in stacks for name in stack.languages)),
        proposals=tuple(proposal for stack in stacks for proposal in stack.proposals),
        setup=tuple(dict.fromkeys(line for stack in stacks for line in stack.setup)),
        makes=tuple(dict.fromkeys(name for stack in stacks for name in stack.makes)),
    )


def _in_folder(stack: Stack, folder: str) -> Stack:
    """Return a stack whose commands run in a folder."""
    proposals = []
    for proposal in stack.proposals:
        lines = tuple(f"(cd {folder} && {line})" for line in proposal.lines)
        proposals.append(replace(proposal, lines=lines))
    setup = tuple(f"(cd {folder} && {line})" for line in stack.setup)
    return replace(stack, proposals=tuple(proposals), setup=setup, makes=())


def _copies(root: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names to copy, and notes on names that would lead back into the user's checkout."""
    names = [name for name in COPIED_NAMES if (root / name).exists()]
    # `node_modules/` in .gitignore matches only a name with a slash.
    paths = "".join(f"{name}/\0" if (root / name).is_dir() else f"{name}\0" for name in names)
    answer = Git(root).attempt("check-ignore", "-z", "--stdin", stdin=paths).stdout if names else ""
    ignored = [name.rstrip("/") for name in answer.split("\0") if name]
    unsafe = {copy.name: copy for copy in unsafe_copies(root, ignored)}
    copies = tuple(name for name in ignored if name not in unsafe)
    return copies, tuple(copy.message for copy in unsafe.values())


def _tool_settings(root: Path, name: str) -> dict[str, Any]:
    try:
        settings = tomllib.loads(text_of(root / "pyproject.toml")).get("tool", {}).get(name, {})
    except tomllib.TOMLDecodeError:
        return {}
    return settings if isinstance(settings, dict) else {}


def _package_json(root: Path) -> dict[str, Any] | None:
    try:
        package = json.loads(text_of(root / "package.json"))
    except ValueError:
        return None
    return package if isinstance(package, dict) else None


# --- the description in autobuild's files -----------------------------------------------------------------

AUTOBUILD_NAMES: Mapping[CheckKind, str] = {
    "lint": "lint",
    "format": "format",
    "types": "typecheck",
    "test": "test",
}
MOST_MANIFEST_CHARS = 200_000
# fmt: off
LANGUAGE_FILES = (("tsconfig.json", "typescript"), ("package.json", "javascript"), ("pyproject.toml", "python"),
    ("setup.py", "python"), ("requirements.txt", "python"), ("go.mod", "go"), ("Cargo.toml", "rust"), ("pom.xml", "java"),
    ("build.gradle", "java"), ("Gemfile", "ruby"), ("composer.json", "php"), ("mix.exs", "elixir"),
    ("Package.swift", "swift"))
"""The first file that exists names the language."""
MANAGER_FILES = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun"),
    ("package-lock.json", "npm"), ("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"),
    ("Pipfile.lock", "pipenv"), ("go.sum", "go"), ("Cargo.lock", "cargo"), ("package.json", "npm"),
    ("requirements.txt", "pip"))
FRAMEWORKS = ("next", "express", "react", "vue", "svelte", "angular", "django", "flask", "fastapi")
TEST_TOOLS = ("pytest", "jest", "vitest", "mocha", "unittest", "go test", "cargo test", "rspec", "phpunit")
LINT_TOOLS = ("eslint", "ruff", "pylint", "flake8", "golangci-lint", "clippy", "rubocop", "biome")
FORMAT_TOOLS = ("prettier", "ruff", "black", "gofmt", "rustfmt", "cargo fmt", "biome")
# fmt: on


def describe(root: Path, gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the project's stack by its files and checks, with None for what nothing shows."""
    commands = {gate.kind: gate.command for gate in gates}
    names = ("package.json", "pyproject.toml", "requirements.txt")
    manifest = "".join(text_of(root / name)[:MOST_MANIFEST_CHARS] for name in names)
    frameworks = (name for name in FRAMEWORKS if f'"{name}"' in manifest or f"{name}=" in manifest)
    return {
        "language": _first_by_file(root, LANGUAGE_FILES),
        "framework": next(frameworks, None),
        "package_manager": _first_by_file(root, MANAGER_FILES),
        "test_framework": _first_in(commands.get("test", ""), TEST_TOOLS),
        "linter": _first_in(commands.get("lint", ""), LINT_TOOLS),
        "formatter": _first_in(commands.get("format", ""), FORMAT_TOOLS),
    }


def _first_by_file(root: Path, names: Sequence[tuple[str, str]]) -> str | None:
    return next((name for file, name in names if (root / file).is_file()), None)


def _first_in(command: str, tools: Sequence[str]) -> str | None:
    return next((tool for tool in tools if tool in command), None)


def commands(gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the commands of the checks by the names that autobuild's files give them."""
    by_kind = {gate.kind: gate.command for gate in gates}
    return {name: by_kind.get(kind) for kind, name in AUTOBUILD_NAMES.items()}
