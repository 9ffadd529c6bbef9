"""Plans as other tools and people keep them: Task Master, Ralph loops, checklists, issues, and overviews in other languages."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.project import Project

from unstuck.model.errors import BadUsage
from unstuck.model.plan import Insertion, Plan, plan_problems
from unstuck.plans.plan_file import open_plan

TASK_MASTER: dict[str, Any] = {
    "master": {
        "tasks": [
            {
                "id": 1,
                "title": "Parse the option",
                "description": "Read --depth.",
                "details": "In options.txt.",
                "testStrategy": "Run `grep -q depth options.txt` in the root.",
                "status": "pending",
                "dependencies": [],
                "priority": "high",
                "subtasks": [],
            },
            {
                "id": 2,
                "title": "Walk with the depth",
                "description": "Use it.",
                "details": "",
                "testStrategy": "",
                "status": "pending",
                "dependencies": [1],
                "priority": "medium",
                "subtasks": [
                    {
                        "id": 1,
                        "title": "Stop",
                        "status": "pending",
                        "dependencies": [],
                        "testStrategy": "`test -f a.txt`",
                        "parentTaskId": 2,
                    },
                    {
                        "id": 2,
                        "title": "Say so",
                        "status": "pending",
                        "dependencies": [1, "2.1"],
                        "testStrategy": "`test -f b.txt`",
                        "parentTaskId": 2,
                    },
                ],
            },
            {"id": 3, "title": "Later", "status": "deferred", "dependencies": [2], "priority": "low", "subtasks": []},
        ],
        "metadata": {"created": "2026-11-16T12:53:55.962Z", "updated": "2026-11-16T12:54:12.397Z"},
    },
    "spike": {"tasks": [{"id": 1, "title": "Other", "status": "pending", "dependencies": []}], "metadata": {}},
}
PRD = """{
  "project": "Greeter",
  "branchName": "ralph/greet",
  "userStories": [
    {"id": "US-002", "title": "Part", "acceptanceCriteria": ["`test -f bye.txt` passes"], "priority": 2, "passes": false, "notes": ""},
    {"id": "US-001", "title": "Greet", "acceptanceCriteria": ["There is a greeting", "Verify: `grep -q hello hi.txt`"],
     "priority": 1, "passes": false, "dependsOn": []}
  ]
}
"""
ISSUE = """\
### Tasks

* [ ] Login
  * [ ] Form
    * Verify: `test -f form.txt`
  * [x] Route
* [ ] #123
* [ ] ~~Old idea~~
* [ ] Search
  * [ ] index
  * [ ] query
  * Verify: `test -f search.txt`

```sh
- [ ] no task
```
"""
FIX_PLAN = (
    "# Ralph Fix Plan\n\n## High Priority\n- [ ] V2 of the store\n\n## Completed\n- [x] Begin\n\n## Notes\n- Focus\n"
)
NUMBERED = "1. [ ] First\n   - Verify: `test -f a`\n2. [ ] Second\n   1. [ ] Inner\n   2. [ ] Outer\n"
GERMAN = """\
# Anmeldung

| Phase | Name | Abhängig von | Parallel mit | Aufwand | Stand |
|---|---|---|---|---|---|
| 1 | Grundlage | keine | - | 3 | Erledigt |
| 2A | Dienst | Phase 1 | 2B | 5 | ⬜ Offen |
| 2B | Rest | 1 | 2A | 5 | Offen |
| 3 | Ende | 2A und 2B | - | 1 | Offen |

### Phase 2A: Dienst
> **Abhängig von**: Phase 1
> **Stand**: ⬜ Offen
"""
CHINESE = """\
| 阶段 | 名称 | 依赖 | 并行 | 状态 |
|---|---|---|---|---|
| 1 | 基础 | 无 | - | 已完成 |
| 2 | 后端 | 1 | - | 未开始 |

### 阶段 2：后端
- Verify: `test -f a`
"""  # noqa: RUF001  # as people write it


def tasks(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {task.id: tuple(one.command for one in task.checks) for task in plan.tasks}


def put(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return path


PLANS: Mapping[str, tuple[str, object, str, Mapping[str, tuple[str, ...]]]] = {
    "task master": (
        "tasks.json", TASK_MASTER, "task-master",
        {"1": ("grep -q depth options.txt",), "2.1": ("test -f a.txt",), "2.2": ("test -f b.txt",), "3": ()},
    ),
    "ralph": ("prd.json", PRD, "prd.json", {"US-001": ("grep -q hello hi.txt",), "US-002": ("test -f bye.txt",)}),
    "stories for a person to look at": (
        "prd.json", {"stories": [
            {"id": "1", "title": "See", "verification": "Look at the page by hand", "passes": False},
            {"id": "2", "title": "Both", "verify": ["The list has three rows.", "test -f a.txt"], "passes": False},
        ]}, "prd.json", {"1": (), "2": ("test -f a.txt",)},
    ),
    "a list of features": (
        "feature_list.json", [{"category": "ui", "description": "It greets", "steps": ["look"], "passes": False}],
        "prd.json", {"s1": ()},
    ),
    "an issue": (
        "issue.md", ISSUE, "checklist",
        {"t1": ("test -f form.txt",), "t2": (), "t3": (), "t4": (), "t5": ("test -f search.txt",)},
    ),
    "an issue as GitHub's API sends it": ("issue.md", "### Do\r\n- [ ] One\r\n  - [ ] Two\r\n", "checklist", {"t1": ()}),
    "a fix plan": ("fix_plan.md", FIX_PLAN, "checklist", {"t1": (), "t2": ()}),
    "numbers": ("todo.md", NUMBERED, "checklist", {"1": ("test -f a",), "2.1": (), "2.2": ()}),
    "german": ("plan.md", GERMAN, "superplan", {"1": (), "2a": (), "2b": (), "3": ()}),
    "chinese": ("plan.md", CHINESE, "superplan", {"1": (), "2": ("test -f a",)}),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "plan_format", "expected"), PLANS.values(), ids=PLANS)
def test_a_plan_is_recognised_by_its_content(
    tmp_path: Path, name: str, content: object, plan_format: str, expected: Mapping[str, tuple[str, ...]]
) -> None:
    plan = open_plan(put(tmp_path, name, content)).read()
    assert (plan.format, tasks(plan), plan_problems(plan)) == (plan_format, expected, ())


def test_a_task_of_task_master_waits_for_tasks_subtasks_and_what_stands_above_it(tmp_path: Path) -> None:
    plan = open_plan(put(tmp_path, "tasks.json", TASK_MASTER)).read()
    waits = {task.id: task.depends_on for task in plan.tasks}
    assert waits == {"1": (), "2.1": ("1",), "2.2": ("2.1", "1"), "3": ("2.1", "2.2")}
    assert [task.id for task in plan.tasks if task.skipped] == ["3"]
    assert any("spike" in concern.message for concern in plan.concerns)


def test_the_subtasks_of_a_task_that_a_person_put_aside_are_left_alone(tmp_path: Path) -> None:
    plan = copy.deepcopy(TASK_MASTER)
    plan["master"]["tasks"][1]["status"] = "cancelled"
    path = put(tmp_path, "tasks.json", plan)
    read = open_plan(path).read()
    assert [task.id for task in read.tasks if task.skipped] == ["2.1", "2.2", "3"]
    assert "Task 2 is cancelled; 2.1 is left alone." in [one.message for one in read.concerns]
    open_plan(path).mark({"1": "complete", "2.1": "skipped", "2.2": "skipped"})
    assert json.loads(path.read_text())["master"]["tasks"][1] == plan["master"]["tasks"][1]


def test_the_current_tag_is_task_masters_own(tmp_path: Path) -> None:
    put(tmp_path, ".taskmaster/state.json", {"currentTag": "spike"})
    put(tmp_path, ".taskmaster/tasks/tasks.json", TASK_MASTER)
    plan_file = open_plan(tmp_path / ".taskmaster")
    assert [task.title for task in plan_file.read().tasks] == ["Other"]
    plan_file.mark({"1": "complete"})
    after = json.loads(plan_file.path.read_text())
    assert after["spike"]["tasks"][0]["status"] == "done"
    assert after["master"] == TASK_MASTER["master"]


def test_statuses_are_written_in_their_own_words_and_nothing_else_changes(tmp_path: Path) -> None:
    path = put(tmp_path, "tasks.json", TASK_MASTER)
    before = path.read_text()
    plan_file = open_plan(path)
    plan_file.mark({"1": "complete", "2.1": "complete", "2.2": "stuck"})
    items = json.loads(path.read_text())["master"]["tasks"]
    assert [items[0]["status"], items[1]["status"], items[2]["status"]] == ["done", "in-progress", "deferred"]
    assert [one["status"] for one in items[1]["subtasks"]] == ["done", "blocked"]
    plan_file.mark({"1": "pending", "2.2": "complete"})
    items = json.loads(path.read_text())["master"]["tasks"]
    assert [items[0]["status"], items[1]["status"]] == ["pending", "done"]
    changed = [one for one in zip(before.splitlines(), path.read_text().splitlines(), strict=True) if one[0] != one[1]]
    assert all('"status"' in old for old, _ in changed)


def test_a_plan_that_is_damaged_meanwhile_is_left_alone_and_told_everything_when_it_can_be_read_again(
    tmp_path: Path,
) -> None:
    path = put(tmp_path, "prd.json", PRD)
    plan_file = open_plan(path)
    path.write_text(PRD[:-9])
    assert not plan_file.mark({"US-001": "complete"})
    assert path.read_text() == PRD[:-9]
    path.unlink()
    assert not plan_file.mark({"US-002": "running"})
    path.write_text(PRD)
    assert plan_file.mark({})
    assert path.read_text() == PRD.replace('"passes": false, "dependsOn"', '"passes": true, "dependsOn"')


def test_a_story_passes_and_no_other_byte_changes(tmp_path: Path) -> None:
    path = put(tmp_path, "prd.json", PRD)
    assert open_plan(path).mark({"US-001": "complete", "US-002": "running"})
    assert path.read_text() == PRD.replace('"passes": false, "dependsOn"', '"passes": true, "dependsOn"')


def test_commands_for_all_stories_are_gates_and_a_story_says_in_its_own_word_that_it_holds(tmp_path: Path) -> None:
    told = {
        "verificationCommands": {"typecheck": "npm run build", "lint": "npm run lint", "deploy": "git push"},
        "stories": [{"id": "a", "title": "Greet", "complete": False}, {"id": "b", "title": "Wave", "complete": True}],
    }
    plan_file = open_plan(put(tmp_path, "prd.json", told))
    plan = plan_file.read()
    assert [(gate.kind, gate.command) for gate in plan.gates] == [("types", "npm run build"), ("lint", "npm run lint")]
    assert [task.done for task in plan.tasks] == [False, True]
    plan_file.mark({"a": "complete", "b": "complete"})
    assert [story["complete"] for story in json.loads(plan_file.path.read_text())["stories"]] == [True, True]


def test_a_box_above_others_is_ticked_with_them_and_items_with_their_task(tmp_path: Path) -> None:
    path = put(tmp_path, "issue.md", ISSUE)
    plan_file = open_plan(path)
    plan = plan_file.read()
    assert [task.id for task in plan.tasks if task.skipped] == ["t4"]
    assert plan.tasks[4].items == ("index", "query")
    assert any("only refers to #123" in concern.message for concern in plan.concerns)
    plan_file.mark({"t5": "complete"})
    ticked = ISSUE.replace("* [ ] Search", "* [x] Search").replace("* [ ] index", "* [x] index")
    assert path.read_text() == ticked.replace("* [ ] query", "* [x] query")
    plan_file.mark({"t1": "complete"})
    assert "* [x] Login\n  * [x] Form" in path.read_text()
    plan_file.mark({"t1": "pending"})
    assert "* [ ] Login\n  * [ ] Form" in path.read_text()


def test_a_checklist_takes_fix_tasks(tmp_path: Path) -> None:
    path = put(tmp_path, "todo.md", NUMBERED)
    plan_file = open_plan(path)
    plan_file.read()
    block = "- [ ] 2.1.1 [FIX 2.1] Fix: it\n  - **Verify**: `test -f x`\n"
    (task,) = plan_file.insert(Insertion(blocks={"2.1.1": block}, beside="2.1"))
    assert (task.id, task.fixes, [one.command for one in task.checks]) == ("2.1.1", "2.1", ["test -f x"])
    again = open_plan(path, "checklist").read()
    assert [(one.id, one.fixes) for one in again.tasks] == [("1", None), ("2.1", None), ("2.1.1", "2.1"), ("2.2", None)]


def test_an_overview_is_kept_current_in_its_own_language(tmp_path: Path) -> None:
    path = put(tmp_path, "plan.md", GERMAN)
    plan_file = open_plan(path)
    plan = plan_file.read()
    assert {task.id: task.depends_on for task in plan.tasks}["3"] == ("2a", "2b")
    assert [task.id for task in plan.tasks if task.done] == ["1"]
    plan_file.mark({"2a": "complete", "2b": "running"})
    after = path.read_text()
    assert "| 2A | Dienst | Phase 1 | 2B | 5 | ✅ Erledigt |" in after
    assert "| 2B | Rest | 1 | 2A | 5 | In Arbeit |" in after
    assert "> **Stand**: ✅ Erledigt" in after


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.md", "# Notes\n\n- one\n- two\n", "it has lists, but no boxes"),
        ("data.json", '{"users": [1]}', 'stories with "passes"'),
        ("tasks.json", '{"version": 2, "tasks": [{"label": "build"}]}', '"tasks" with id, title and status'),
    ],
)
def test_what_is_no_plan_is_told_in_words_that_help(tmp_path: Path, name: str, content: str, words: str) -> None:
    with pytest.raises(BadUsage, match="this version reads") as error:
        open_plan(put(tmp_path, name, content))
    assert words in error.value.message


ODD = (
    "[]",
    "1",
    "null",
    "{}",
    '{"tasks": 5}',
    '{"a": {"tasks": "x"}}',
    '{"tasks": [1, {"id": {}}]}',
    "{",
    '[{"passes": 1}]',
)


@pytest.mark.parametrize("plan_format", ["task-master", "prd.json"])
def test_json_that_is_something_else_is_a_problem_and_never_a_fault(tmp_path: Path, plan_format: str) -> None:
    for content in ODD:
        plan_file = open_plan(put(tmp_path, "plan.json", content), plan_format)
        assert plan_problems(plan_file.read()) != ()


def test_the_lists_of_other_tools_are_run_and_ticked_in_their_own_form(project: Project) -> None:
    begun = copy.deepcopy(TASK_MASTER)
    first, second, _ = begun["master"]["tasks"]
    first["status"] = second["subtasks"][0]["status"] = "done"
    (project.root / "tasks.json").write_text(json.dumps(begun, indent=2))
    (project.root / "prd.json").write_text(PRD.replace('"passes": false', '"passes": true', 1))
    (project.root / "todo.md").write_text("* [ ] Greet\n  * [ ] Loudly\n    * Verify: `test -f loud.txt`\n")
    project.git("add", "-A")
    project.git("commit", "--quiet", "-m", "Plans")
    writes = {"2.2": "b.txt", "US-001": "hi.txt", "t1": "loud.txt"}
    project.script(**{name: [[{"write": path, "text": "hello\n"}]] for name, path in writes.items()})
    for plan in ("tasks.json", "prd.json", "todo.md"):
        told = project.run(plan=plan)
        assert told.code == 0, told
    items = json.loads((project.root / "tasks.json").read_text())["master"]["tasks"]
    assert [item["status"] for item in items] == ["done", "done", "deferred"]
    assert (project.root / "prd.json").read_text() == PRD.replace('"passes": false', '"passes": true')
    assert (project.root / "todo.md").read_text().startswith("* [x] Greet\n  * [x] Loudly")


def test_a_plan_that_somebody_is_in_the_middle_of_writing_is_theirs_and_the_work_comes_home(project: Project) -> None:
    plan = project.root / "prd.json"
    plan.write_text(PRD)
    project.git("add", "-A")
    project.git("commit", "--quiet", "-m", "Plan")
    half = PRD[: len(PRD) // 2]
    project.script(**{
        "US-001": [[{"write": "hi.txt", "text": "hello\n"}, {"write": str(plan), "text": half}]],
        "US-002": [[{"write": "bye.txt"}]],
    })  # fmt: skip
    told = project.run(plan="prd.json")
    assert told.code == 0, told
    assert "The plan cannot be read as it lies there now" in told.out
    assert plan.read_text() == half
    assert (project.root / "hi.txt").exists()
    assert "Tick the plan" not in project.commits()


# --- plans as people write them by hand, and what `unstuck plan` says of them


BY_HAND = {
    "fields without bullets": (
        "- [ ] 1.1 A\n  Verify: `pytest a`\n- [ ] 1.2 B\n  Depends on: 1.1\n  Verify:\n\n  ```\n  pytest b\n  ```\n",
        [("1.1", "A", [], ["pytest a"]), ("1.2", "B", ["1.1"], ["pytest b"])],
        [],
    ),
    "symbols before fields": (
        "- [ ] 1.1 A\n  - ✅ Verify: `pytest a`\n- [ ] 1.2 B\n  - 🔗 **Depends on**: 1.1\n  - ✔️ **Verify**: `pytest b`\n",
        [("1.1", "A", [], ["pytest a"]), ("1.2", "B", ["1.1"], ["pytest b"])],
        [],
    ),
    "keys of a tracker": (
        "- [ ] PROJ-1: A\n- [ ] [PROJ-2] B\n  - Depends on: PROJ-1\n- [ ] [PROJ-3](https://x/PROJ-3) C\n  - Blocked by: OPS-9\n",
        [("PROJ-1", "A", [], []), ("PROJ-2", "B", ["PROJ-1"], []), ("PROJ-3", "C", [], [])],
        ["Task PROJ-3 depends on OPS-9, which is no task of this plan: nothing waits for it."],
    ),
    "what only looks like a key": (
        "- [ ] UTF-8 in\n- [ ] UTF-8 out\n- [ ] SHA-256 sums\n",
        [("t1", "UTF-8 in", [], []), ("t2", "UTF-8 out", [], []), ("t3", "SHA-256 sums", [], [])],
        [],
    ),
    "dependencies in titles": (
        "- [ ] 1.1 A\n- [ ] 1.2 B (depends on 1.1)\n- [ ] 1.3 C, depends on Python 3.11\n",
        [
            ("1.1", "A", [], []),
            ("1.2", "B (depends on 1.1)", ["1.1"], []),
            ("1.3", "C, depends on Python 3.11", [], []),
        ],
        [],
    ),
    "dependencies of a checklist": (
        "1. [ ] A\n2. [ ] B\n   - Depends on: 1\n",
        [("1", "A", [], []), ("2", "B", ["1"], [])],
        [],
    ),
    "dependencies of Kiro's groups": (
        "- [ ] 1. A\n  - [ ] 1.1 B\n    - _Requirements: 1_\n  - [ ] 1.2 C\n- [ ] 2. D\n  - Depends on: 1\n",
        [("1.1", "B", [], []), ("1.2", "C", [], []), ("2", "D", ["1.1", "1.2"], [])],
        [],
    ),
    "dependencies of spec-kit, as a field": (
        "- [ ] T001 A\n- [ ] T002 B\n  - Depends on: T001\n",
        [("T001", "A", [], []), ("T002", "B", ["T001"], [])],
        [],
    ),
    "other languages": (
        "- [ ] 1.1 A\n  - Prüfen: `pytest a`\n- [ ] 1.2 B\n  - Abhängig von: 1.1\n",
        [("1.1", "A", [], []), ("1.2", "B", [], [])],
        [
            "Task 1.1 names `pytest a` and has no Verify, so it is not run.",
            "Task 1.2: the field 'Abhängig von' names tasks and is not read.",
        ],
    ),
    "a Verify for nobody": (
        "### Step 1\n\n- [ ] 1.1 A\n\nVerify with `pytest a`.\n",
        [("1.1", "A", [], [])],
        ["This Verify belongs to no task and is not run."],
    ),
    "a sentence that begins like a command": (
        "- [ ] 1.1 A\n  - Verify: make sure it works\n",
        [("1.1", "A", [], [])],
        ['Task 1.1 has nothing to verify it: "make sure it works" is not a command.'],
    ),
    "nothing but a reference": (
        "- [ ] https://github.com/a/b/issues/125\n",
        [("t1", "https://github.com/a/b/issues/125", [], [])],
        ["Task t1 only refers to https://github.com/a/b/issues/125: nothing here says what is to be done."],
    ),
}


@pytest.mark.parametrize(("text", "tasks", "concerns"), BY_HAND.values(), ids=BY_HAND.keys())
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_what_people_write_by_hand_is_read_or_told(
    project: Project, text: str, tasks: list[Any], concerns: list[str], end: str
) -> None:
    project.file("plan.md", f"---\ntitle: x\n---\n\n# Plan\n\n{text}".replace("\n", end), commit=False)
    told = project.ask("plan", "plan.md", "--json")
    assert told.code == 0, told
    read = [
        (task["id"], task["title"], task["depends_on"], [check["command"] for check in task["checks"]])
        for task in told.json["tasks"]
    ]
    assert read == tasks
    messages = [one["message"] for one in told.json["concerns"] if not one["message"].startswith("Nothing checks")]
    assert messages == concerns


def test_a_task_with_a_key_takes_fix_tasks_and_is_ticked(project: Project) -> None:
    project.file(
        "tasks.md",
        "- [ ] PROJ-1 A\n  - **Verify**: `grep -q right a`\n\n- [ ] PROJ-2: B\n  - **Verify**: `test -f b`\n",
    )
    failed = "Task PROJ-1: A FAILED\n- Error: no a\n- Attempted fix: none\n- Status: Blocked"
    right = {"write": "a", "text": "right\n"}
    project.script(**{"PROJ-1": [[{"print": failed}], [right]], "PROJ-1.1": [[right]], "PROJ-2": [[{"write": "b"}]]})
    told = project.run("--recovery-mode")
    assert told.code == 0, told
    text = (project.root / "tasks.md").read_text()
    assert text == project.git("show", "HEAD:tasks.md") + "\n"
    assert [line.split(" ", 3)[2] for line in text.splitlines() if line.startswith("- [x]")] == [
        "PROJ-1",
        "PROJ-1.1",
        "PROJ-2:",
    ]
