"""The briefs for an agent that writes or repairs a plan."""

from collections.abc import Mapping, Sequence
from typing import Final

from unstuck.model.plan import Problem
from unstuck.model.text import one_line, quoted
from unstuck.model.verdict import Check
from unstuck.reports.briefs import join_parts, section

GOAL_HEADING = "What is wanted, in the words of whoever wants it"
GOAL_CHARS = 200_000
PLAN_CHARS = 60_000
MAX_PROBLEMS = 40
PROBLEM_CHARS = 600

DRAFT_RULES: Final = """\
You write a plan, and nothing else: other agents will do the work, one task each, without having seen this text.
Look at the repository in the current folder as long as you need. Change no file of it, install nothing, and put the plan into
the file `{file}`. Nobody can answer while you work: decide yourself what is left open, and say in the task what you decided."""

GOOD_PLAN: Final = """\
- One task is what one agent does in one sitting: a few files, one purpose. Its id is its own, and what it depends on is named.
- Every task has one **Verify** with one command in back-ticks that runs from the root of the repository. It must fail now and
  pass when the task is done; it may ask for a test file that the task is to write. A check that holds before the work as well,
  in a refactoring, is a guard: write (guard) behind it. A task that changes nothing and only checks is marked [VERIFY].
- A check looks and changes nothing: it deletes, deploys, publishes, pushes and installs nothing, and asks no network.
- Use the tools that the repository has. The order of the tasks is the order of the work."""

PLAN_SHAPES: Final[Mapping[str, str]] = {
    "tasks.md": """\
# Title

## Phase 1: a few words

- [ ] 1.1 Parse the option --depth
  - **Do**: what must be true when it is done, in a few steps, with the names of functions and files.
  - **Files**: `src/options.py`, `tests/test_options.py`
  - **Verify**: `python -m pytest -q tests/test_options.py`
- [ ] 1.2 Use the depth in the walk
  - **Do**: …
  - **Files**: `src/walk.py`
  - **Depends**: 1.1
  - **Verify**: `python -m pytest -q tests/test_walk.py -k depth`
- [ ] 1.3 [VERIFY] The whole suite still holds
  - **Verify**: `python -m pytest -q`
""",
    "kiro": """\
# Title

- [ ] 1. Options
  - [ ] 1.1 Parse the option --depth
    - What must be true when it is done, with the names of functions and files.
    - **Verify**: `python -m pytest -q tests/test_options.py`
    - _Requirements: 1.1_
  - [ ] 1.2 Use the depth in the walk
    - **Verify**: `python -m pytest -q tests/test_walk.py -k depth`
    - _Requirements: 1.2_
""",
    "spec-kit": """\
# Title

## Phase 1: Foundation

- [ ] T001 Parse the option --depth in src/options.py
  - **Verify**: `python -m pytest -q tests/test_options.py`
- [ ] T002 [US1] Use the depth in src/walk.py (depends on T001)
  - **Verify**: `python -m pytest -q tests/test_walk.py -k depth`
""",
}
"""The formats in which plans are drafted, each with an example of a plan."""


def draft_brief(goal: str, *, file: str, shape: str, gates: Sequence[Check]) -> str:
    """Return the brief that asks for a plan. The goal is foreign text and therefore quoted."""
    gate_lines = [f"- `{one_line(gate.command, PROBLEM_CHARS)}`" for gate in gates]
    return join_parts(
        "# Write a plan",
        DRAFT_RULES.format(file=file),
        section(GOAL_HEADING, quoted(goal, GOAL_CHARS)),
        section("The form", _form(shape)),
        section("What makes it a good plan", GOOD_PLAN),
        section("What holds after every task anyway", "\n".join(gate_lines)),
    )


def repair_brief(goal: str, plan: str, problems: Sequence[Problem], *, file: str, shape: str) -> str:
    """Return the brief that asks for the repair of a plan, with all its problems."""
    request = f"Correct all of this in `{file}`, and leave the rest as it is."
    return join_parts(
        "# Repair a plan",
        DRAFT_RULES.format(file=file),
        section(GOAL_HEADING, quoted(goal, GOAL_CHARS) if goal else ""),
        section(f"The plan as it is, in `{file}`", quoted(plan, PLAN_CHARS) if plan else ""),
        section("What is wrong with it", f"{_problem_list(problems)}\n\n{request}"),
        section("The form", _form(shape)),
        section("What makes it a good plan", GOOD_PLAN if shape else ""),
    )


def _form(shape: str) -> str:
    return f"The plan looks like this; keep to it exactly.\n\n{quoted(shape, PLAN_CHARS)}" if shape else ""


def _problem_list(problems: Sequence[Problem]) -> str:
    lines = [_problem_line(problem) for problem in problems[:MAX_PROBLEMS]]
    more = len(problems) - MAX_PROBLEMS
    if more > 0:
        lines.append(f"- and {more} more")
    return "\n".join(lines)


def _problem_line(problem: Problem) -> str:
    place = f"line {problem.line}: " if problem.line else ""
    return f"- {place}{one_line(problem.message, PROBLEM_CHARS)} {one_line(problem.hint, PROBLEM_CHARS)}"
