"""Read the data that is shipped with the package: it never changes while the program runs, so a pure module may."""

from pathlib import Path

CATALOG = Path(__file__).parent / "catalog"


def shipped(name: str) -> str:
    """Return the text of one file of the catalogue."""
    return (CATALOG / name).read_text(encoding="utf-8")


def shipped_in(folder: str) -> dict[str, str]:
    """Return the texts of one folder of the catalogue, by their names without the ending."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((CATALOG / folder).iterdir())}
