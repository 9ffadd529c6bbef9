"""Edge: Say what a repository is called: its language, its package manager, its tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unstuck.plans import Check, CheckKind
from unstuck.shipped import shipped_table

NAMES: Mapping[CheckKind, str] = {"lint": "lint", "format": "format", "types": "typecheck", "test": "test"}
LARGEST = 200_000


def describe(root: Path, gates: Sequence[Check]) -> dict[str, str | None]:
    """Return the project's stack by its files and its gates; None for what nothing shows."""
    table = shipped_table("toolchains")["described"]
    commands = {gate.kind: gate.command for gate in gates}
    manifest = "".join(_text(root / name) for name in ("package.json", "pyproject.toml", "requirements.txt"))
    tools = {kind: _tool_named(names, commands.get(kind, ""), manifest) for kind, names in table["tools"].items()}
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


def _tool_named(names: Sequence[str], command: str, manifest: str) -> str | None:
    asked = next((name for name in names if name in command), None)
    return asked or next((name for name in names if f'"{name}"' in manifest), None)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST)
    except OSError:
        return ""
