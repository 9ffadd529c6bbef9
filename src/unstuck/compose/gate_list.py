"""Edge: Say which gates hold in a repository: those of its configuration, of the plan, or those that fit the project."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from unstuck.config import GATE_TIMEOUTS, Config
from unstuck.config_file import has_config
from unstuck.plans import Check
from unstuck.tools import detect, is_present


def gates_of(config: Config, root: Path, wanted: Sequence[Check] = ()) -> tuple[Check, ...]:
    """Return the repository's gates, and the plan's where it has none of a kind, each with its own time limit."""
    asked = tuple(Check(command=line, kind=kind) for kind, line in config.checks.items())
    asked += tuple(check for check in wanted if check.kind not in config.checks)
    if not asked and config.verify.detect and not has_config(root):
        asked = _found_checks(root)
    limits = {**GATE_TIMEOUTS, **config.verify.timeouts}
    return tuple(replace(check, timeout=limits.get(check.kind, config.verify.timeout)) for check in asked)


def note_found(checks: Sequence[Check]) -> Iterator[str]:
    """Say which gates nobody asked for."""
    if found := [f"`{check.command}`" for check in checks if check.found]:
        yield f"There is no configuration, so the checks are those that fit the project: {'; '.join(found)}"


@lru_cache(maxsize=8)
def _found_checks(root: Path) -> tuple[Check, ...]:
    return tuple(replace(check, found=True) for check in detect(root, as_it_is=True).checks if is_present(check, root))
