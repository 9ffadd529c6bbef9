"""Twelve phases, four at a time, with a conflict, work that is red only together, and a supervisor that is killed."""

import json
import os
import re
import signal
from typing import TYPE_CHECKING

from tests.stories.superplans import PLAN, superplan, write
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.project import Project

FOUR = ("A", "B", "C", "D")


def beside(row: str, name: str) -> str:
    return ", ".join(f"{row}{other}" for other in FOUR if other != name)


def rows() -> list[tuple[str, str, str, str]]:
    """One phase, then twice four side by side, then two, then one that needs all of them."""
    first = [("0", "-", "-", "test -f 0.txt")]
    wide = [(f"1{name}", "0", beside("1", name), f"test -f 1{name.lower()}.txt") for name in FOUR]
    below = [
        (f"2{name}", f"1{'A' if name == 'B' else name}", beside("2", name), f"test -f 2{name.lower()}.txt")
        for name in FOUR
    ]
    narrow = [("3A", "2A, 2C", "3B", "test -f 3a.txt"), ("3B", "2D", "3A", "test -f 3b.txt")]
    return [*first, *wide, *below, *narrow, ("4", "1B, 2B, 3A, 3B", "-", "test -f 4.txt")]


def waits_for(name: str) -> dict[str, str]:
    return {
        "run": f"bash -c 'until grep -q \"acted {name}: landed\" ${{UNSTUCK_BRIEF%/*}}/../logs/execution.log; do sleep 0.05; done'"
    }


def test_a_diamond_of_twelve_survives_a_conflict_a_merge_only_failure_and_a_crash(project: "Project") -> None:
    project.file("shared.txt", "".join(f"line {n}\n" for n in range(1, 21)))
    superplan(project, rows(), tools="| Test Framework | bash both.sh |\n")
    project.file(
        "both.sh",
        'if grep -qs right 2a.txt && grep -qs right 2c.txt; then echo "FAILED tests/both.py::t"; exit 1; fi\n',
    )
    names = [name.lower() for name, *_ in rows()]
    parts = {f"_{name}": [[write(name)]] for name in names}
    parts["_1a"] = [[write("1a"), {"run": "sed -i 5s/$/a/ shared.txt"}]]
    parts["_1b"] = [[waits_for("1a"), write("1b"), {"run": "sed -i 5s/$/b/ shared.txt"}]]
    parts["_2c"] = [[waits_for("2a"), write("2c")], [write("2c", "fitting\n")]]
    marker = project.root.parent / "killed"
    hold = f"bash -c 'test -e {marker} || {{ touch {marker}.now; sleep 60; }}'"
    parts["_2d"] = [[{"run": hold}, write("2d")]]
    project.script(**parts)

    arguments = (
        "run",
        PLAN,
        "--agent",
        project.agent,
        "--profile",
        "single-retry",
        "--on-stuck",
        "skip",
        "--parallel",
        "4",
    )
    with project.start(*arguments) as process:
        wait_until(lambda: marker.with_name("killed.now").exists() or process.poll() is not None, "phase 2D")
        assert process.poll() is None, process.communicate()
        marker.touch()
        os.kill(process.pid, signal.SIGKILL)
    result = project.unstuck("resume")
    assert result.code == 3, result

    status = project.status()
    assert {name for name, word in status.items() if word == "complete"} == set(names) - {"1b", "4"}
    assert (status["1b"], status["4"]) == ("stuck", "blocked")
    for text in (
        "UNSTUCK HALTED",
        "Reason: Phase 1B failed",
        "Error: file_conflict",
        "Phase 4: Part 4 ... blocked\n  Blocked by: 1B",
        "State files: 12 phases",
    ):
        assert text in result.out, result
    together = json.loads((project.home / "phases" / "phase-2c.json").read_text())
    assert "red together with 2a" in together["attempts"][0]["message"]
    assert together["error"]["resolved_on_retry"] is True
    log = (project.home / "logs" / "execution.log").read_text()
    assert "Phase 1A modified lines 5-5\n  Phase 1B modified lines 5-5" in log
    assert all(len(re.findall(rf"acted {name}: landed", log)) == 1 for name in names if name not in ("1b", "4"))
    tip = project.git("for-each-ref", "--format=%(refname)", "refs/heads/unstuck/")
    assert project.git("show", f"{tip}:shared.txt").splitlines()[4] == "line 5a"
