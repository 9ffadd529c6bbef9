"""Commands in what other tools' plans say of a task: named as a command, or a known checker in back-ticks."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from unstuck.plans.fields import code_spans
from unstuck.plans.json_places import strings, word
from unstuck.plans.plan import Check
from unstuck.tools import can_fail, only_checks

NAMES = ("verify", "verification", "verifyCommand", "testCommand", "test_command", "command", "preCommit")
"""Members that hold commands, and nothing else."""
_VERIFY = re.compile(r"\W*(?:Verify|Verification)\W*:", re.IGNORECASE)


def told_checks(raw: Mapping[str, Any], sentences: Iterable[str]) -> tuple[Check, ...]:
    """Return what checks a task: the commands under their own names as they are; of sentences, what only checks."""
    found: dict[str, None] = {}
    for name in NAMES:
        found.update(dict.fromkeys(_commands(raw.get(name))))
    for line in (line for text in sentences for line in text.splitlines()):
        asked = _VERIFY.match(line) is not None
        found.update((span, None) for span in code_spans(line) if asked or only_checks(span))
    return tuple(Check(command=command) for command in found if can_fail(command))


def _commands(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = value.get("command") or value.get("run")
    listed = strings(value) if isinstance(value, list) else [word(value)]
    return [span for one in listed if one for span in (code_spans(one) or [one])]
