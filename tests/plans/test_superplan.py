"""Superplans: what is read from the overview and the sections, and how statuses are written back."""

from pathlib import Path

import pytest

from unstuck.model.plan import Plan, execution_batches, plan_problems
from unstuck.plans.phases import normalise, read_status
from unstuck.plans.plan_file import OpenPlan, open_plan
from unstuck.plans.review import with_review_concerns
from unstuck.plans.superplan import read_phases

HEAD = "| Phase | Name | Depends On | Parallel With | Estimate | Status |\n|---|---|---|---|---|---|\n"
ROWS = (
    "| 0 | Bootstrap (if needed) | - | - | 5 | ⏭️ |\n"
    "| 1 | Setup | 0 | - | 3 | ✅ |\n"
    "| 2A | Backend API | 1 | 2B, 2C | 8 | ⬜ |\n"
    "| 2B | Frontend | 1 | 2A, 2C | 5 | 🔄 |\n"
    "| 2C | Tests | 1 | 2A, 2B | 3 | ⬜ |\n"
    "| 3 | Integration | 2A, 2B, 2C | - | 5 | ⬜ |\n"
)
BACKEND = """\
### Phase 2A: Backend API

> **Depends On**: Phase 1
> **Can Run With**: Phase 2B, Phase 2C (USE PARALLEL SUB-AGENTS)
> **Estimate**: 8 points
> **Status**: ⬜ Not Started

#### Objectives
- [ ] Implement API endpoint(s)
* [ ] Add request validation
- [] Log what is refused

#### Code Changes

##### File: `src/api/auth.ts` (CREATE)

```typescript
// - [ ] this is code, not a task
### Phase 9: neither is this
```

##### File: `src/api/routes.ts:45-67` (MODIFY)

#### Tests (Write First - Must Fail Initially)

**Files:**
- Create: `src/api/auth.ts`
- Modify: `src/api/index.ts:12-15`
- Test: `tests/api/auth.test.ts`

**Step 2: Run test to verify it fails (MANDATORY)**
- Command: `npm test -- tests/api/auth.test.ts`
- Expected: FAIL

#### Definition of Done (Quality Gate)
- [ ] Code passes linter
- [ ] `bash check.sh api` passes

#### Context Checkpoint
- [ ] **CHECKPOINT: Run `/compact focus on: Phase 2A complete`**

"""
TOOLS = """\
| Tool Type | Status | Config File | Command |
|-----------|--------|-------------|---------|
| Linter | ✅ | .eslintrc.json | `npm run lint` |
| Formatter | ❌ | - | - |
| Type Checker | ✅ | tsconfig.json | npm run typecheck |
| Test Framework | ✅ | jest.config.js | npm test \\| cat |

"""
WHOLE = f"# Login Implementation Plan\n\n### Phase Overview (with Poker Estimates)\n\n{HEAD}{ROWS}\n{TOOLS}## Phases\n\n{BACKEND}## Risks\n\n- [ ] not a task\n"


def opened(tmp_path: Path, text: str, name: str = "plan.md") -> OpenPlan:
    (tmp_path / name).write_text(text, newline="")
    return open_plan(tmp_path / name, root=tmp_path)


def read(tmp_path: Path, text: str) -> Plan:
    return opened(tmp_path, text).read()


def concerns(plan: Plan) -> str:
    return "\n".join(one.message for one in plan.concerns)


def test_the_overview_gives_the_phases_their_order_and_their_batches(tmp_path: Path) -> None:
    plan = read(tmp_path, WHOLE)
    assert plan.title == "Login Implementation Plan"
    assert [(one.parallel, one.tasks) for one in execution_batches(plan)] == [
        (False, ("0",)),
        (False, ("1",)),
        (True, ("2a", "2b", "2c")),
        (False, ("3",)),
    ]
    assert [(task.id, task.shown, task.estimate) for task in plan.tasks][2] == ("2a", "2A", "8")
    assert [task.id for task in plan.tasks if task.done] == ["1"]
    assert [task.id for task in plan.tasks if task.skipped] == ["0"]


@pytest.mark.parametrize(
    "head",
    [
        "| Status | Depends On | Name | Phase |",
        "Status | Depends On | Name | Phase",
        "|Status|Dependencies|Name|**PHASE**|",
    ],
)
def test_a_plan_is_known_by_its_overview_whatever_the_order_of_the_columns(tmp_path: Path, head: str) -> None:
    plan = read(tmp_path, f"# P\n\n{head}\n|---|---|---|---|\n| ⬜ | 10B | A \\| B | 0 |\n| ⬜ | - | C | 10B |\n")
    assert [(task.id, task.title, task.depends_on) for task in plan.tasks] == [
        ("0", "A | B", ("10b",)),
        ("10b", "C", ()),
    ]


def test_a_section_gives_items_files_checks_and_a_commit(tmp_path: Path) -> None:
    backend = read(tmp_path, WHOLE).tasks[2]
    assert backend.items == ("Implement API endpoint(s)", "Add request validation", "Log what is refused")
    assert backend.files == ("src/api/auth.ts", "src/api/routes.ts", "src/api/index.ts", "tests/api/auth.test.ts")
    assert [(one.command, one.kind) for one in backend.checks] == [
        ("bash check.sh api", "verify"),
    ]
    assert backend.commit == "feat(backend-api): implement API endpoint(s)"
    assert "Phase 9" in backend.body
    assert "## Risks" not in backend.body


def test_the_table_of_quality_tools_becomes_gates(tmp_path: Path) -> None:
    assert {one.kind: one.command for one in read(tmp_path, WHOLE).gates} == {
        "lint": "npm run lint",
        "types": "npm run typecheck",
        "test": "npm test | cat",
    }


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("bash tests.sh 2a", "test"), ("npm test -- a", "test"), ("cd api && pytest -q", "test"), ("test -f a && make test", "test"),
        ("test -f a.txt", "verify"), ("! test -e a.txt", "verify"), ("grep -q x tests/a.py", "verify"), ("bash check.sh", "verify"),
    ],
)  # fmt: skip
def test_only_a_run_of_tests_is_called_tests(tmp_path: Path, command: str, kind: str) -> None:
    section = f"### Phase 1: A\n\n#### Definition of Done\n- [ ] `{command}` passes\n"
    (task,) = read(tmp_path, f"{HEAD}| 1 | A | - | - | 1 | ⬜ |\n\n{section}").tasks
    assert [(one.command, one.kind) for one in task.checks] == [(command, kind)]


def test_prose_is_not_executed(tmp_path: Path) -> None:
    """Only Verify lines, the table of tools, and bullets that say that a known checker passes are checks."""
    lines = """\
- Run: `rm -rf ../elsewhere`
- Command: `npm test -- a`
- Verify: `sh deploy.sh --dry-run`
#### Definition of Done
- [ ] The README explains `make deploy`
- [ ] `make deploy` succeeds
- [ ] `make check` is described in the docs
- [ ] All tests pass: `make test`
- [ ] `make lint` runs without errors
- [ ] `./release.sh` passes
- [ ] `cp -r dist ../site` succeeds
- [ ] `git push` succeeds and `make lint` passes
"""
    section = f"### Phase 1: A\n\n{lines}"
    plan = open_plan(_written(tmp_path, f"{HEAD}| 1 | A | - | - | 1 | ⬜ |\n\n{section}"), root=tmp_path).read()
    commands = [one.command for one in plan.tasks[0].checks]
    assert commands == ["sh deploy.sh --dry-run", "make test", "make lint"]
    assert any("deploys: `sh deploy.sh --dry-run`" in one.message for one in with_review_concerns(plan).concerns)


def _written(folder: Path, text: str) -> Path:
    path = folder / "plan.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("cell", "heading"),
    [
        ("Phase 2A: Backend", "### Phase 2A: Backend"), ("2A - Backend", "### 2A: Backend"), ("2A (optional)", "## Phase 2A - Backend"),
        ("[Phase 2A](#phase-2a-backend)", "### Phase 2A: Backend"), ("Phase2A", "### Phase 2A: Backend"), ("`2A`", "### Phase2A: Backend"),
    ],
)  # fmt: skip
def test_a_row_and_its_section_are_one_phase_however_the_row_names_it(tmp_path: Path, cell: str, heading: str) -> None:
    text = f"# P\n\n| Phase | Depends On |\n|---|---|\n| {cell} | - |\n\n{heading}\n\n- [ ] Do it\n"
    plan = opened(tmp_path, text)
    (task,) = plan.read().tasks
    assert (task.id, task.title, task.items) == ("2a", "Backend", ("Do it",))
    plan.mark({"2a": "complete"})
    assert (tmp_path / "plan.md").read_text() == text.replace("[ ]", "[x]")


@pytest.mark.parametrize("line", ["> **{}**: {}", "**{}:** {}", "- **{}**: {}"])
def test_a_section_says_the_same_with_or_without_a_quotation(tmp_path: Path, line: str) -> None:
    facts = "\n".join(
        line.format(*fact) for fact in (("Depends On", "Phase 1"), ("Estimate", "1 point"), ("Status", "✅ Done"))
    )
    text = f"# P\n\n## Phase 1: A\n\n- [ ] a\n\n## Phase 2: B\n{facts}\n\n### Notes\n**Status**: ⬜\n"
    (tmp_path / "plan.md").write_text(text)
    _, task = open_plan(tmp_path / "plan.md", "superplan", root=tmp_path).read().tasks
    assert (task.depends_on, task.estimate, task.done) == (("1",), "1 point", True)


def test_a_commit_line_of_the_plan_is_the_subject(tmp_path: Path) -> None:
    text = WHOLE.replace("#### Code Changes", "**Commit**: `feat(api): add tokens`\n\n#### Code Changes")
    assert read(tmp_path, text).tasks[2].commit == "feat(api): add tokens"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Phase 0", "0"), ("Phase 2A", "2a"), ("Phase 2-A", "2a"), ("Phase 2a", "2a"), ("**2B**", "2b"), ("Phase10B", "10b"),
        ("PHASE_2A-1", "2a1"), ("phased", "phased"),
    ],
)  # fmt: skip
def test_an_id_is_what_is_left_without_the_word_phase(raw: str, name: str) -> None:
    assert normalise(raw) == name


@pytest.mark.parametrize(
    "heading", ["### Phase 2A: X", "## Phase 2A - X", "### 2A: X", "## Phase 2-A: X", "### ✅ Phase 2A — X"]
)
def test_a_phase_heading_has_many_shapes(tmp_path: Path, heading: str) -> None:
    plan = read(tmp_path, f"# P\n\n{HEAD}| 2A | X | - | - | 1 | ⬜ |\n\n{heading}\n\n- [ ] Do it\n")
    assert plan.tasks[0].items == ("Do it",)
    assert plan.concerns == ()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("-", ()),
        ("", ()),
        ("None", ()),
        ("Nothing", ()),
        ("Phase 2A, Phase 2B (USE PARALLEL SUB-AGENTS)", ("2a", "2b")),
        ("2A and 2B", ("2a", "2b")),
        ("2A-2C", ("2a", "2b", "2c")),
        ("All previous phases", ("2a", "2b", "2c")),
        ("2A, 9", ("2a", "9")),
        ("[Phase 2A](#phase-2a-backend), [2B](b.md)", ("2a", "2b")),
        ("Phase 2A: Backend", ("2a",)),
        ("2A/2B<br>2C", ("2a", "2b", "2c")),
        ("2A 2X", ("2a", "2x")),
    ],
)
def test_a_list_of_phases_is_read_as_people_write_it(text: str, ids: tuple[str, ...]) -> None:
    assert read_phases(text, ("2a", "2b", "2c", "3"), "3").ids == ids


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("⬜", "pending"), ("🔲", "pending"), ("TODO", "pending"), ("Not Started", "pending"), ("Pending", "pending"),
        ("🔄", "running"), ("⏳", "running"), ("In Progress", "running"), ("✅", "complete"), ("DONE", "complete"),
        ("Complete", "complete"), ("⏸️ Blocked", "blocked"), ("⏭️ Skipped (tools present)", "skipped"), ("", "pending"),
        ("[x]", "complete"), ("[ ]", "pending"), ("in-progress", "running"), ("NOT_STARTED", "pending"),
    ],
)  # fmt: skip
def test_a_status_is_a_symbol_or_a_word(text: str, status: str) -> None:
    assert read_status(text) == (status, True)


# --- what is wrong ------------------------------------------------------------------------------------


def test_ids_that_differ_only_in_marks_are_refused(tmp_path: Path) -> None:
    plan = read(tmp_path, f"{HEAD}| 2.1 | A | - | - | 1 | ⬜ |\n| 21 | B | - | - | 1 | ⬜ |\n")
    assert "The phases 2.1 and 21 have the same id 21" in plan_problems(plan)[0].message


def test_all_problems_are_told_at_once_and_the_circle_is_shown(tmp_path: Path) -> None:
    text = f"{HEAD}| 1 | A | 3, 9 | - | 1 | ⬜ |\n| 2 | B | 2 | - | 1 | ⬜ |\n| 3 | C | 1 | - | 1 | ⬜ |\n"
    found = plan_problems(read(tmp_path, text))
    assert [one.cycle for one in found if one.cycle] == [("1", "3", "1")]
    assert {"Phase 1 depends on an unknown phase '9'.", "Phase 2 depends on itself."} <= {one.message for one in found}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("> **Depends On**: Phase 1", "> **Depends On**: Phase 0", "disagree about Depends On: 1 and 0; the overview counts"),
        ("Phase 2B, Phase 2C (", "Phase 2B (", "disagree about Parallel With: 2B, 2C and 2B"),
        ("> **Estimate**: 8 points", "> **Estimate**: 5 points", "disagree about the estimate: '8' and '5 points'"),
        ("> **Status**: ⬜ Not Started", "> **Status**: ✅ Complete", "disagree about the status"),
    ],
)  # fmt: skip
def test_where_table_and_section_disagree_a_person_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    plan = read(tmp_path, WHOLE.replace(old, new))
    assert told in concerns(plan)
    assert plan.tasks[2].depends_on == ("1",)
    assert plan_problems(plan) == ()


def test_phase_0_or_nothing_disagrees_with_neither(tmp_path: Path) -> None:
    section = "### Phase 1: Setup\n\n> **Depends On**: Phase 0 (or nothing if skipped)\n> **Status**: ✅ Complete\n\n"
    assert "Phase 1 " not in concerns(read(tmp_path, WHOLE.replace("## Risks", section + "## Risks")))


def test_a_one_sided_wish_to_run_in_parallel_is_told_and_not_followed(tmp_path: Path) -> None:
    plan = read(tmp_path, f"{HEAD}| 1 | A | - | 2 | 1 | ⬜ |\n| 2 | B | - | 3 | 1 | ⬜ |\n| 3 | C | - | 2 | 1 | ⬜ |\n")
    assert "Phase 1 may run with 2, but 2 does not say so" in concerns(plan)
    assert [one.tasks for one in execution_batches(plan)] == [("1",), ("2", "3")]


def test_parallel_phases_that_declare_the_same_file_run_one_after_the_other(tmp_path: Path) -> None:
    rows = "| 1 | A | - | 2 | 1 | ⬜ |\n| 2 | B | - | 1 | 1 | ⬜ |\n\n"
    sections = "".join(f"### Phase {n}: P\n\n##### File: `src/a.ts:{n}-{n + 3}` (MODIFY)\n\n" for n in (1, 2))
    plan = read(tmp_path, HEAD + rows + sections)
    assert "both declare src/a.ts" in concerns(plan)
    assert [one.parallel for one in execution_batches(plan)] == [False, False]


def test_a_dependency_between_parallel_phases_wins(tmp_path: Path) -> None:
    plan = read(tmp_path, f"{HEAD}| 1 | A | - | 2 | 1 | ⬜ |\n| 2 | B | 1 | 1 | 1 | ⬜ |\n")
    assert "one depends on the other" in concerns(plan)
    assert plan.tasks[0].parallel_with == ()


# --- several files --------------------------------------------------------------------------------------


def parts(folder: Path) -> Path:
    (folder / "login-plan-1.md").write_text(f"# Login\n\n> Part 1 of 2\n\n{HEAD}{ROWS}\n")
    (folder / "login-plan-2.md").write_text(f"# Login\n\n> Part 2 of 2\n\n{BACKEND}")
    return folder / "login-plan-2.md"


def test_a_split_plan_is_one_plan_whichever_part_is_named(tmp_path: Path) -> None:
    plan = open_plan(parts(tmp_path), "superplan", root=tmp_path)
    assert plan.path.name == "login-plan-1.md"
    assert plan.companions == ("login-plan-2.md",)
    assert plan.read().tasks[2].items[0] == "Implement API endpoint(s)"
    assert plan.mark({"2a": "complete"})
    assert "| 8 | ✅ |" in (tmp_path / "login-plan-1.md").read_text()
    assert "> **Status**: ✅ Complete" in (tmp_path / "login-plan-2.md").read_text()


def test_a_missing_part_makes_the_plan_invalid(tmp_path: Path) -> None:
    parts(tmp_path).unlink()
    plan = open_plan(tmp_path / "login-plan-1.md", root=tmp_path).read()
    assert [one.message for one in plan_problems(plan)] == ["The plan's file login-plan-2.md is missing."]


# --- marking --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_marking_changes_cells_and_boxes_and_no_other_byte(tmp_path: Path, end: str) -> None:
    text = WHOLE.replace("\n", end)
    plan = opened(tmp_path, text)
    assert plan.mark({"2a": "complete", "2b": "stuck", "3": "pending", "0": "skipped", "1": "complete"})
    expected = (
        text.replace("| 8 | ⬜ |", "| 8 | ✅ |")
        .replace("| 5 | 🔄 |", "| 5 | ⏸️ |")
        .replace("⬜ Not Started", "✅ Complete")
    )
    for item in ("Implement API", "Add request", "Code passes", "`bash"):
        expected = expected.replace(f"[ ] {item}", f"[x] {item}")
    expected = expected.replace("[] Log", "[x] Log")
    assert plan.path.read_bytes() == expected.encode()
    assert not plan.mark({"2a": "complete", "2b": "stuck", "3": "pending"}), "nothing is left to change"


def test_a_phase_that_is_done_again_has_open_boxes_again(tmp_path: Path) -> None:
    plan = opened(tmp_path, WHOLE)
    plan.mark({"2a": "complete"})
    assert plan.mark({"2a": "running"})
    assert plan.path.read_text() == WHOLE.replace("| 8 | ⬜ |", "| 8 | 🔄 |").replace(
        "⬜ Not Started", "🔄 In Progress"
    ).replace("[] Log", "[ ] Log")


def test_boxes_that_a_person_ticked_stay_while_the_phase_is_open(tmp_path: Path) -> None:
    text = WHOLE.replace("- [ ] Implement", "- [x] Implement")
    plan = opened(tmp_path, text)
    plan.mark({"2a": "running"})
    assert "- [x] Implement" in plan.path.read_text()


def test_words_in_a_status_cell_stay_words(tmp_path: Path) -> None:
    plan = opened(tmp_path, f"{HEAD}| 1 | A | - | - | 1 | TODO |\n| 2 | B | - | - | 1 |  |\n")
    plan.mark({"1": "complete", "2": "complete"})
    assert plan.path.read_text() == f"{HEAD}| 1 | A | - | - | 1 | Complete |\n| 2 | B | - | - | 1 | ✅ |\n"


def test_bytes_that_are_no_text_survive_marking(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_bytes(f"{HEAD}| 1 | A".encode() + b"\xff" + "é | - | - | 1 | ⬜ |\n".encode())
    plan = open_plan(tmp_path / "plan.md", root=tmp_path)
    plan.mark({"1": "complete"})
    assert plan.path.read_bytes() == f"{HEAD}| 1 | A".encode() + b"\xff" + "é | - | - | 1 | ✅ |\n".encode()


def test_what_would_steer_a_terminal_is_not_read(tmp_path: Path) -> None:
    plan = opened(tmp_path, f"{HEAD}| 1 | Wipe\x1b[2Jout | - | - | 1 | ⬜ |\n")
    assert plan.read().tasks[0].title == "Wipe\ufffd[2Jout"
    plan.mark({"1": "complete"})
    assert "Wipe\x1b[2Jout | - | - | 1 | ✅" in plan.path.read_text()


def test_our_marks_do_not_change_what_a_phase_is(tmp_path: Path) -> None:
    plan = opened(tmp_path, WHOLE)
    before = {task.id: task.digest for task in plan.read().tasks}
    plan.mark(dict.fromkeys(before, "complete"))
    assert {task.id: task.digest for task in plan.read().tasks} == before
    plan.path.write_text(plan.path.read_text().replace("Add request validation", "Add validation"))
    after = {task.id: task.digest for task in plan.read().tasks}
    assert [name for name in before if before[name] != after[name]] == ["2a"]
