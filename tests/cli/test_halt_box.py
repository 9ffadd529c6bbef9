"""The summary of a halt: the box fits every terminal, and is plain where there is none."""

import pytest

from unstuck.cli.run_text import halt_summary
from unstuck.cli.terminal_text import columns

COMMAND = "unstuck run docs/feature-plan.md --commit auto --resume"
HALTED = f"""\
UNSTUCK HALTED
==============

Reason: Phase 2A failed after retry

COMPLETED PHASES
----------------
Phase 0: Bootstrap ... complete
  Commit: chore(bootstrap): add quality tools
Phase 2B: {"Oberfläche für 日本語 " * 6}... complete
  Commit: feat(ui): add login form

FAILED PHASE
------------
Phase 2A: Backend ... FAILED
  Attempts: 2/2
  Error: test_failure
  Details: 3 tests failing - validateToken returns null instead of user object {"x" * 200}

BLOCKED PHASES
--------------
Phase 3: Integration ... blocked
  Blocked by: 2A

STATE PRESERVED
---------------
Directory: .unstuck/
State files: 6 phases
Logs: .unstuck/logs/

RESUME INSTRUCTIONS
-------------------
1. Fix the failing tests in src/api/auth.test.ts
2. Run: {COMMAND}

To start fresh: Add --fresh flag""".split("\n")
TITLES = ("COMPLETED PHASES", "FAILED PHASE", "BLOCKED PHASES", "STATE PRESERVED", "RESUME INSTRUCTIONS")


@pytest.mark.parametrize("width", [70, 71, 80, 100, 200, 500])
def test_every_line_of_the_box_is_as_wide_as_the_others(width: int) -> None:
    lines = halt_summary(HALTED, width).splitlines()
    assert {columns(line) for line in lines} == {columns(lines[0])}
    assert columns(lines[0]) <= width
    assert all(line[0] in "╔║╠╚" and line[-1] in "╗║╣╝" for line in lines)
    text = "\n".join(lines)
    assert all(f"  {title}" in text for title in TITLES)
    assert COMMAND in text, "a command is never broken"


def test_the_box_is_autobuilds() -> None:
    lines = halt_summary(HALTED, 80).splitlines()
    assert lines[0] == "╔" + "═" * 67 + "╗"
    assert lines[1].strip("║ ") == "UNSTUCK HALTED"
    assert "║  Phase 0: Bootstrap ................................... complete  ║" in lines
    assert any(line.startswith("║    Details: 3 tests failing - validateToken returns null") for line in lines)
    assert any(line.startswith("║             ") and "user object" in line for line in lines), (
        "details go on below themselves"
    )
    assert any(line.startswith("║  To start fresh: Add --fresh flag") for line in lines)


@pytest.mark.parametrize("width", [None, 1, 20, 39, 60], ids=str)
def test_without_a_terminal_or_with_too_narrow_a_one_it_is_plain(width: int | None) -> None:
    text = halt_summary(HALTED, width)
    assert not set("╔║╠╚─") & set(text)
    assert text.startswith("UNSTUCK HALTED\n==============\n\nReason: Phase 2A failed after retry\n")
    assert all(f"\n{title}\n{'-' * len(title)}\n" in text for title in TITLES)
    assert f"2. Run: {COMMAND}\n" in text
