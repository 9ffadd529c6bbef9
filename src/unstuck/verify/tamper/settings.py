"""Judge changed settings of test runners, linters, type checkers and coverage: a gate may not ask for less."""

import re
from collections.abc import Iterator, Mapping, Sequence

from unstuck.verify.tamper.change import Change, Finding
from unstuck.verify.tamper.flatten import Settings, flatten
from unstuck.verify.tamper.gates import COLLECTS, NO_GATE, OPTIONS
from unstuck.verify.tamper.listings import is_listing, judge_listing, retrying_plugins
from unstuck.verify.tamper.rules import found
from unstuck.verify.tamper.setting_rules import EVERY, OF_NEW_FILES, Values
from unstuck.verify.tamper.toolbox import families


def judge_settings(
    changes: Sequence[Change], moved_tests: Sequence[tuple[str, bool]] = (), new_commands: str = ""
) -> Iterator[Finding]:
    """Judge all changed settings files together, since settings move from one file to another.

    `moved_tests` are the test files that came or went, and whether they went; `new_commands` the texts of new files with
    commands, which may take over those of a deleted one.
    """
    for change in changes:
        yield from judge_listing(change) if is_listing(change.path) else retrying_plugins(change)
    keyed = [change for change in changes if not is_listing(change.path)]
    pairs = [(change, flatten(change.path, change.old), flatten(change.path, change.new)) for change in keyed]
    moved: dict[str, tuple[str, ...]] = {}
    for _, old, new in pairs:
        for key, values in new.items():
            if key not in old:
                moved.setdefault(_leaf(key), values)
    left = {_top(path) for path, went in moved_tests if went} - {_top(path) for path, went in moved_tests if not went}
    for change, before, new in pairs:
        old = _still_wanted(change, before, keyed, new_commands)
        yield from _presets(change)
        fresh = _fresh_sections(old, new)
        for key in sorted(key for key in {*old, *new} if old.get(key) != new.get(key)):
            was = old.get(key)
            if was is not None and COLLECTS.search(key):
                was = tuple(one for one in was if _top(one) not in left)  # no test is there any more
            yield from _one(change, key, was, new.get(key), moved, fresh=_section(key) in fresh)


def _still_wanted(change: Change, old: Settings, changes: Sequence[Change], new_commands: str) -> Settings:
    """Leave out of a deleted file what another tool or form takes over."""
    if change.new is not None:
        return old
    flat_eslint = any("eslint.config." in other.path and other.old is None for other in changes)
    if flat_eslint and ".eslintrc" in change.path:
        return {key: values for key, values in old.items() if ".rules." in f".{key}"}
    if families(change.old or "") <= families(new_commands):
        return {key: values for key, values in old.items() if not OPTIONS.search(key)}
    return old


def _top(place: str) -> str:
    return place.removeprefix("<rootDir>").lstrip("./").partition("/")[0]


def _fresh_sections(old: Settings, new: Settings) -> frozenset[str]:
    """Name the tools that are set up for the first time and asked for something: what they leave out was never asked."""
    had = {_section(key) for key in old}
    asks = re.compile(r"(?:^|\.)(?:select|extend-select|extends|strict)$")
    asked = {_section(key) for key in new if asks.search(key)}
    return frozenset(one for one in asked - had if one.startswith(("tool.", "flake8", "mypy", "pylint")))


def _section(key: str) -> str:
    """Name the tool that a setting belongs to: `tool.ruff.lint.select` is ruff's."""
    return ".".join(key.split(".")[:2]) if key.startswith("tool.") else key.partition(".")[0]


def _presets(change: Change) -> Iterator[Finding]:
    """Count the rule sets that an ESLint config in code takes over."""
    if "eslint" not in change.path or change.new is None:
        return
    shape = re.compile(r"\w+\.configs\.\w+|configs\[['\"][\w/-]+['\"]\]")
    if len(shape.findall(change.new)) < len(shape.findall(change.old or "")):
        gone = set(shape.findall(change.old or "")) - set(shape.findall(change.new))
        yield found("gate-loosened", change.path, 1, "A set of lint rules is no longer used.", ", ".join(sorted(gone)))


def _one(
    change: Change,
    key: str,
    old: tuple[str, ...] | None,
    new: tuple[str, ...] | None,
    moved: Mapping[str, tuple[str, ...]],
    *,
    fresh: bool,
) -> Iterator[Finding]:
    line = _line(change, key)
    if key.startswith(("tool.unstuck", "unstuck.")):
        yield found(
            "own-settings-changed",
            change.path,
            line,
            f"{key} is changed: it says how this run is checked.",
            f"{old} → {new}",
        )
        return
    if NO_GATE.search(key):
        return
    if new is None and _leaf(key) in moved:
        new = moved[_leaf(key)]
    # A file that is new cannot loosen what was never asked; it can still hide tests.
    judges = OF_NEW_FILES if change.old is None or fresh else EVERY
    for judge in judges:
        for rule, says in judge(key, old, new):
            yield found(rule, change.path, line, says, f"{_shown(old)} → {_shown(new)}")
            return


def _leaf(key: str) -> str:
    return key.rpartition(".")[2].lower()


def _line(change: Change, key: str) -> int:
    leaf = key.rpartition(".")[2].strip("[]")
    for number, line in enumerate((change.new or "").splitlines(), 1):
        if leaf and leaf in line:
            return number
    return 1


def _shown(values: Values) -> str:
    return "nothing" if values is None else ", ".join(values)[:120]
