"""No value in a profile of `unstuck.toml` ends in a traceback: what is wrong is refused with its profile and its key."""

import os
import random
import re
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from unstuck.policy.profiles import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.project import CommandResult, Project

ROUNDS = int(os.environ.get("UNSTUCK_FUZZ_ROUNDS", "6"))
SEED = int(os.environ.get("UNSTUCK_FUZZ_SEED", "1"))

ODD_VALUES = (
    *('""', '"x"', '"retry"', "0", "-1", "1.5", "-0.5", "1e400", "inf", "nan", "1" + "0" * 40, "true", "[]", "{}"),
    *("[[]]", "[1]", '[""]', '["x", 1]', "{ a = 1 }", "{ of = 1 }", "[{}]", "[{ of = 1, rungs = 2 }]", "1979-05-27"),
    *('[{ of = ["unknown"], rungs = [] }]', '[{ of = ["unknown"], rungs = ["retry*0"] }]', '"{"', '"{attempts[0]}"'),
    *('[{ of = [["unknown"]], rungs = [1] }]', '["retry*' + "9" * 5000 + '"]', '[{ of = ["x"], rungs = ["jump"] }]'),
    *('"{index:>99999999999}"', "[[[[[[[[1]]]]]]]]", "0x" + "f" * 5000),
)
KEYS = (
    *("like", "about", "view", "classifier", "charges", "on_stuck", "green_base", "ladder", "limits"),
    *("siblings_first", "spent", "name", "ladders", "quota", "land_unverified", "chargse", "Like"),
)
LIMITS = (*(f"limits.{limit.name}" for limit in fields(Limits)), "limits.atempts", "limits.attempts.x")
IN_LADDER = ("of", "rungs", "rung")


def is_fault(result: "CommandResult") -> bool:
    return "fault of ours" in result.err or "Traceback" in result.err


def all_tables() -> "Iterator[tuple[str, str]]":
    """Yield the name of what is odd, and a configuration in which one value of a profile is."""
    for value in ODD_VALUES:
        yield "profiles", f"profiles = {value}\n"
        yield "profiles.mine", f"[profiles]\nmine = {value}\n"
        for like in ("", 'like = "adaptive"\n'):
            for key in (*KEYS, *LIMITS):
                if key != "like" or not like:
                    yield key, f"[profiles.mine]\n{like}{key} = {value}\n"
            for key in IN_LADDER:
                yield f"ladder.{key}", f"[profiles.mine]\n{like}[[profiles.mine.ladder]]\n{key} = {value}\n"


@pytest.mark.parametrize("command", [("config",), ("plan", "tasks.md"), ("policy",), ("policy", "mine")], ids=" ".join)
def test_no_value_of_a_profile_ends_in_a_traceback(project: "Project", command: tuple[str, ...]) -> None:
    project.plan(("1.1", "One", "true"))
    tables = list(all_tables())
    random.Random(SEED).shuffle(tables)
    offenders = []
    for key, text in tables[: ROUNDS * 10]:
        (project.root / "unstuck.toml").write_text(text, encoding="utf-8")
        result = project.ask(*command)
        if is_fault(result):
            offenders.append(f"{key}: {text[:200]!r}\n{result.err[-300:]}")
        elif result.code not in (0, 64):
            offenders.append(f"{key}: exit {result.code} of {text[:200]!r}\n{result.err[-300:]}")
        elif result.code == 64 and not re.search(r"unstuck\.toml|There is no profile 'mine'", result.err):
            offenders.append(f"{key}: says nothing of the file: {text[:200]!r}\n{result.err[-300:]}")
    assert offenders == [], f"{len(offenders)} of {ROUNDS * 10}"
