"""SIGKILL the supervisor between any two writes of a change of the plan: whoever goes on finds files that agree.

Task 2.3 fails, its fix task 2.3.1 is written into the plan and lands, and 2.3 is complete. The agents of 3.1, 3.2 and
3.3 ask to have their tasks split, for a prerequisite, and for a follow-up.
"""

import json
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.sampling import some

from unstuck.model.event import Acted, Decided

if TYPE_CHECKING:
    from tests.engine.conftest import World

PLAN = """\
# Tasks: one letter

- [ ] 2.3 Write d
  - **Verify**: grep -q whole d
  - **Commit**: `feat(d): write d`

- [ ] 2.4 [VERIFY] Look at it
  - **Verify**: `test -f d`
"""

WORK = "half\nwhole\n"

PLACES = [
    "after append decided 2.3 1",
    "before rename tasks.md 1",
    "after rename tasks.md 1",
    "before append acted 2.3 1",
    "after append acted 2.3 1",
    "before rename .ralph-state.json 1",
    "before rename .progress.md 1",
    "before rename .ralph-state.json 2",
    "before rename .progress.md 2",
    "after rename .progress.md 2",
    "fix",
    "before append acted 2.3.1 1",
    "after append acted 2.3.1 1",
    "after-fix",
    "before append acted 2.3 2",
    "after append brought_home run 1",
]
TELLING = {
    *("after append decided 2.3 1", "after rename tasks.md 1", "before append acted 2.3 1"),
    *("before rename .ralph-state.json 2", "fix"),
    *("after-fix", "after append brought_home run 1"),
}
"""One death in each stretch between two effects; `make exhaustive` has the places before and behind each."""


@pytest.fixture
def spec(world: "World") -> "World":
    """Add a spec folder in recovery mode to the world."""
    (world.root / "specs" / "demo").mkdir(parents=True)
    state = {"phase": "execution", "taskIndex": 0, "totalTasks": 2, "recoveryMode": True, "fixTaskMap": {}}
    world.commit(
        {
            "specs/demo/tasks.md": PLAN,
            "specs/demo/.ralph-state.json": json.dumps(state),
            "specs/demo/.progress.md": "# Progress: demo\n\n## Learnings\n- old\n",
        }
    )
    return world


def live(world: "World", die_at: str = "") -> int:
    return world.doomed("specs/demo", "auto", die_at).returncode


def outcome(world: "World") -> dict[str, Any]:
    """Return all that may not depend on anybody's death."""
    folder = world.root / "specs" / "demo"
    progress = re.sub(r" - [0-9a-f]{7}$", " - HASH", (folder / ".progress.md").read_text(), flags=re.MULTILINE)
    state = world.state()
    return {
        "plan": (folder / "tasks.md").read_text(),
        "state": json.loads((folder / ".ralph-state.json").read_text()),
        "progress": sorted(progress.splitlines()),
        "log": world.git("log", "--format=%s").splitlines(),
        "tasks": {name: (task.status, len(task.attempts), task.fixes) for name, task in state.tasks.items()},
        "litter": world.litter() + tuple(path.name for path in folder.glob(".unstuck-*")),
    }


@pytest.fixture(scope="session")
def undisturbed() -> dict[str, Any]:
    plan = PLAN.replace("[ ]", "[x]")
    head, tail = plan.split("- [x] 2.4")
    fix = (
        "- [x] 2.3.1 [FIX 2.3] Fix: File not found: d\n  - **Do**: Address the error: File not found: d\n"
        "    1. Analyze the failure: No fix attempted\n    2. Review related code in Files list\n"
        "    3. Implement fix for: File not found: d\n  - **Files**: Same directory as original\n"
        '  - **Done when**: Error "File not found: d" no longer occurs\n  - **Verify**: grep -q whole d\n'
        "  - **Commit**: `fix(d): address missing file from task 2.3`\n\n"
    )
    entry = {"attempts": 1, "fixTaskIds": ["2.3.1"], "lastError": "File not found: d"}
    return {
        "plan": f"{head}{fix}- [x] 2.4{tail}",
        "state": {"phase": "execution", "taskIndex": 3, "totalTasks": 3, "recoveryMode": True, "fixTaskMap": {"2.3": entry}},
        "progress": sorted(
            [
                "# Progress: demo", "", "## Completed Tasks", "- [x] 2.3 Write d - HASH", "- [x] 2.3.1 Fix: File not found: d - HASH",
                "- [x] 2.4 Look at it", "", "## Fix Task History", "- Task 2.3: 1 fix attempted (2.3.1) - Final: PASS", "",
                "## Learnings", "- old", "- Task 2.3, attempt 1 failed (agent_failed): File not found: d",
            ]
        ),
        "log": ["Tick the plan", "fix(d): address missing file from task 2.3", "change", "first"],
        "tasks": {"2.3": ("complete", 2, ("2.3.1",)), "2.3.1": ("complete", 1, ()), "2.4": ("complete", 1, ())},
        "litter": (),
    }  # fmt: skip


def test_nobody_dies(spec: "World", undisturbed: dict[str, Any]) -> None:
    assert live(spec) == 0
    assert outcome(spec) == undisturbed
    assert (spec.root / "d").read_text() == WORK


@pytest.mark.parametrize("place", some(PLACES, kept=TELLING))
def test_a_death_during_a_repair_changes_nothing(spec: "World", undisturbed: dict[str, Any], place: str) -> None:
    assert live(spec, place) == -signal.SIGKILL, place
    done = spec.unstuck("resume", "--quiet")
    assert done.returncode == 0, done.stderr
    assert outcome(spec) == undisturbed
    assert (spec.root / "d").read_text() == WORK
    fixes = [entry.event for entry in spec.entries() if isinstance(entry.event, Acted) and entry.event.added]
    assert len(fixes) == 1


def test_two_deaths_around_the_same_insertion_leave_one_fix_task(spec: "World", undisturbed: dict[str, Any]) -> None:
    assert live(spec, "after rename tasks.md 1") == -signal.SIGKILL
    assert live(spec, "before append acted 2.3 1") == -signal.SIGKILL
    assert spec.unstuck("resume", "--quiet").returncode == 0
    assert outcome(spec) == undisturbed
    assert sum(isinstance(entry.event, Decided) for entry in spec.entries()) == 4


# --- changes that an agent asks for ------------------------------------------------------------------

DEATHS = [
    "after append decided {task} 1",
    "before rename tasks.md 1",
    "after rename tasks.md 1",
    "before append acted {task} 1",
    "after append acted {task} 1",
    "before rename .ralph-state.json 1",
]
WHOLE = """\
- [x] {task} Write p
  - **Verify**: test -f p
  - **Commit**: `feat(p): write p`
"""
PART = """\
- [x] {new} {title}
  - **Do**: it
  - **Files**: p
  - **Done when**: it is
{verify}  - **Commit**: `feat(p): {title}`
"""


@pytest.mark.parametrize(
    ("task", "sort", "titles", "order", "log", "p"),
    [
        ("3.1", "SPLIT_TASK", {"3.1.1": "One", "3.1.2": "Two"}, ["3.1", "3.1.1", "3.1.2"], ["Two", "One"], "one\ntwo\n"),
        ("3.2", "ADD_PREREQUISITE", {"3.2.1": "First"}, ["3.2.1", "3.2"], ["write p", "First"], "first\nwhole\n"),
        ("3.3", "ADD_FOLLOWUP", {"3.3.1": "Later"}, ["3.3", "3.3.1"], ["Later", "write p"], "whole\nlater\n"),
    ],
    ids=["split", "prerequisite", "follow-up"],
)  # fmt: skip
def test_deaths_in_a_row_around_a_change_of_the_plan_change_nothing(
    world: "World", task: str, sort: str, titles: dict[str, str], order: list[str], log: list[str], p: str
) -> None:
    folder = world.root / "specs" / "demo"
    folder.mkdir(parents=True)
    plan = WHOLE.replace("[x]", "[ ]").format(task=task)
    world.commit({"specs/demo/tasks.md": plan, "specs/demo/.ralph-state.json": '{"mine": 1}'})
    for place in DEATHS:
        assert live(world, place.format(task=task)) == -signal.SIGKILL, place
    done = world.unstuck("resume", "--quiet")
    assert done.returncode == 0, done.stdout
    # The Verify of the original must hold after it, not in the parts before it; the agent's own is never taken.
    verify = "  - **Verify**: test -f p\n" if sort == "ADD_FOLLOWUP" else ""
    blocks = {new: PART.format(new=new, title=title, verify=verify) for new, title in titles.items()}
    blocks[task] = WHOLE.format(task=task)
    found = outcome(world)
    assert found["plan"] == "".join(blocks[name] for name in order)
    asked = [{"id": new, "type": sort, "reason": "so"} for new in titles]
    assert found["state"] == {
        "mine": 1, "phase": "execution", "taskIndex": len(order), "totalTasks": len(order),
        "modificationMap": {task: {"count": 1, "modifications": asked}},
    }  # fmt: skip
    assert found["log"] == ["Tick the plan", *(f"feat(p): {title}" for title in log), "change", "first"]
    assert {name: status for name, (status, *_) in found["tasks"].items()} == dict.fromkeys(order, "complete")
    assert ((world.root / "p").read_text(), found["litter"]) == (p, ())
    assert (world.root / "q").exists() is (task == "3.2"), "what was there before the prerequisite is kept beside it"
    assert sum(isinstance(entry.event, Acted) and bool(entry.event.added) for entry in world.entries()) == 1
