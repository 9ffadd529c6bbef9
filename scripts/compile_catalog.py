"""Bring the compiled forms of the catalogue up to date with its TOML files; tests compare the two."""

import json
import textwrap
import tomllib

from unstuck.diagnosis.rule_files import compile_catalog
from unstuck.remedies.chain import compile_chains
from unstuck.shipped import CATALOG, shipped

SECRETS = CATALOG.parent / "journal" / "secret_table.py"
HEAD = '''"""What secrets look like, compiled from catalog/secrets.toml by `make rules`."""

# ruff: noqa: Q000
# fmt: off
'''


def compile_secrets() -> str:
    """Return the text of the compiled module: reading the TOML would cost more than redacting a log."""
    rules = tomllib.loads(shipped("secrets.toml"))
    shapes = "".join(
        f"    ({row['needle']!r}, {row['pattern']!r}, {row.get('back', 0)}, {row.get('random', False)}),\n"
        for row in rules["shape"]
    )
    words = "".join(f"    {row['pattern']!r},\n" for row in rules["word"])
    tokens = "".join(f'    "{alphabet}": """\n{_rows(rows)}\n""",\n' for alphabet, rows in rules["tokens"].items())
    return f"{HEAD}\nSHAPES = (\n{shapes})\n\nWORDS = (\n{words})\n\nTOKENS = {{\n{tokens}}}\n"


def compile_toolchains() -> str:
    """Return the table of stacks as JSON."""
    return json.dumps(tomllib.loads(shipped("toolchains.toml")), separators=(",", ":"), ensure_ascii=False) + "\n"


def _rows(rows: dict[str, int]) -> str:
    entries = " ".join(f"{prefix}|{need}" for prefix, need in rows.items())
    return "\n".join(textwrap.wrap(entries, 110, break_long_words=False, break_on_hyphens=False))


if __name__ == "__main__":
    (CATALOG / "rules.json").write_text(compile_catalog(), encoding="utf-8")
    (CATALOG / "chains.json").write_text(compile_chains(), encoding="utf-8")
    (CATALOG / "toolchains.json").write_text(compile_toolchains(), encoding="utf-8")
    SECRETS.write_text(compile_secrets(), encoding="utf-8")
