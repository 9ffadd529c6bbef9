"""Bring the compiled forms of the catalogue up to date with its TOML files; tests compare the two."""

import json
import tomllib

from unstuck.diagnosis.rule_files import compile_catalog
from unstuck.shipped import CATALOG, shipped


def compile_secrets() -> str:
    """Return what secrets look like as JSON: reading the TOML would cost more than redacting a log."""
    rules = tomllib.loads(shipped("secrets.toml"))
    table = {
        "shapes": [
            [row["needle"], row["pattern"], row.get("back", 0), row.get("random", False)] for row in rules["shape"]
        ],
        "words": [row["pattern"] for row in rules["word"]],
        "tokens": rules["tokens"],
        "alphabets": rules["alphabets"],
        "signs": {name: "|".join(patterns) for name, patterns in rules["signs"].items()},
        "common": rules["common"],
        "needles": rules["needles"],
        "hidden": rules["hidden"],
    }
    return json.dumps(table, separators=(",", ":"), ensure_ascii=False) + "\n"


def compile_chains() -> str:
    """Return the chains of remedies as JSON, a line for each table."""
    content = tomllib.loads(shipped("chains.toml"))
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items())
    return f"{{\n{lines}\n}}\n"


def compile_table(name: str) -> str:
    """Return a table of the catalogue as JSON."""
    return json.dumps(tomllib.loads(shipped(f"{name}.toml")), separators=(",", ":"), ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (CATALOG / "rules.json").write_text(compile_catalog(), encoding="utf-8")
    (CATALOG / "chains.json").write_text(compile_chains(), encoding="utf-8")
    (CATALOG / "runners.json").write_text(compile_table("runners"), encoding="utf-8")
    (CATALOG / "secrets.json").write_text(compile_secrets(), encoding="utf-8")
