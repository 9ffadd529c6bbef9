"""Edge: Find out what a repository is made of, by the table of stacks: which gates fit it, and what its slots need."""

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
from unstuck.shipped import shipped_table
from unstuck.toolchain.command_roles import listed
from unstuck.toolchain.python_needs import VENVS, PythonNeeds, has_sign, project_files, python_needs, text_of
from unstuck.toolchain.toolchains import Gate, Setup, Toolchain, looking_line, toolchains

NO_TEST = "no test specified"
"""What `npm init` writes into a package that has no tests."""
LOCAL_PROGRAMS = 'export PATH="$PWD/node_modules/.bin:$PATH" && '
"""Where npm finds the programs of a script."""
MOST_PARTS = 20
UNGUARDED = "{part} ({stack}) is a project of its own, which nothing at the top is known to check: name what must hold there under [checks]."
NODE_MANAGERS = ("npm", "pnpm", "yarn", "bun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A gate that fits: lines that could be it, the best first."""

    stack: str
    kind: CheckKind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What was found, and what follows from it. Proposals: a run of them, or a person, decides what counts."""

    languages: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    copy: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    """The folders that the set-up fills."""
    instead: tuple[str, ...] = ()
    """What could be copied where the set-up cannot run."""
    notes: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[Check, ...]:
        """The first of each, where nothing can be tried."""
        return joined([(one.kind, one.lines[0]) for one in self.proposals])


def joined(lines: Sequence[tuple[CheckKind, str]]) -> tuple[Check, ...]:
    """Join the lines of one kind: a gate is one line, and all of it must hold."""
    kinds = {kind: " && ".join(dict.fromkeys(line for one, line in lines if one == kind)) for kind, _ in lines}
    return tuple(Check(kind=kind, command=line) for kind, line in kinds.items())


def detect(root: Path, *, as_it_is: bool = False, has: Callable[[str], object] = shutil.which) -> Stack:
    """Look at the files of a repository; nothing of it is run.

    `as_it_is`: only for what is installed, no set-up. `has`: whether this machine has a program.
    """
    look = _Look(set_up=not as_it_is, has=has)
    found, beside = _in_folder(root, look), []
    at_top = found.languages
    alone = found if at_top else _in_folder(root, look, bare=True)
    parts = [(part, _in_folder(part, look, bare=not alone.languages)) for part in _folders(root)]
    parts = [(part, inner) for part, inner in parts if inner.languages][:MOST_PARTS]
    if at_top:
        others = [(part, one) for part, inner in parts for one in inner.languages if one not in at_top]
        beside = [UNGUARDED.format(part=part.relative_to(root), stack=one) for part, one in others]
    else:
        placed = [_placed(inner, shlex.quote(str(part.relative_to(root)))) for part, inner in parts]
        found = _together([alone, *placed])
    copy, notes = _carried(root)
    return replace(
        found,
        copy=tuple(name for name in copy if name not in found.makes),
        instead=tuple(name for name in copy if name in found.makes),
        notes=(*beside, *(() if found.setup else notes)),
    )


def way_around(root: Path, trap: UnsafeCopy) -> str:
    """Say what to do about a folder that cannot be placed, with the commands for this repository where they are known."""
    lines = detect(root).setup
    return f"Make it anew instead: setup = {json.dumps(lines)} in `[workspace]`." if lines else trap.suggestion


def is_present(check: Check, root: Path) -> bool:
    """Whether the tool of a found check is there: its program, and for a module of Python the module."""
    line = re.sub(r"^\(cd [^&]+&& ", "", check.command)
    words = line.split()
    program = shutil.which(words[0]) or shutil.which(str(root / words[0]))
    if program is None:
        return False
    if words[1:2] != ["-m"]:
        return words[0] not in NODE_MANAGERS or (root / "node_modules").is_dir()
    ask = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({words[2]!r}) is None)"
    return subprocess.run([program, "-I", "-c", ask], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How a repository is looked at."""

    set_up: bool
    has: Callable[[str], object]

    def row(self, folder: Path, chain: Toolchain) -> Setup | None:
        """Return the set-up that fits; of several, one whose program is here: a lock file does not install its own tool."""
        rows = [row for row in chain.setup if has_sign(folder, row.shown_by)]
        there = [row for row in rows if row.line.startswith("./") or self.has(row.line.split(" ", 1)[0])]
        return next(iter((*there, *rows)), None)


def _in_folder(folder: Path, look: _Look, *, bare: bool = False) -> Stack:
    found: list[Stack] = []
    for chain in toolchains():
        signs = (*chain.shows, *(chain.bare if bare else ()))
        if chain.shows and not has_sign(folder, tuple((name, "") for name in signs)):
            continue
        one = _of_chain(folder, chain, {proposal.kind for part in found for proposal in part.proposals}, look)
        if one.languages:
            found.append(one)
    return _together(found)


def _of_chain(folder: Path, chain: Toolchain, kinds: set[CheckKind], look: _Look) -> Stack:
    """Say what one stack proposes; its fallbacks only for kinds that no other has."""
    row = look.row(folder, chain)
    needs = python_needs(folder, chain, row.manager if row else "") if chain.checking else None
    taken = row if look.set_up else None
    places = _places(folder, taken, row) | {"tests": _folder_of_tests(folder, chain)}
    lines: dict[CheckKind, list[str]] = {}
    for gate in chain.gate:
        if gate.fallback and (gate.kind in kinds or lines.get(gate.kind)):
            continue
        if gate.scripts:
            lines.setdefault(gate.kind, []).extend(_scripts(folder, gate, places))
        elif has_sign(folder, gate.shown_by) and _is_declared(folder, chain, gate, needs, taken):
            lines.setdefault(gate.kind, []).append(gate.line.format(**places).rstrip())
    proposals = tuple(Proposal(stack=chain.name, kind=kind, lines=tuple(some)) for kind, some in lines.items() if some)
    shown = bool(proposals or chain.shows) and (chain.name != "node" or _package(folder) is not None)
    found = Stack(languages=(chain.name,) if shown else (), proposals=proposals)
    if not shown or row is None or not look.set_up:
        return found
    return replace(
        found, setup=(needs.install_command(row) if needs else row.line,), makes=(row.makes,) if row.makes else ()
    )


def _together(parts: Sequence[Stack]) -> Stack:
    return Stack(
        languages=tuple(dict.fromkeys(name for part in parts for name in part.languages)),
        proposals=tuple(one for part in parts for one in part.proposals),
        setup=tuple(dict.fromkeys(line for part in parts for line in part.setup)),
        makes=tuple(dict.fromkeys(name for part in parts for name in part.makes)),
    )


def _placed(found: Stack, place: str) -> Stack:
    """Let everything of a part happen in its folder."""
    return replace(
        found,
        proposals=tuple(
            replace(one, lines=tuple(f"(cd {place} && {line})" for line in one.lines)) for one in found.proposals
        ),
        setup=tuple(f"(cd {place} && {line})" for line in found.setup),
        makes=(),
    )


def _folders(root: Path) -> list[Path]:
    """List the folders that may be projects of their own."""
    folders = sorted({path for pattern in listed("parts") for path in root.glob(pattern) if path.is_dir()})
    return [path for path in folders if path.name not in listed("no_parts") and not path.name.startswith(".")]


def _is_declared(folder: Path, chain: Toolchain, gate: Gate, needs: PythonNeeds | None, row: Setup | None) -> bool:
    """Whether a manifest names the tool; where there is none that anything is installed by, what the machine has may do."""
    if not gate.needs:
        return True
    if needs is not None:
        return row is None or needs.names(gate.needs)
    named = rf"(?<![\w.-]){re.escape(gate.needs)}(?![\w.])"
    there = has_sign(folder, tuple((name, "") for name in chain.manifests))
    return not there or has_sign(folder, tuple((name, named) for name in chain.manifests))


def _places(folder: Path, row: Setup | None, alone: Setup | None) -> dict[str, str]:
    """Fill in what lines leave open."""
    venv = next((name for name in VENVS if (folder / name / "pyvenv.cfg").is_file()), None)
    bare = (alone.alone if alone else "") or (f"{venv}/bin/python" if venv else "python3")
    return {
        "python": (row.runs if row else "") or bare,
        "targets": "" if {"files", "packages", "modules"} & _settings(folder, "mypy").keys() else ".",
        "sources": " ".join(sorted(path.parent.name for path in folder.glob("*/__init__.py"))) or ".",
        "manager": alone.manager if alone else "npm",
        "local": LOCAL_PROGRAMS,
    }


def _folder_of_tests(folder: Path, chain: Toolchain) -> str:
    """Return the folder that holds tests, of several the one furthest out."""
    inside = [path.parent.relative_to(folder) for pattern in chain.tests for path in project_files(folder, pattern)]
    found = sorted((one for one in inside if one.parts), key=lambda one: (len(one.parts), one))
    return shlex.quote(str(found[0])) if found else "."


def _scripts(folder: Path, gate: Gate, places: dict[str, str]) -> Iterator[str]:
    """Yield the scripts of a package that a gate could run; one that would repair files in the form that does not."""
    package = _package(folder) or {}
    scripts: Any = package.get("scripts")
    for script in gate.scripts if isinstance(scripts, dict) else ():
        text = str(scripts.get(script, ""))
        if text and NO_TEST not in text:
            looking = looking_line(text)
            yield LOCAL_PROGRAMS + looking if looking != text else gate.line.format(**places, script=script)


def _carried(root: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say what to copy, and what cannot be, because a copy would lead back into the user's checkout."""
    there = [name for name in listed("carried") if (root / name).exists()]
    # A folder is asked for with its slash: `node_modules/` in .gitignore names folders only.
    asked = "".join(f"{name}/\0" if (root / name).is_dir() else f"{name}\0" for name in there)
    answer = Git(root).attempt("check-ignore", "-z", "--stdin", stdin=asked).stdout if there else ""
    ignored = [name.rstrip("/") for name in answer.split("\0") if name]
    trapped = {trap.name: trap for trap in unsafe_copies(root, ignored)}
    return (
        tuple(name for name in ignored if name not in trapped),
        tuple(trap.message for trap in trapped.values()),
    )


def _settings(root: Path, name: str) -> dict[str, Any]:
    try:
        found = tomllib.loads(text_of(root / "pyproject.toml")).get("tool", {}).get(name, {})
    except tomllib.TOMLDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _package(root: Path) -> dict[str, Any] | None:
    try:
        package = json.loads(text_of(root / "package.json"))
    except ValueError:
        return None
    return package if isinstance(package, dict) else None


NAMES: Mapping[CheckKind, str] = {"lint": "lint", "format": "format", "types": "typecheck", "test": "test"}
LARGEST = 200_000


def describe(root: Path, gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the project's stack by its files and its gates; None for what nothing shows."""
    table = shipped_table("toolchains")["described"]
    commands = {gate.kind: gate.command for gate in gates}
    manifest = "".join(
        text_of(root / name)[:LARGEST] for name in ("package.json", "pyproject.toml", "requirements.txt")
    )
    tools = {
        kind: next((name for name in names if name in commands.get(kind, "")), None)
        for kind, names in table["tools"].items()
    }
    frameworks = table["frameworks"]
    return {
        "language": next((name for file, name in table["languages"] if (root / file).is_file()), None),
        "framework": next((name for name in frameworks if f'"{name}"' in manifest or f"{name}=" in manifest), None),
        "package_manager": next((name for file, name in table["managers"] if (root / file).is_file()), None),
        "test_framework": tools["test"],
        "linter": tools["lint"],
        "formatter": tools["format"],
    }


def commands(gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the gates by the names that autobuild's files give them."""
    found = {gate.kind: gate.command for gate in gates}
    return {name: found.get(kind) for kind, name in NAMES.items()}
