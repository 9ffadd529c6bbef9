"""Projects with a superplan, for the stories about phases."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.project import CommandResult, Project

PLAN = "docs/feature-plan.md"
Row = tuple[str, str, str, str]
"""An id, what it depends on, what it may run with, and its check."""

SIBLINGS: Sequence[Row] = (
    ("1", "-", "-", "test -f 1.txt"),
    ("2A", "1", "2B, 2C", "bash tests.sh 2a"),
    ("2B", "1", "2A, 2C", "bash tests.sh 2b"),
    ("2C", "1", "2A, 2B", "bash tests.sh 2c"),
    ("3", "2A, 2B, 2C", "-", "test -f 3.txt"),
)
TESTS = """\
if ! grep -q right $1.txt 2>/dev/null; then
  for name in validateToken refreshToken handleExpired; do
    echo "FAILED tests/$1_test.py::$name - AssertionError: $name returns null instead of user object"
  done
  echo "3 failed"; exit 1
fi
"""


def superplan(project: "Project", rows: Sequence[Row] = SIBLINGS, *, tools: str = "", extra: str = "") -> None:
    """Commit a superplan and the tests that its phases are checked with."""
    head = "| Phase | Name | Depends On | Parallel With | Estimate | Status |\n|---|---|---|---|---|---|\n"
    lines = [f"| {name} | Part {name} | {depends} | {beside} | 3 | ⬜ |" for name, depends, beside, _ in rows]
    sections = [
        f"### Phase {name}: Part {name}\n\n> **Status**: ⬜ Not Started\n\n#### Objectives\n- [ ] Write part {name}\n\n"
        + (f"#### Definition of Done\n- [ ] `{check}` passes\n" if check else "")
        for name, _, _, check in rows
    ]
    table = f"| Tool Type | Command |\n|---|---|\n{tools}\n" if tools else ""
    project.file("tests.sh", TESTS)
    project.file(
        PLAN,
        "# Login Implementation Plan\n\n" + head + "\n".join(lines) + f"\n\n{table}\n" + "\n".join(sections) + extra,
    )


def write(name: str, text: str = "right\n") -> dict[str, Any]:
    return {"write": f"{name}.txt", "text": text}


def all_right(**others: Sequence[Sequence[Any]]) -> dict[str, Sequence[Sequence[Any]]]:
    """Script every phase of the siblings to be done at once, but for those given."""
    return {f"_{name}": [[write(name)]] for name in ("1", "2a", "2b", "2c", "3")} | dict(others)


def run(project: "Project", *arguments: str) -> "CommandResult":
    """Run the plan in this process, as autobuild wants it unless told otherwise."""
    chosen = arguments if "--profile" in arguments else ("--profile", "single-retry", *arguments)
    return project.ask("run", PLAN, "--agent", project.agent, *chosen)
