"""Judge changed records that tests compare with or read: snapshots, golden files, test data."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from unstuck.verify.tamper.change import LONGEST, Change, Finding, added_lines, removed_lines, role
from unstuck.verify.tamper.rules import found

MOST = 0.5
"""Above this share of changed entries a snapshot file was not corrected but written anew."""

_JEST = re.compile(r"^exports\[`(?P<name>(?:[^`\\]|\\.)*)`\] = `(?P<value>(?:[^`\\]|\\.)*)`;", re.MULTILINE)
_AMBR = re.compile(r"^# name: (?P<name>.*)\n(?P<value>(?:.*\n)*?)# ---$", re.MULTILINE)


def judge_records(changes: Sequence[Change], old_names: frozenset[str], new_names: frozenset[str]) -> Iterator[Finding]:
    """Judge each record; the names are those of the tests before and after."""
    fresh_texts = {change.new for change in changes if change.old is None and change.new}
    tests_gone = {
        change.path.rpartition("/")[2] for change in changes if change.new is None and role(change.path) == "test"
    }
    mentions_old = "\n".join(change.old or "" for change in changes if role(change.path) in {"test", "support"})
    mentions_new = "\n".join(change.new or "" for change in changes if role(change.path) in {"test", "support"})
    product = (
        frozenset().union(
            *(_words(line.text) for change in changes if role(change.path) == "product" for line in added_lines(change))
        )
        if any(role(change.path) == "snapshot" for change in changes)
        else frozenset()
    )
    for change in changes:
        if change.old is None or (change.new is None and change.old in fresh_texts and not change.binary):
            continue
        match role(change.path):
            case "snapshot":
                if change.path.rpartition("/")[2].removesuffix(".snap") not in tests_gone:
                    yield from _snapshot(change, old_names - new_names, product)
            case "golden" | "testdata" as kind:
                name = change.path.rpartition("/")[2]
                if change.new is None and name in mentions_old and name not in mentions_new:
                    continue
                yield from _record(change, golden=kind == "golden")
            case _:
                pass


def _is_explained(old: str, new: str | None, product: frozenset[str]) -> bool:
    """Tell whether all that a snapshot gained is what the change writes into the product."""
    gained = _words(new or "") - _words(old)
    return bool(gained) and gained <= product


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w-]+", text))


def _snapshot(change: Change, gone: frozenset[str], product: frozenset[str]) -> Iterator[Finding]:
    if change.binary:
        yield found("snapshot-changed", change.path, 1, "A snapshot is replaced.")
        return
    old, new = _entries(change.old or ""), _entries(change.new or "")
    values = set(new.values())
    changed = [name for name, value in old.items() if new.get(name) != value]
    changed = [
        name
        for name in changed
        if not (name not in new and (old[name] in values or any(test in name for test in gone if test)))
    ]
    if not changed:
        return
    if len(changed) == 1 and _is_explained(old[changed[0]], new.get(changed[0]), product):
        yield found("snapshot-changed", change.path, 1, "A snapshot follows the changed code.", changed[0], "warn")
        return
    whole = change.new is None or (len(changed) > 1 and len(changed) > MOST * len(old))
    rule = "snapshots-regenerated" if whole else "snapshot-changed"
    yield found(
        rule, change.path, 1, f"{len(changed)} of {len(old)} snapshots hold something else than before.", changed[0]
    )


def _entries(text: str) -> dict[str, str]:
    if len(text) > LONGEST:
        return dict(enumerate_lines(text))
    found_entries = {
        match["name"]: " ".join(match["value"].split()) for shape in (_JEST, _AMBR) for match in shape.finditer(text)
    }
    return found_entries or ({"": " ".join(text.split())} if text.strip() else {})


def enumerate_lines(text: str) -> Iterator[tuple[str, str]]:
    """Take a text that is too long to read for one entry per line."""
    return ((str(number), line) for number, line in enumerate(text.splitlines()))


def _record(change: Change, *, golden: bool) -> Iterator[Finding]:
    rule = "golden-changed" if golden else "testdata-changed"
    if change.new is None:
        yield found(rule, change.path, 1, "A file that tests read is deleted.")
    elif change.binary:
        if change.old != change.new or golden:
            yield found(rule, change.path, 1, "A file that tests read is replaced.")
    elif (change.old or "").split() != change.new.split():
        before, after = _json(change.old or ""), _json(change.new)
        if before is not None and (before == after or (not golden and _within(before, after))):
            return
        lost = next(removed_lines(change), None)
        if lost is None and not golden:
            return
        line = lost.number if lost else 1
        yield found(
            rule,
            change.path,
            line,
            "A file that tests compare with or read holds something else.",
            lost.text.strip() if lost else "",
        )


def _json(text: str) -> Any:
    if len(text) > LONGEST:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _within(old: Any, new: Any) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and _within(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) <= len(new) and all(_within(one, two) for one, two in zip(old, new, strict=False))
    return bool(old == new)
