"""Bring the compiled forms of the catalogue up to date with its TOML files; tests compare the two."""

from unstuck.diagnosis.rule_files import compile_catalog
from unstuck.remedies.chain import compile_chains
from unstuck.shipped import CATALOG

if __name__ == "__main__":
    (CATALOG / "rules.json").write_text(compile_catalog(), encoding="utf-8")
    (CATALOG / "chains.json").write_text(compile_chains(), encoding="utf-8")
