"""Find out what a repository is made of: which checks fit it, and what its worktrees need."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.agents import catalog
from unstuck.git import Git, traps
from unstuck.plans import Check, CheckKind
from unstuck.tools.stacks import FALLBACKS, by_file, by_target, read

CARRIED = (".env", ".env.local", ".env.test", ".venv", "venv", "node_modules", "vendor", "target")
"""What a project often needs and git often ignores. Only what is there and ignored is proposed."""

PYTHON_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "pytest.ini")
PYTHON_RUNNERS = {"uv.lock": "uv run ", "poetry.lock": "poetry run ", "pdm.lock": "pdm run "}

PYTHON_TOOLS: tuple[tuple[CheckKind, str, str, Mapping[str, str]], ...] = (
    (
        "test",
        "pytest",
        "",
        {
            "pytest.ini": "",
            "conftest.py": "",
            "tests/conftest.py": "",
            "pyproject.toml": "pytest",
            "setup.cfg": "pytest",
            "tox.ini": "pytest",
            "requirements.txt": "pytest",
            "requirements-dev.txt": "pytest",
        },
    ),
    ("lint", "ruff", "check .", {"ruff.toml": "", ".ruff.toml": "", "pyproject.toml": "[tool.ruff"}),
    ("format", "ruff", "format --check .", {"pyproject.toml": "[tool.ruff.format"}),
    ("lint", "flake8", "", {".flake8": "", "setup.cfg": "[flake8"}),
    ("lint", "pylint", "{sources}", {".pylintrc": "", "pylintrc": "", "pyproject.toml": "[tool.pylint"}),
    ("format", "black", "--check .", {"pyproject.toml": "[tool.black"}),
    (
        "types",
        "mypy",
        "{targets}",
        {"mypy.ini": "", ".mypy.ini": "", "pyproject.toml": "[tool.mypy", "setup.cfg": "[mypy"},
    ),
    ("types", "pyright", "", {"pyrightconfig.json": "", "pyproject.toml": "[tool.pyright"}),
)
"""Kind, module, arguments, and where its use shows: a file that is there and holds a text. The first of a kind counts."""

NODE_RUNNERS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
NODE_SCRIPTS: tuple[tuple[CheckKind, tuple[str, ...]], ...] = (
    ("test", ("test",)),
    ("lint", ("lint",)),
    ("types", ("typecheck", "type-check", "types", "tsc")),
    ("format", ("format:check", "format-check", "prettier:check")),
    ("build", ("build",)),
)
NO_TEST = "no test specified"
"""What `npm init` writes into a package that has no tests."""

PARTS = ("*", "packages/*", "apps/*", "services/*", "libs/*", "crates/*", "modules/*")
"""Where the parts of a monorepo lie."""
MOST_PARTS = 20
NO_PARTS = frozenset({"node_modules", "vendor", "target", "build", "dist", "examples", "docs", "venv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What was found, and what follows from it. Proposals: a person reads them before they count."""

    languages: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    """Always empty today: through a link an agent's install would change the user's own copy."""
    setup: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def detect(root: Path) -> Stack:
    """Look at the files of a repository; nothing of it is run."""
    copy, setup, notes = _carried(root)
    found = _in_folder(root)
    languages = [name for name, there in (("python", _is_python(root)), ("node", _package(root) is not None)) if there]
    if not found and not languages:
        found = [one for part in _parts(root) for one in _in_part(root, part)]
    return Stack(
        languages=tuple(dict.fromkeys([*languages, *(language for language, _ in found)])),
        checks=_one_of_each_kind([check for _, check in found]),
        copy=copy,
        setup=setup,
        notes=notes,
    )


def is_present(check: Check, root: Path) -> bool:
    """Whether the tool of a found check is there: its program, and for a module of Python the module."""
    line = re.sub(r"^\(cd [^&]+&& ", "", check.command)
    words = line.split()
    program = shutil.which(words[0]) or shutil.which(str(root / words[0]))
    if program is None:
        return False
    if words[1:2] != ["-m"]:
        return words[0] not in ("npm", "pnpm", "yarn", "bun") or (root / "node_modules").is_dir()
    ask = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({words[2]!r}) is None)"
    return subprocess.run([program, "-I", "-c", ask], capture_output=True, check=False).returncode == 0


def _in_folder(folder: Path) -> list[tuple[str, Check]]:
    found = [*_python(folder), *_node(folder), *by_file(folder)]
    for more in (by_target(folder), by_file(folder, FALLBACKS)):
        kinds = {check.kind for _, check in found}
        seen = dict.fromkeys(kinds)
        for language, check in more:
            if check.kind not in seen:
                seen[check.kind] = None
                found.append((language, check))
    return found


def _parts(root: Path) -> list[Path]:
    """List the folders of a monorepo that are projects of their own."""
    folders = sorted({path for pattern in PARTS for path in root.glob(pattern) if path.is_dir()})
    usable = [path for path in folders if path.name not in NO_PARTS and not path.name.startswith(".")]
    return [path for path in usable if _in_folder(path)][:MOST_PARTS]


def _in_part(root: Path, part: Path) -> Iterator[tuple[str, Check]]:
    place = shlex.quote(str(part.relative_to(root)))
    for language, check in _in_folder(part):
        yield language, replace(check, command=f"(cd {place} && {check.command})")


def _one_of_each_kind(checks: list[Check]) -> tuple[Check, ...]:
    """Join checks of one kind: a gate is one line, and all of it must hold."""
    lines: dict[CheckKind, list[str]] = {}
    for check in checks:
        lines.setdefault(check.kind, []).append(check.command)
    return tuple(Check(kind=kind, command=" && ".join(dict.fromkeys(parts))) for kind, parts in lines.items())


def agents_on_path(path: str | None = None) -> tuple[str, ...]:
    """List the known agents that can be started."""
    return tuple(name for name, agent in catalog().items() if shutil.which(agent.program, path=path))


def _carried(root: Path) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Say what to copy, what to make anew because a copy would lead back into the user's checkout, and why."""
    there = [name for name in CARRIED if (root / name).exists()]
    # A folder is asked for with its slash: `node_modules/` in .gitignore names folders only.
    asked = "".join(f"{name}/\0" if (root / name).is_dir() else f"{name}\0" for name in there)
    answer = Git(root).attempt("check-ignore", "-z", "--stdin", stdin=asked).stdout if there else ""
    ignored = [name.rstrip("/") for name in answer.split("\0") if name]
    trapped = {trap.name: trap for trap in traps(root, ignored)}
    return (
        tuple(name for name in ignored if name not in trapped),
        tuple(dict.fromkeys(trap.setup for trap in trapped.values())),
        tuple(trap.message for trap in trapped.values()),
    )


def _python(root: Path) -> Iterator[tuple[str, Check]]:
    if not _is_python(root):
        return
    runner = next((runner for lock, runner in PYTHON_RUNNERS.items() if (root / lock).is_file()), None)
    venv = next((name for name in (".venv", "venv") if (root / name / "pyvenv.cfg").is_file()), None)
    prefix = f"{runner}python" if runner else f"{venv}/bin/python" if venv else "python3"
    kinds = set()
    places = {
        "targets": "" if _names_targets(root) else ".",
        "sources": " ".join(sorted(path.parent.name for path in root.glob("*/__init__.py"))) or ".",
    }
    for kind, module, arguments, signs in PYTHON_TOOLS:
        if kind not in kinds and any(_shows(root / name, text) for name, text in signs.items()):
            kinds.add(kind)
            yield "python", Check(kind=kind, command=f"{prefix} -m {module} {arguments.format(**places)}".rstrip())
    if "test" not in kinds and any(root.glob("test*/test*.py")):
        yield "python", Check(kind="test", command=f"{prefix} -m unittest discover")


def _is_python(root: Path) -> bool:
    return any((root / name).is_file() for name in PYTHON_MARKERS)


def _names_targets(root: Path) -> bool:
    """Tell whether mypy's own settings say what it shall look at."""
    settings = _tool(root, "mypy")
    return bool({"files", "packages", "modules"} & settings.keys())


def _tool(root: Path, name: str) -> Mapping[str, Any]:
    try:
        found = tomllib.loads(read(root / "pyproject.toml")).get("tool", {}).get(name, {})
    except tomllib.TOMLDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _node(root: Path) -> Iterator[tuple[str, Check]]:
    scripts = (_package(root) or {}).get("scripts")
    if not isinstance(scripts, dict):
        return
    runner = next((name for lock, name in NODE_RUNNERS.items() if (root / lock).is_file()), "npm")
    for kind, names in NODE_SCRIPTS:
        script = next((name for name in names if name in scripts), None)
        if script and NO_TEST not in str(scripts[script]):
            yield "node", Check(kind=kind, command=f"{runner} run {script}")


def _package(root: Path) -> dict[str, Any] | None:
    try:
        package = json.loads(read(root / "package.json"))
    except ValueError:
        return None
    return package if isinstance(package, dict) else None


def _shows(path: Path, text: str) -> bool:
    return path.is_file() and text in read(path)
