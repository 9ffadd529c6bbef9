"""The data files that are shipped with the package. Pure modules may read them, because they never change."""

import json
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CATALOG = HERE / "catalog"


def shipped(name: str) -> str:
    """Return the text of one file of the catalogue."""
    return (CATALOG / name).read_text(encoding="utf-8")


@cache
def shipped_table(name: str) -> dict[str, Any]:
    """Return a compiled table of the catalogue. Parsing its TOML would be too slow for a hook."""
    table: dict[str, Any] = json.loads(shipped(f"{name}.json"))
    return table


@cache
def shipped_toml(name: str) -> dict[str, Any]:
    """Return a table of the catalogue that is kept as TOML."""
    import tomllib  # noqa: PLC0415  # the hook loads this module and reads no TOML

    return tomllib.loads(shipped(f"{name}.toml"))


def pages() -> dict[str, str]:
    """Return the pages of the documentation by name, from the wheel or from the checkout."""
    candidates = (HERE / "docs", HERE.parents[1] / "docs")
    folder = next((candidate for candidate in candidates if candidate.is_dir()), None)
    if folder is None:
        return {}
    paths = sorted(folder.rglob("*.md"), key=lambda path: (len(path.parts), path.stem))
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def shipped_in(folder: str) -> dict[str, str]:
    """Return the texts in a folder of the catalogue, by file name without suffix."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((CATALOG / folder).iterdir())}
