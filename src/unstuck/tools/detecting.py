"""Edge: Find out what a repository is made of: which checks fit it, what its slots need, and what it is called."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.git import Git, traps
from unstuck.plans import Check, CheckKind

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


Row = tuple[str, str, str, tuple[tuple[CheckKind, str], ...]]

BY_FILE: tuple[Row, ...] = (
    # (language, file or pattern, a text that it must hold, checks); the first row of a kind counts
    ("go", "go.mod", "", (("test", "go test ./..."),)),
    ("go", ".golangci.y*ml", "", (("lint", "golangci-lint run"),)),
    ("go", "go.mod", "", (("lint", "go vet ./..."),)),
    ("rust", "Cargo.toml", "", (("test", "cargo test"),)),
    ("rust", "rustfmt.toml", "", (("format", "cargo fmt --check"),)),
    ("rust", "clippy.toml", "", (("lint", "cargo clippy --all-targets -- -D warnings"),)),
    ("java", "mvnw", "", (("test", "./mvnw -B -q test"),)),
    ("java", "pom.xml", "", (("test", "mvn -B -q test"),)),
    ("java", "gradlew", "", (("test", "./gradlew test"),)),
    ("java", "build.gradle*", "", (("test", "gradle test"),)),
    ("ruby", "spec/spec_helper.rb", "", (("test", "bundle exec rspec"),)),
    ("ruby", ".rspec", "", (("test", "bundle exec rspec"),)),
    ("ruby", "Rakefile", "TestTask", (("test", "bundle exec rake test"),)),
    ("ruby", ".rubocop.yml", "", (("lint", "bundle exec rubocop"),)),
    ("php", "phpunit.xml*", "", (("test", "vendor/bin/phpunit"),)),
    ("php", "composer.json", "pestphp/pest", (("test", "vendor/bin/pest"),)),
    ("php", "phpstan.neon*", "", (("types", "vendor/bin/phpstan analyse"),)),
    ("php", "phpcs.xml*", "", (("lint", "vendor/bin/phpcs"),)),
    ("dotnet", "*.sln", "", (("test", "dotnet test"),)),
    ("dotnet", "*.slnx", "", (("test", "dotnet test"),)),
    ("dotnet", "*.csproj", "", (("test", "dotnet test"),)),
)

FALLBACKS: tuple[Row, ...] = (
    ("tox", "tox.ini", "[tox]", (("test", "tox"),)),
    ("tox", "tox.ini", "[testenv", (("test", "tox"),)),
    ("nox", "noxfile.py", "", (("test", "nox"),)),
    ("pre-commit", ".pre-commit-config.yaml", "", (("lint", "pre-commit run --all-files"),)),
)
"""Tools that run other tools: used for what nothing else was found for."""

TARGETS: tuple[tuple[CheckKind, str], ...] = (
    ("test", "test"), ("test", "check"), ("lint", "lint"), ("types", "typecheck"), ("format", "format-check"),
)  # fmt: skip
"""Targets of a Makefile or recipes of a justfile; the first of a kind counts."""


def by_file(root: Path, rows: tuple[Row, ...] = BY_FILE) -> Iterator[tuple[str, Check]]:
    """Yield the checks of all rows that fit, the first of each kind and language."""
    seen: set[tuple[str, CheckKind]] = set()
    for language, name, text, checks in rows:
        if not any(path.is_file() and (not text or text in read(path)) for path in sorted(root.glob(name))):
            continue
        for kind, command in checks:
            if (language, kind) not in seen:
                seen.add((language, kind))
                yield language, Check(kind=kind, command=command)


def by_target(root: Path) -> Iterator[tuple[str, Check]]:
    """Yield the checks that a Makefile or a justfile names."""
    for program, names in (
        ("make", ("Makefile", "makefile", "GNUmakefile")),
        ("just", ("justfile", "Justfile", ".justfile")),
    ):
        text = next((read(root / name) for name in names if (root / name).is_file()), "")
        for kind, target in TARGETS:
            if re.search(rf"^@?{target}\b[^:=\n]*::?(?!=)", text, re.MULTILINE):
                yield program, Check(kind=kind, command=f"{program} {target}")


def read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


LANGUAGES: Sequence[tuple[str, str]] = (
    ("tsconfig.json", "typescript"), ("package.json", "javascript"), ("pyproject.toml", "python"), ("setup.py", "python"),
    ("requirements.txt", "python"), ("go.mod", "go"), ("Cargo.toml", "rust"), ("pom.xml", "java"), ("build.gradle", "java"),
    ("Gemfile", "ruby"), ("composer.json", "php"),
)  # fmt: skip
MANAGERS: Sequence[tuple[str, str]] = (
    ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("package-lock.json", "npm"), ("uv.lock", "uv"),
    ("poetry.lock", "poetry"), ("Pipfile.lock", "pipenv"), ("go.sum", "go"), ("Cargo.lock", "cargo"), ("package.json", "npm"),
    ("requirements.txt", "pip"),
)  # fmt: skip
TOOLS: Mapping[CheckKind, Sequence[str]] = {
    "test": ("pytest", "jest", "vitest", "mocha", "unittest", "go test", "cargo test", "rspec", "phpunit"),
    "lint": ("eslint", "ruff", "pylint", "flake8", "golangci-lint", "clippy", "rubocop", "biome"),
    "format": ("prettier", "ruff", "black", "gofmt", "rustfmt", "cargo fmt", "biome"),
}
FRAMEWORKS = ("next", "express", "react", "vue", "svelte", "angular", "django", "flask", "fastapi")
NAMES: Mapping[CheckKind, str] = {"lint": "lint", "format": "format", "types": "typecheck", "test": "test"}
LARGEST = 200_000


def describe(root: Path, gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the project's stack by its files and its gates; None for what nothing shows."""
    commands = {gate.kind: gate.command for gate in gates}
    manifest = "".join(_text(root / name) for name in ("package.json", "pyproject.toml", "requirements.txt"))
    return {
        "language": next((name for file, name in LANGUAGES if (root / file).is_file()), None),
        "framework": next((name for name in FRAMEWORKS if f'"{name}"' in manifest or f"{name}=" in manifest), None),
        "package_manager": next((name for file, name in MANAGERS if (root / file).is_file()), None),
        "test_framework": _tool_named("test", commands, manifest),
        "linter": _tool_named("lint", commands, manifest),
        "formatter": _tool_named("format", commands, manifest),
    }


def commands(gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the gates by the names that autobuild's files give them."""
    found = {gate.kind: gate.command for gate in gates}
    return {name: found.get(kind) for kind, name in NAMES.items()}


def _tool_named(kind: CheckKind, commands: Mapping[CheckKind, str], manifest: str) -> str | None:
    names = TOOLS[kind]
    asked = next((name for name in names if name in commands.get(kind, "")), None)
    return asked or next((name for name in names if f'"{name}"' in manifest), None)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST)
    except OSError:
        return ""
