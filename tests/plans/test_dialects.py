"""Plans of spec-kit and Kiro: what is read, what waits for what, and which boxes are ticked."""

from pathlib import Path

import pytest
from tests.project import Project

from unstuck.model.errors import BadUsage
from unstuck.model.plan import Insertion, plan_problems, waves_of
from unstuck.plans.plan_file import OpenPlan, open_plan

KIT = """\
# Tasks: Photo albums

**Input**: Design documents from `/specs/001-photo-albums/`

## Format: `[ID] [P?] [Story] Description`

- **[P]**: Can run in parallel (different files, no dependencies)

## Phase 1: Setup (Shared Infrastructure)

- [x] T001 Create project structure per implementation plan
- [ ] T002 [P] Configure linting in pyproject.toml

---

## Phase 2: Foundational (Blocking Prerequisites)

- [ ] T003 Setup database schema in src/db/schema.sql

**Checkpoint**: Foundation ready - user story implementation can now begin in parallel

## Phase 3: User Story 1 - Albums (Priority: P1)

### Tests for User Story 1

- [ ] T010 [P] [US1] Contract test in tests/contract/test_albums.py
- [ ] T011 [P] [US1] Integration test in tests/integration/test_albums.py

### Implementation for User Story 1

- [ ] T012 [P] [US1] Create Album model in src/models/album.py
- [ ] T013 [P] [US1] Create Photo model in src/models/photo.py
- [ ] T014 [US1] Implement AlbumService in src/services/album.py (depends on T012, T013)
- [ ] T015 [P] [US1] Sorting in src/models/album.py
- [ ] T016 [P] [US1] Filters in src/models/album.py

## Phase 4: User Story 2 - Sharing (Priority: P2)

- [ ] T020 [US2] Share links in src/share.py

## Phase 5: Polish

- [ ] T030 [P] Documentation updates in docs/

## Dependencies & Execution Order

- **Setup (Phase 1)**: No dependencies
- T020 depends on T014
- T014 depends on T030
"""


def kit(tmp_path: Path) -> OpenPlan:
    (tmp_path / "tasks.md").write_text(KIT)
    return open_plan(tmp_path / "tasks.md")


def test_spec_kits_tasks_wait_for_their_foundation_and_not_for_other_stories(tmp_path: Path) -> None:
    plan = kit(tmp_path).read()
    assert plan.format == "spec-kit"
    assert plan_problems(plan) == ()
    tasks = {task.id: task for task in plan.tasks}
    assert list(tasks) == [
        "T001",
        "T002",
        "T003",
        "T010",
        "T011",
        "T012",
        "T013",
        "T014",
        "T015",
        "T016",
        "T020",
        "T030",
    ]
    assert tasks["T001"].done
    assert tasks["T012"].title == "Create Album model in src/models/album.py"
    assert tasks["T012"].markers == ("P", "US1")
    assert tasks["T012"].files == ("src/models/album.py",)
    assert tasks["T002"].depends_on == ()
    assert tasks["T003"].depends_on == ("T001", "T002")
    assert tasks["T010"].depends_on == ("T003",)
    assert tasks["T014"].depends_on == ("T003", "T012", "T013"), "what stands below it cannot come first"
    assert tasks["T020"].depends_on == ("T003", "T014")
    assert set(tasks["T030"].depends_on) == set(tasks) - {"T001", "T002", "T030"}
    assert waves_of(plan.tasks)[0] == ("T001", "T002")


def test_spec_kits_parallel_tasks_are_grouped_by_part_and_file(tmp_path: Path) -> None:
    groups = {task.id: task.group for task in kit(tmp_path).read().tasks}
    assert groups["T010"] == groups["T011"] is not None
    assert groups["T012"] == groups["T013"] is not None
    assert groups["T010"] != groups["T012"]
    assert [groups[name] for name in ("T002", "T014", "T015", "T016", "T020", "T030")] == [None] * 6


def test_a_spec_kit_plan_is_ticked_and_takes_fix_tasks(tmp_path: Path) -> None:
    plan = kit(tmp_path)
    before = plan.read()
    plan.insert(Insertion(blocks={"T003.1": "- [ ] T003.1 [FIX T003] Fix: it\n"}, beside="T003"))
    plan.mark({"T003": "complete"})
    text = KIT.replace("- [ ] T003 Setup", "- [x] T003 Setup").replace(
        "schema.sql\n", "schema.sql\n\n- [ ] T003.1 [FIX T003] Fix: it\n"
    )
    assert plan.path.read_text() == text
    after = {task.id: task for task in open_plan(plan.path).read().tasks}
    assert after["T003.1"].fixes == "T003"
    assert all(after[task.id].depends_on == task.depends_on for task in before.tasks)


KIRO = """\
# Implementation Plan

- [x] 1. Set up project structure
  - Create directories
  - _Requirements: 1.1_

- [ ] 2. Implement data models
  - [x] 2.1 Create interfaces
    - Write TypeScript interfaces
    - _Requirements: 2.1, 3.3_

  - [-] 2.2 Create User model
    ```ts
    - [ ] 9.9 not a task
    ```
    - _Requirements: 1.2_
  - [ ]* 2.3 Write unit tests
    - _Requirements: 2.1_

- [ ] 3. Wire everything
- [ ] 3.1 At column 0
  - _Requirements: 4_
- [ ] 3.2 Also there

## Notes

- [ ] not numbered
"""


def kiro(tmp_path: Path, text: str = KIRO) -> OpenPlan:
    file = tmp_path / ".kiro" / "specs" / "demo" / "tasks.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return open_plan(file.parent)


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_kiros_subtasks_are_the_tasks_and_optional_ones_are_left_out(tmp_path: Path, end: str) -> None:
    plan = kiro(tmp_path, KIRO.replace("\n", end)).read()
    assert plan.format == "kiro"
    assert plan_problems(plan) == ()
    assert [(task.id, task.title, task.done) for task in plan.tasks] == [
        ("1", "Set up project structure", True),
        ("2.1", "Create interfaces", True),
        ("2.2", "Create User model", False),
        ("3.1", "At column 0", False),
        ("3.2", "Also there", False),
    ]
    assert plan.title == "Implementation Plan"
    assert [concern.message for concern in plan.concerns] == [
        "Task 2.3 is optional and is left out.",
        "'- [ ] not numbered' is not read as a task.",
    ]
    assert "_Requirements: 1.2_" in plan.tasks[2].body
    assert "2.3" not in plan.tasks[2].body
    assert "Notes" not in plan.tasks[-1].body


def test_a_parent_is_ticked_with_its_last_subtask_and_unticked_with_the_first(tmp_path: Path) -> None:
    plan = kiro(tmp_path)
    plan.read()
    plan.mark({"3.1": "complete"})
    assert plan.path.read_text() == KIRO.replace("- [ ] 3.1", "- [x] 3.1")
    plan.mark({"2.2": "complete", "3.2": "complete"})
    text = plan.path.read_text()
    assert "- [x] 2. Implement" in text
    assert "- [x] 3. Wire" in text
    assert "- [ ]* 2.3" in text
    plan.mark({"2.2": "pending"})
    assert "- [ ] 2. Implement" in plan.path.read_text()


def test_a_fix_of_a_subtask_stands_beside_it_and_is_no_subtask(tmp_path: Path) -> None:
    plan = kiro(tmp_path)
    plan.read()
    block = "- [ ] 2.2.1 [FIX 2.2] Fix: it\n  - **Verify**: `test -f x`\n"
    (new,) = plan.insert(Insertion(blocks={"2.2.1": block}, beside="2.2"))
    assert (new.id, new.fixes, [one.command for one in new.checks]) == ("2.2.1", "2.2", ["test -f x"])
    text = plan.path.read_text()
    assert (
        "    - _Requirements: 1.2_\n  - [ ] 2.2.1 [FIX 2.2] Fix: it\n    - **Verify**: `test -f x`\n  - [ ]* 2.3"
        in text
    )
    again = open_plan(plan.path).read()
    assert [task.id for task in again.tasks] == ["1", "2.1", "2.2", "2.2.1", "3.1", "3.2"]
    plan.mark({"2.2": "complete"})
    assert "- [x] 2. Implement" in plan.path.read_text(), "a fix task is not what the parent waits for"


def test_the_format_is_recognised_or_said(tmp_path: Path) -> None:
    plain = tmp_path / "todo.md"
    plain.write_text("- [ ] 1. One\n  - _Requirements: 1.1_\n")
    assert open_plan(plain).format == "kiro"
    assert open_plan(plain, "tasks.md").format == "tasks.md"
    plain.write_text("- [ ] 1.1 One\n")
    assert open_plan(plain).format == "tasks.md"
    assert open_plan(plain, "kiro").read().format == "kiro"
    with pytest.raises(BadUsage, match=r"tasks\.md, spec-kit, kiro"):
        open_plan(plain, "other")


def test_a_required_kiro_task_whose_subtasks_are_all_optional_is_done_itself(tmp_path: Path) -> None:
    text = """# Plan

- [ ] 1. Add the parser
  - [ ]* 1.1 Write property tests
  - _Requirements: 1_
- [ ] 2. Add the printer
"""
    opened = kiro(tmp_path, text)
    assert [task.id for task in opened.read().tasks] == ["1", "2"]
    opened.mark({"2": "complete"})
    assert opened.path.read_text() == text.replace("[ ] 2.", "[x] 2.")


def test_what_a_plan_is_printed_as_grows_with_its_tasks_and_not_with_their_square(project: Project) -> None:
    printed = []
    for size in (100, 400):
        lines = [
            f"\n## Phase {n // size}\n\n- [ ] T{n:04d} Make it" if n % size == 0 else f"- [ ] T{n:04d} [P] Make it"
            for n in range(3 * size)
        ]
        project.file("tasks.md", "# Tasks: x\n" + "\n".join(lines) + "\n", commit=False)
        told = project.ask("plan", "tasks.md", "--json")
        assert told.code == 0, told
        printed.append(len(told.out))
        (last,) = (task for task in told.json["tasks"] if task["id"] == f"T{3 * size - 1:04d}")
        (join,) = last["depends_on"]
        assert [task["id"] for task in told.json["tasks"] if join in task["joins"]] == [
            f"T{n:04d}" for n in range(size, 2 * size)
        ]
        assert [name for batch in told.json["batches"] for name in batch] == [f"T{n:04d}" for n in range(3 * size)]
    assert printed[1] < 5 * printed[0]
