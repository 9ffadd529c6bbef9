"""Find out what a repository is made of: which checks fit it, and what its worktrees need."""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.adapters.agents.manifest import catalog
from unstuck.adapters.git import Git
from unstuck.adapters.traps import traps
from unstuck.core.plan import Check, CheckKind

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
    (
        "types",
        "mypy",
        "{targets}",
        {"mypy.ini": "", ".mypy.ini": "", "pyproject.toml": "[tool.mypy", "setup.cfg": "[mypy"},
    ),
)
"""Kind, module, arguments, and where its use shows: a file that is there and holds a text."""

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

BY_FILE: tuple[tuple[str, str, tuple[tuple[CheckKind, str], ...]], ...] = (
    ("go", "go.mod", (("test", "go test ./..."), ("lint", "go vet ./..."))),
    ("rust", "Cargo.toml", (("test", "cargo test"),)),
    ("rust", "rustfmt.toml", (("format", "cargo fmt --check"),)),
    ("rust", "clippy.toml", (("lint", "cargo clippy --all-targets -- -D warnings"),)),
)

MAKE_TARGETS: tuple[tuple[CheckKind, str], ...] = (("test", "test"), ("lint", "lint"), ("verify", "check"))


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
    found = [*_python(root), *_node(root), *_by_file(root)]
    kinds = {check.kind for _, check in found}
    found += [("make", check) for check in _make(root) if check.kind not in kinds]
    languages = [name for name, there in (("python", _is_python(root)), ("node", _package(root) is not None)) if there]
    return Stack(
        languages=tuple(dict.fromkeys([*languages, *(language for language, _ in found)])),
        checks=tuple(check for _, check in found),
        copy=copy,
        setup=setup,
        notes=notes,
    )


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
    for kind, module, arguments, signs in PYTHON_TOOLS:
        if any(_shows(root / name, text) for name, text in signs.items()):
            kinds.add(kind)
            targets = "" if _names_targets(root) else "."
            yield (
                "python",
                Check(kind=kind, command=f"{prefix} -m {module} {arguments.format(targets=targets)}".rstrip()),
            )
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
        found = tomllib.loads(_text(root / "pyproject.toml")).get("tool", {}).get(name, {})
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
        package = json.loads(_text(root / "package.json"))
    except ValueError:
        return None
    return package if isinstance(package, dict) else None


def _by_file(root: Path) -> Iterator[tuple[str, Check]]:
    for language, marker, checks in BY_FILE:
        if (root / marker).is_file():
            yield from ((language, Check(kind=kind, command=command)) for kind, command in checks)


def _make(root: Path) -> Iterator[Check]:
    makefile = _text(root / "Makefile") or _text(root / "makefile")
    for kind, target in MAKE_TARGETS:
        if re.search(rf"^{target}\s*::?(?!=)", makefile, re.MULTILINE):
            yield Check(kind=kind, command=f"make {target}")


def _shows(path: Path, text: str) -> bool:
    return path.is_file() and text in _text(path)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
