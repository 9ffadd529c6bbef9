"""What an agent is told that writes a plan, or repairs one. The goal is material: it is quoted and poses as nothing else."""

from collections.abc import Mapping, Sequence

from unstuck.plans import Check, Problem
from unstuck.tell.text import one_line, quoted

GOAL_CHARS = 200_000
PLAN_CHARS = 60_000
MOST_PROBLEMS = 40
PROBLEM_CHARS = 600

RULES = """You write a plan, and nothing else: other agents will do the work, one task each, without having seen this text.
Look at the repository in the current folder as long as you need. Change no file of it, install nothing, and put the plan into
the file `{file}`. Nobody can answer while you work: decide yourself what is left open, and say in the task what you decided."""

TASKS_MD = """# Title

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
"""
KIRO = """# Title

- [ ] 1. Options
  - [ ] 1.1 Parse the option --depth
    - What must be true when it is done, with the names of functions and files.
    - **Verify**: `python -m pytest -q tests/test_options.py`
    - _Requirements: 1.1_
  - [ ] 1.2 Use the depth in the walk
    - **Verify**: `python -m pytest -q tests/test_walk.py -k depth`
    - _Requirements: 1.2_
"""
SPEC_KIT = """# Title

## Phase 1: Foundation

- [ ] T001 Parse the option --depth in src/options.py
  - **Verify**: `python -m pytest -q tests/test_options.py`
- [ ] T002 [US1] Use the depth in src/walk.py (depends on T001)
  - **Verify**: `python -m pytest -q tests/test_walk.py -k depth`
"""
SHAPES: Mapping[str, str] = {"tasks.md": TASKS_MD, "kiro": KIRO, "spec-kit": SPEC_KIT}
"""The formats in which plans are drafted: those whose Verify lines can be marked."""

LAWS = """- One task is what one agent does in one sitting: a few files, one purpose. Its id is its own, and what it depends on is named.
- Every task has one **Verify** with one command in back-ticks that runs from the root of the repository. It must fail now and
  pass when the task is done; it may ask for a test file that the task is to write. A check that holds before the work as well,
  in a refactoring, is a guard: write (guard) behind it. A task that changes nothing and only checks is marked [VERIFY].
- A check looks and changes nothing: it deletes, deploys, publishes, pushes and installs nothing, and asks no network.
- Use the tools that the repository has. The order of the tasks is the order of the work."""


def draft_brief(goal: str, *, file: str, shape: str, gates: Sequence[Check]) -> str:
    """Ask for a plan."""
    parts = [
        "# Write a plan",
        RULES.format(file=file),
        f"## What is wanted, in the words of whoever wants it\n\n{quoted(goal, GOAL_CHARS)}",
        _form(shape),
        f"## What makes it a good plan\n\n{LAWS}",
        _gates(gates),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def repair_brief(goal: str, plan: str, problems: Sequence[Problem], *, file: str, shape: str) -> str:
    """Hand back everything that is wrong with a plan; the plan itself stands in the file."""
    wanted = f"## What is wanted, in the words of whoever wants it\n\n{quoted(goal, GOAL_CHARS)}" if goal else ""
    parts = [
        "# Repair a plan",
        RULES.format(file=file),
        wanted,
        f"## The plan as it is, in `{file}`\n\n{quoted(plan, PLAN_CHARS)}" if plan else "",
        f"## What is wrong with it\n\n{_listed(problems)}\n\nCorrect all of this in `{file}`, and leave the rest as it is.",
        _form(shape),
        f"## What makes it a good plan\n\n{LAWS}" if shape else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _form(shape: str) -> str:
    return (
        f"## The form\n\nThe plan looks like this; keep to it exactly.\n\n{quoted(shape, PLAN_CHARS)}" if shape else ""
    )


def _gates(gates: Sequence[Check]) -> str:
    if not gates:
        return ""
    lines = [f"- `{one_line(gate.command, PROBLEM_CHARS)}`" for gate in gates]
    return "## What holds after every task anyway\n\n" + "\n".join(lines)


def _listed(problems: Sequence[Problem]) -> str:
    lines = [
        f"- {f'line {one.line}: ' if one.line else ''}{one_line(one.message, PROBLEM_CHARS)} {one_line(one.hint, PROBLEM_CHARS)}"
        for one in problems[:MOST_PROBLEMS]
    ]
    more = len(problems) - MOST_PROBLEMS
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])
