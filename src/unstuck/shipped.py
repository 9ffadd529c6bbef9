"""Read the data that is shipped with the package: it never changes while the program runs, so a pure module may."""

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
    """Return one compiled table of the catalogue: reading its TOML would cost a hook more than its answer."""
    found: dict[str, Any] = json.loads(shipped(f"{name}.json"))
    return found


@cache
def shipped_toml(name: str) -> dict[str, Any]:
    """Return one table of the catalogue as people write it."""
    import tomllib  # noqa: PLC0415  # a hook loads this module and needs none

    return tomllib.loads(shipped(f"{name}.toml"))


def pages() -> dict[str, str]:
    """Return the pages of the documentation by their names: those in the wheel, or those of the checkout that this is."""
    folder = next((place for place in (HERE / "docs", HERE.parents[1] / "docs") if place.is_dir()), None)
    found = sorted(folder.rglob("*.md"), key=lambda path: (len(path.parts), path.stem)) if folder else []
    return {path.stem: path.read_text(encoding="utf-8") for path in found}


def shipped_in(folder: str) -> dict[str, str]:
    """Return the texts of one folder of the catalogue, by their names without the ending."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((CATALOG / folder).iterdir())}
