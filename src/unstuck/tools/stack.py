"""Name what a project is made of, for the state files that other programs read."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unstuck.plans import Check, CheckKind

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
        "test_framework": _tool("test", commands, manifest),
        "linter": _tool("lint", commands, manifest),
        "formatter": _tool("format", commands, manifest),
    }


def commands(gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the gates by the names that seed 004's files give them."""
    found = {gate.kind: gate.command for gate in gates}
    return {name: found.get(kind) for kind, name in NAMES.items()}


def _tool(kind: CheckKind, commands: Mapping[CheckKind, str], manifest: str) -> str | None:
    names = TOOLS[kind]
    asked = next((name for name in names if name in commands.get(kind, "")), None)
    return asked or next((name for name in names if f'"{name}"' in manifest), None)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST)
    except OSError:
        return ""
