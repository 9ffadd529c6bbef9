"""Read the remedy chains in their compiled form; parsing their TOML would cost more than a whole plan."""

import json
from pathlib import Path
from typing import Any

from unstuck.remedies.chain import Catalog, Chain, Way

FOLDER = Path(__file__).parents[1] / "catalog"
SOURCE, COMPILED = FOLDER / "chains.toml", FOLDER / "chains.json"


def read_catalog() -> Catalog:
    """Return all chains and their tables."""
    content: dict[str, Any] = json.loads(COMPILED.read_text(encoding="utf-8"))
    chains = {name: _chain(name, row) for name, row in content.pop("chains").items()}
    return Catalog(chains=chains, tables=content)


def compile_chains() -> str:
    """Return the text of the compiled form."""
    import tomllib  # noqa: PLC0415  # only to compile

    content = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items())
    return f"{{\n{lines}\n}}\n"


def _chain(name: str, row: dict[str, Any]) -> Chain:
    return Chain(
        name=name,
        ways=tuple(Way(**way) for way in row["ways"]),
        ask=row["ask"],
        ask_confidence=row["ask_confidence"],
        looks_at=frozenset(row["looks_at"]),
    )


if __name__ == "__main__":
    COMPILED.write_text(compile_chains(), encoding="utf-8")
