"""Recovery mode as stories on real git: the plan, the state, the progress file and the log after each."""

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unstuck.app.inspect import look
from unstuck.journal.run_state import RunState

if TYPE_CHECKING:
    from tests.project import CommandResult, Project

PLAN = """\
# Tasks: Demo

## Phase 1

- [ ] 1.3 Add failure parser
  - **Do**: Add parsing logic to implement.md
  - **Files**: implement.md
  - **Verify**: grep -q "Parse Failure" implement.md
  - **Commit**: feat(coordinator): add failure parser

- [ ] 1.4 [VERIFY] Check everything
  - **Verify**: `test -f implement.md`
"""
PROGRESS = "# Progress: demo\n\n## Original Goal\nA parser.\n\n## Learnings\n- Some learning\n"
FIX = """\
- [{tick}] {id} [FIX {of}] Fix: {error}
  - **Do**: Address the error: {error}
    1. Analyze the failure: Checked alternate paths
    2. Review related code in Files list
    3. Implement fix for: {error}
  - **Files**: implement.md
  - **Done when**: Error "{error}" no longer occurs
  - **Verify**: grep -q "Parse Failure" implement.md
  - **Commit**: `fix(coordinator): address {sort} from task {of}`

"""
FIRST_STATE = {
    "source": "spec", "name": "demo", "phase": "execution", "taskIndex": 0, "totalTasks": 2, "taskIteration": 1,
    "maxTaskIterations": 5, "globalIteration": 1, "maxGlobalIterations": 100, "recoveryMode": False,
    "maxFixTasksPerOriginal": 3, "maxFixTaskDepth": 3, "fixTaskMap": {},
}  # fmt: skip
WRONG = {"write": "implement.md", "text": "half\n"}
RIGHT = {"append": "implement.md", "text": "Parse Failure\n"}


def fixing(task: str, error: str, *, done: bool = False, sort: str = "error") -> str:
    """Return a fix task as it stands in the plan."""
    of = task.rpartition(".")[0]
    return FIX.format(tick="x" if done else " ", id=task, of=of, error=error, sort=sort)


def fixed(*, lastError: str, ids: list[str]) -> dict[str, Any]:  # noqa: N803  # the state file's own name
    """Return an entry of the state's map."""
    return {"attempts": len(ids), "fixTaskIds": ids, "lastError": lastError}


def failing(task: str, error: str, *steps: dict[str, str]) -> list[dict[str, str]]:
    """Return the steps of an agent that works, fails, and says so as smart-ralph's executor does."""
    said = f"Task {task}: Add it FAILED\n- Error: {error}\n- Attempted fix: Checked alternate paths\n- Status: Blocked"
    return [*steps, {"print": said}]


class Spec:
    """A spec folder in a project."""

    def __init__(self, project: "Project", state: dict[str, Any] | None = None, plan: str = PLAN) -> None:
        self.project = project
        self.folder = project.root / "specs" / "demo"
        project.file("specs/demo/tasks.md", plan)
        project.file("specs/demo/.progress.md", PROGRESS)
        if state is not None:
            project.file("specs/demo/.ralph-state.json", json.dumps(state))

    def run(self, *arguments: str) -> "CommandResult":
        return self.project.ask("run", "specs/demo", "--agent", self.project.agent, "--quiet", *arguments)

    @property
    def plan(self) -> str:
        return (self.folder / "tasks.md").read_text()

    @property
    def state(self) -> Any:
        return json.loads((self.folder / ".ralph-state.json").read_text())

    @property
    def progress(self) -> str:
        """The progress file, with every commit as HASH."""
        return re.sub(r" - [0-9a-f]{7}$", " - HASH", (self.folder / ".progress.md").read_text(), flags=re.MULTILINE)

    @property
    def log(self) -> list[str]:
        """The commits of the run's branch that the user's does not have, newest first."""
        run = self.project.ask("status", "--json").json["run"]
        return self.project.commits(f"main..unstuck/{run}")

    @property
    def history(self) -> list[str]:
        text = (self.folder / ".progress.md").read_text()
        assert text.index("## Fix Task History") < text.index("## Learnings\n- Some learning\n")
        return [line for line in text.splitlines() if " attempted (" in line]

    def ticks(self) -> dict[str, bool]:
        lines = [line for line in self.plan.splitlines() if line.startswith("- [")]
        return {line.split()[3 if line[3] == " " else 2]: line[3] == "x" for line in lines}


def test_a_fix_of_a_fix_brings_the_original_home(project: "Project") -> None:
    spec = Spec(project, {"phase": "execution", "taskIndex": 0, "totalTasks": 2, "fixTaskMap": {}, "mine": [1]})
    project.script(
        _1_3=[failing("1.3", "File not found: src/parser.ts", WRONG), [{"print": "TASK_COMPLETE"}]],
        _1_3_1=[failing("1.3.1", "syntax error in parser.ts"), [{"print": "TASK_COMPLETE"}]],
        _1_3_1_1=[[RIGHT, {"print": "TASK_COMPLETE"}]],
    )
    result = spec.run("--recovery-mode")
    assert result.code == 0, result
    head, tail = PLAN.replace("[ ]", "[x]").split("- [x] 1.4")
    one = fixing("1.3.1", "File not found: src/parser.ts", done=True, sort="missing file")
    two = fixing("1.3.1.1", "syntax error in parser.ts", done=True, sort="syntax")
    assert spec.plan == f"{head}{one}{two}- [x] 1.4{tail}"
    assert spec.state == {
        "phase": "execution", "taskIndex": 4, "totalTasks": 4, "mine": [1], "recoveryMode": True,
        "fixTaskMap": {
            "1.3": {"attempts": 1, "fixTaskIds": ["1.3.1"], "lastError": "File not found: src/parser.ts"},
            "1.3.1": {"attempts": 1, "fixTaskIds": ["1.3.1.1"], "lastError": "syntax error in parser.ts"},
        },
    }  # fmt: skip
    assert sorted(spec.history) == [
        "- Task 1.3.1: 1 fix attempted (1.3.1.1) - Final: PASS",
        "- Task 1.3: 1 fix attempted (1.3.1) - Final: PASS",
    ]
    landed = project.git("log", "-1", "--format=%h", "--grep=Unstuck-Task: 1.3.1.1", "--abbrev=7")
    assert f"- [x] 1.3 Add failure parser - {landed}\n" in (spec.folder / ".progress.md").read_text()
    assert project.commits()[:2] == ["Tick the plan", "fix(coordinator): address syntax from task 1.3.1"]
    assert (project.root / "implement.md").read_text() == "half\nParse Failure\n", "the failed work was built upon"
    assert project.git("status", "--short", "--untracked-files=no") == ""
    show, explained = project.ask("show", "1.3.1").out, project.ask("explain", "1.3.1").out
    assert "Lineage: 1.3 → 1.3.1; Fix tasks: 1.3.1.1 (landed)" in show
    assert "Lineage: 1.3 → 1.3.1; Fix tasks: 1.3.1.1 (landed)" in explained
    assert "fixes 1.3" in project.ask("status").out
    assert project.ask("status", "--json").json["tasks"]["1.3"]["fix_tasks"] == ["1.3.1"]
    brief = (project.home / "briefs" / "1.3.1-1-1.md").read_text()
    assert "## What it repairs\n\nTask 1.3 (Add failure parser) failed." in brief
    assert "Error: File not found: src/parser.ts" in brief


def stopped(spec: Spec, result: "CommandResult", error: str, task: str) -> None:
    """Assert that the run halted at this task with this line, everywhere it is looked for."""
    assert result.code == 3, result
    assert error in result.out
    assert error in spec.project.ask("report", task).out
    assert error in (spec.project.home / "reports" / f"{task}.md").read_text()
    assert spec.project.commits()[0].startswith("Write "), "nothing comes home from a run that halted"
    assert spec.ticks()["1.3"] is spec.ticks()["1.4"] is False


def progressed(completed: str, fixes: list[str], learnings: list[str]) -> str:
    """Return the progress file with these lines in its sections."""
    head, tail = PROGRESS.split("## Learnings")
    sections = [f"## Completed Tasks\n{completed}\n" if completed else "", "## Fix Task History\n", *fixes, "\n"]
    return "".join([head, *sections, "## Learnings", tail, *learnings])


def learned(task: str, error: str, attempts: int = 1) -> list[str]:
    return [f"- Task {task}, attempt {number} failed (agent_failed): {error}\n" for number in range(1, attempts + 1)]


def test_the_limit_per_original_halts_with_the_history(project: "Project") -> None:
    spec = Spec(project, {"recoveryMode": True, "maxFixTasksPerOriginal": 1})
    project.script(_1_3=[failing("1.3", "it broke", WRONG)], _1_3_1=[[RIGHT]])
    result = spec.run()
    stopped(spec, result, "ERROR: Max fix attempts (1) reached for task 1.3", "1.3")
    assert "Fix attempts: 1.3.1" in result.out
    assert spec.plan == PLAN.replace("- [ ] 1.4", fixing("1.3.1", "it broke", done=True) + "- [ ] 1.4")
    assert spec.state == {
        "recoveryMode": True, "maxFixTasksPerOriginal": 1, "phase": "execution", "taskIndex": 0, "totalTasks": 3,
        "fixTaskMap": {"1.3": fixed(ids=["1.3.1"], lastError="it broke")},
    }  # fmt: skip
    assert spec.progress == progressed(
        "- [x] 1.3.1 Fix: it broke - HASH\n",
        ["- Task 1.3: 1 fix attempted (1.3.1) - Final: FAIL (max limit)\n"],
        learned("1.3", "it broke", 2),
    )
    assert spec.log == ["fix(coordinator): address error from task 1.3"]


def test_the_depth_limit_halts_with_the_chain(project: "Project") -> None:
    spec = Spec(project, {"recoveryMode": True})
    ids = ["1.3", "1.3.1", "1.3.1.1", "1.3.1.1.1"]
    project.script(**{"_" + name.replace(".", "_"): [failing(name, f"{name} broke", WRONG)] for name in ids})
    result = spec.run()
    stopped(spec, result, "ERROR: Max fix task depth (3) exceeded for task 1.3.1.1.1", "1.3.1.1.1")
    assert "Fix task chain: 1.3 → 1.3.1 → 1.3.1.1 → 1.3.1.1.1" in result.out
    assert "The fix chain has become too deep. Manual intervention required." in result.out
    blocks = [fixing(new, f"{of} broke") for of, new in pairwise(ids)]
    assert spec.plan == PLAN.replace("- [ ] 1.4", "".join(blocks) + "- [ ] 1.4")
    assert spec.state == {
        "recoveryMode": True, "phase": "execution", "taskIndex": 0, "totalTasks": 5,
        "fixTaskMap": {of: fixed(ids=[new], lastError=f"{of} broke") for of, new in pairwise(ids)},
    }  # fmt: skip
    assert spec.progress == progressed(
        "",
        [f"- Task {of}: 1 fix attempted ({new}) - Final: FAIL (max depth)\n" for of, new in pairwise(ids)],
        [line for name in ids for line in learned(name, f"{name} broke")],
    )
    assert spec.log == []
    assert project.status() == {"1.3": "blocked", "1.3.1": "blocked", "1.3.1.1": "blocked", "1.3.1.1.1": "stuck", "1.4": "blocked"}  # fmt: skip
    project.script(_1_3_1_1_1=[[RIGHT]])
    assert project.ask("resume", "--quiet").code == 0, "a person's resume gives a fresh budget"
    assert [line.rpartition(": ")[2] for line in spec.history] == ["PASS"] * 3


def test_the_budget_of_a_lineage_halts(project: "Project") -> None:
    project.settings('[profiles.tight]\nlike = "fix-tasks"\nlimits = { fixes_per_root = 2 }\n')
    spec = Spec(project)
    ids = ["1.3", "1.3.1", "1.3.1.1"]
    project.script(**{"_" + name.replace(".", "_"): [failing(name, f"{name} broke", WRONG)] for name in ids})
    result = spec.run("--profile", "tight")
    stopped(spec, result, "ERROR: Max fix tasks (2) reached for task 1.3", "1.3.1.1")
    blocks = [fixing(new, f"{of} broke") for of, new in pairwise(ids)]
    assert spec.plan == PLAN.replace("- [ ] 1.4", "".join(blocks) + "- [ ] 1.4")
    entries = {of: fixed(ids=[new], lastError=f"{of} broke") for of, new in pairwise(ids)}
    assert spec.state == FIRST_STATE | {"totalTasks": 4, "globalIteration": 3, "fixTaskMap": entries}
    assert spec.progress == progressed(
        "",
        [f"- Task {of}: 1 fix attempted ({new}) - Final: FAIL (budget)\n" for of, new in pairwise(ids)],
        [line for name in ids for line in learned(name, f"{name} broke")],
    )
    assert spec.log == []


def test_going_in_circles_halts_before_the_count(project: "Project") -> None:
    spec = Spec(project)
    project.script(_1_3=[failing("1.3", "it broke", WRONG)], _1_3_1=[[RIGHT]], _1_3_2=[[RIGHT]])
    result = spec.run("--recovery-mode")
    stopped(spec, result, "Attempt 3 ended with the very files of attempts 1 and 2.", "1.3")
    blocks = [fixing(name, "it broke", done=True) for name in ("1.3.1", "1.3.2")]
    assert spec.plan == PLAN.replace("- [ ] 1.4", "".join(blocks) + "- [ ] 1.4")
    entry = fixed(ids=["1.3.1", "1.3.2"], lastError="it broke")
    assert spec.state == FIRST_STATE | {
        "totalTasks": 4, "taskIteration": 3, "globalIteration": 5, "recoveryMode": True, "fixTaskMap": {"1.3": entry},
    }  # fmt: skip
    assert spec.progress == progressed(
        "- [x] 1.3.1 Fix: it broke - HASH\n- [x] 1.3.2 Fix: it broke\n",
        ["- Task 1.3: 2 fixes attempted (1.3.1, 1.3.2) - Final: FAIL (circular)\n"],
        learned("1.3", "it broke", 3),
    )
    assert spec.log == ["fix(coordinator): address error from task 1.3"], "the second fix had nothing to commit"


def test_the_limit_of_the_run_ends_it_and_the_next_run_goes_on(project: "Project") -> None:
    spec = Spec(project, {"recoveryMode": True, "maxGlobalIterations": 2, "globalIteration": 1})
    project.script(_1_3=[failing("1.3", "it broke", WRONG), []], _1_3_1=[failing("1.3.1", "syntax error"), []])
    result = spec.run()
    assert result.code == 2, result
    assert "The limit of 2 sessions for one run is reached." in result.out
    blocks = fixing("1.3.1", "it broke") + fixing("1.3.1.1", "syntax error", sort="syntax")
    assert spec.plan == PLAN.replace("- [ ] 1.4", blocks + "- [ ] 1.4")
    entries = {
        "1.3": fixed(ids=["1.3.1"], lastError="it broke"),
        "1.3.1": fixed(ids=["1.3.1.1"], lastError="syntax error"),
    }
    assert spec.state == {
        "recoveryMode": True, "maxGlobalIterations": 2, "globalIteration": 2, "phase": "execution",
        "taskIndex": 0, "totalTasks": 4, "fixTaskMap": entries,
    }  # fmt: skip
    head, tail = PROGRESS.split("## Learnings")
    lines = [*learned("1.3", "it broke"), *learned("1.3.1", "syntax error")]
    assert spec.progress == "".join([head, "## Learnings", tail, *lines]), "nothing has ended, so there is no history"
    assert spec.log == []
    project.script(_1_3_1_1=[[RIGHT]])
    spec.run()
    assert spec.ticks() == {"1.3": False, "1.3.1": True, "1.3.1.1": True, "1.4": False}
    assert spec.log == ["fix(coordinator): address syntax from task 1.3.1"]
    assert spec.history == ["- Task 1.3.1: 1 fix attempted (1.3.1.1) - Final: PASS"]


def test_without_recovery_mode_max_retries_stops_with_the_seeds_line(project: "Project") -> None:
    spec = Spec(project, {"recoveryMode": False, "maxTaskIterations": 2, "taskIteration": 1})
    project.script(_1_3=[failing("1.3", "it broke", WRONG)])
    result = spec.run("--profile", "max-retries")
    stopped(spec, result, "ERROR: Max retries reached for task 0 after 2 attempts", "1.3")
    assert "Review .progress.md Learnings section for failure details" in result.out
    assert "Fix the issue manually then run `unstuck resume` to resume" in result.out
    assert spec.plan == PLAN
    assert "- Task 1.3, attempt 2 failed (agent_failed): it broke" in (spec.folder / ".progress.md").read_text()
    assert spec.state == {"recoveryMode": False, "maxTaskIterations": 2, "taskIteration": 2, "phase": "execution", "taskIndex": 0, "totalTasks": 2}  # fmt: skip


def test_a_tick_by_hand_is_told_and_the_checks_decide(project: "Project") -> None:
    spec = Spec(project, {"maxTaskIterations": 1})
    project.script(_1_3=[failing("1.3", "it broke", WRONG)])
    assert spec.run("--profile", "max-retries").code == 3
    (spec.folder / "tasks.md").write_text(PLAN.replace("- [ ] 1.3", "- [x] 1.3"))
    assert spec.run().code == 3
    assert "Ticked in the plan by hand: 1.3. The checks decide all the same." in project.ask("log").out
    assert spec.ticks()["1.3"] is False


def test_recovery_mode_and_another_profile_exclude_each_other(project: "Project") -> None:
    spec = Spec(project)
    result = spec.run("--recovery-mode", "--profile", "standard")
    assert result.code == 64
    assert "--recovery-mode is the profile fix-tasks" in result.err


def test_an_end_to_end_step_is_repaired_under_every_profile(project: "Project") -> None:
    plan = "- [ ] VE1 [VERIFY] E2E startup\n  - **Verify**: `test -f up`\n- [ ] 2.1 [RECOVERY] Other\n  - **Verify**: `test -f other`\n"
    spec = Spec(project, plan=plan)
    project.script(VE1=[[], []], VE1_1=[[{"write": "up"}]], _2_1=[[]], _2_1_1=[[{"write": "other"}]])
    result = spec.run()
    assert result.code == 0, result
    assert spec.ticks() == {"VE1": True, "VE1.1": True, "2.1": True, "2.1.1": True}


def test_an_agent_that_does_nothing_after_the_fix_is_complete(project: "Project") -> None:
    """With green checks and nothing left to change, it does not matter that the agent crashed."""
    spec = Spec(project)
    project.script(_1_3=[failing("1.3", "it broke", WRONG), [{"exit": 7}]], _1_3_1=[[RIGHT]])
    assert spec.run("--recovery-mode").code == 0
    assert all(spec.ticks().values())


SPEC_KIT = """\
# Tasks: Albums

## Phase 1: Setup

- [ ] T001 Create the schema in schema.txt

**Checkpoint**: Foundation ready
""".replace("\n", "\r\n")


def test_a_spec_kit_task_that_only_the_gates_check_is_complete_when_its_fix_left_nothing_to_do(
    project: "Project",
) -> None:
    """Nothing of its own was red on the base, and its brief says to change nothing if nothing is left."""
    project.settings('[checks]\nbuild = "test ! -e broken"\n')
    plan = project.root / "specs" / "001-albums" / "tasks.md"
    plan.parent.mkdir(parents=True)
    plan.write_text(SPEC_KIT, newline="")
    project.git("add", "specs")
    project.git("commit", "--quiet", "-m", "Plan")
    work = [{"write": "schema.txt"}, {"write": "broken"}]
    project.script(
        T001=[failing("T001", "syntax error in the schema", *work), [{"print": "TASK_COMPLETE"}]],
        T001_1=[[{"delete": "broken"}, {"print": "TASK_COMPLETE"}]],
    )
    result = project.ask("run", "specs/001-albums", "--agent", project.agent, "--recovery-mode", "--quiet")
    assert result.code == 0, result
    assert project.status() == {"T001": "complete", "T001.1": "complete"}
    assert project.commits()[:2] == ["Tick the plan", "fix(recovery): address syntax from task T001"]
    text = plan.read_bytes().decode()
    head, tail = SPEC_KIT.replace("[ ]", "[x]").split("**Checkpoint**")
    assert text.startswith(f"{head}- [x] T001.1 [FIX T001] Fix: syntax error in the schema\r\n")
    assert text.endswith(f"**Checkpoint**{tail}")
    assert text.count("\n") == text.count("\r\n")


def test_a_plan_whose_fix_was_written_by_hand_waits_for_it_and_repairs_once(project: "Project") -> None:
    plan = PLAN.replace("- [ ] 1.4", "- [ ] 1.3.1 [FIX 1.3] Fix: it\n  - **Verify**: `test -f fixed`\n\n- [ ] 1.4")
    spec = Spec(project, plan=plan)
    project.script(_1_3=[[{"run": "test -f fixed"}, RIGHT]], _1_3_1=[[{"write": "fixed"}]])
    assert spec.run().code == 0
    order = [line for line in project.commits() if "plan" not in line][:2]
    assert order == ["feat(coordinator): add failure parser", "Fix: it"]
    assert all(spec.ticks().values())
    again = spec.run("--from", "1.3", "--json")
    assert {name: task["attempts"] for name, task in again.json["tasks"].items()} == {"1.3": 2, "1.3.1": 1, "1.4": 2}
    assert all(spec.ticks().values()), "what repaired a task stays done when that task is done again"


PERSON = """\
import json, pathlib
folder = pathlib.Path({folder!r})
plan, state, progress = (folder / name for name in ("tasks.md", ".ralph-state.json", ".progress.md"))
plan.write_text(plan.read_text().replace("Check everything", "Check it all") + "\\n- [ ] 1.5 Mine\\n  - **Verify**: `test -f five`\\n")
state.write_text(json.dumps(json.loads(state.read_text()) | {{"note": "mine"}}))
progress.write_text(progress.read_text() + "\\n## Blockers\\n- none\\n")
"""


def test_what_a_person_writes_while_the_run_works_is_kept_and_a_new_task_is_not_passed_over(project: "Project") -> None:
    spec = Spec(project, {"phase": "execution"})
    person = project.root.parent / "person.py"
    person.write_text(PERSON.format(folder=str(spec.folder)))
    project.script(
        _1_3=[failing("1.3", "it broke", WRONG, {"run": f"{sys.executable} -I -S {person}"}), []],
        _1_3_1=[[RIGHT]],
        _1_5=[[{"write": "five"}]],
    )
    result = spec.run("--recovery-mode")
    assert result.code == 0, result
    assert "Written into the plan meanwhile, and not done: 1.5. Run the plan again" in result.out
    assert spec.ticks() == {"1.3": True, "1.3.1": True, "1.4": True, "1.5": False}
    assert "- [x] 1.4 [VERIFY] Check it all\n" in spec.plan
    assert spec.state["note"] == "mine"
    assert spec.progress.endswith("attempt 1 failed (agent_failed): it broke\n\n## Blockers\n- none\n")
    assert spec.run().code == 0
    assert spec.ticks()["1.5"] is True
    assert (spec.state["taskIndex"], spec.state["totalTasks"]) == (4, 4)


def state_of(project: "Project") -> RunState:
    return look(project.root).state


# --- changes that the agent asks for -----------------------------------------------------------------


def asking(sort: str, *titles: str, verify: str = "`rm -rf .git`") -> dict[str, str]:
    """Return the step of an agent that asks for a change of the plan."""
    fields = f"\n  - **Do**: it\n  - **Files**: a\n  - **Done when**: done\n  - **Verify**: {verify}\n  - **Commit**: feat: part"
    tasks = [f"- [ ] 1.9 {title}{fields}" for title in titles]
    content = {"type": sort, "originalTaskId": "1.3", "reasoning": "It is too big", "proposedTasks": tasks}
    return {"print": f"TASK_MODIFICATION_REQUEST\n{json.dumps(content)}"}


def test_a_split_task_is_done_in_parts_and_then_checked(project: "Project") -> None:
    spec = Spec(project, {"modificationMap": {}})
    project.script(
        _1_3=[[WRONG, asking("SPLIT_TASK", "First part", "Second part")]],
        _1_3_1=[[{"write": "more.txt"}]],
        _1_3_2=[[RIGHT]],
    )
    result = spec.run()
    assert result.code == 0, result
    assert ("came after 1.3.1, 1.3.2" in result.out, "recovered" in result.out) == (True, False), result
    sessions = {name: [one.sessions for one in task.attempts] for name, task in state_of(project).tasks.items()}
    assert sessions == {"1.3": [1, 0], "1.3.1": [1], "1.3.2": [1], "1.4": [0]}, "no agent is paid to look at it"
    assert spec.ticks() == {"1.3": True, "1.3.1": True, "1.3.2": True, "1.4": True}
    assert list(spec.ticks()) == ["1.3", "1.3.1", "1.3.2", "1.4"]
    assert "rm -rf" not in spec.plan, "an agent's Verify is not even written down"
    assert spec.plan.count("  - **Verify**: ") == 2, (
        "a part is checked by what it promises, the whole when all is there"
    )
    assert spec.state["modificationMap"]["1.3"] == {
        "count": 1,
        "modifications": [
            {"id": "1.3.1", "type": "SPLIT_TASK", "reason": "It is too big"},
            {"id": "1.3.2", "type": "SPLIT_TASK", "reason": "It is too big"},
        ],
    }
    assert spec.state["totalTasks"] == 4
    assert "Task 1.3.1's agent proposes the check: rm -rf .git. It is not run" in project.ask("log").out


def test_a_split_whose_parts_do_not_make_the_whole_is_found_out_at_the_end(project: "Project") -> None:
    spec = Spec(project)
    project.script(
        _1_3=[[asking("SPLIT_TASK", "First part", "Second part")], [RIGHT]],
        _1_3_1=[[{"write": "more.txt"}]],
        _1_3_2=[[{"write": "less.txt"}]],
    )
    result = spec.run()
    assert result.code == 0, result
    assert [one.sessions for one in state_of(project).tasks["1.3"].attempts] == [1, 1], "an agent does what is left"
    assert (project.root / "implement.md").read_text() == "Parse Failure\n"


def test_a_prerequisite_stands_before_its_task_and_a_follow_up_behind(project: "Project") -> None:
    spec = Spec(project)
    project.script(
        _1_3=[[WRONG, asking("ADD_PREREQUISITE", "Before it", verify="`test -f implement.md`")], [RIGHT, asking("ADD_FOLLOWUP", "After it")]],
        _1_3_1=[[{"write": "implement.md", "text": "other\n"}]],
        _1_3_2=[[]],
    )  # fmt: skip
    result = spec.run()
    assert result.code == 0, result
    assert list(spec.ticks()) == ["1.3.1", "1.3", "1.3.2", "1.4"]
    assert all(spec.ticks().values())
    assert "- [x] 1.3.1 Before it\n" in spec.plan
    assert "clashes with what came meanwhile (implement.md): it begins anew" in project.ask("log").out
    assert (project.root / "implement.md").read_text() == "other\nParse Failure\n"
    assert "  - **Verify**: `test -f implement.md`\n" in spec.plan, "a command that the plan runs anyway"


# --- end-to-end steps --------------------------------------------------------------------------------

E2E = """\
- [ ] VE1 [VERIFY] E2E startup
  - **Verify**: `kill -0 $(cat {pid})`

- [ ] VE2 [VERIFY] E2E check
  - **Verify**: `{check}`

- [ ] VE3 [VERIFY] E2E cleanup
  - **Verify**: `test -f {cleaned}`
"""


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize("works", [True, False], ids=["works", "fails"])
def test_end_to_end_steps_share_what_they_start_until_it_was_cleaned_up(project: "Project", works: bool) -> None:
    pid, cleaned = project.root.parent / "pid", project.root.parent / "cleaned"
    check = f"kill -0 $(cat {pid})" if works else "false"
    spec = Spec(project, {"maxFixTasksPerOriginal": 0}, plan=E2E.format(pid=pid, cleaned=cleaned, check=check))
    serve = f"bash -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $! > {pid}'"
    project.script(
        VE1=[[{"run": serve}]],
        VE2=[[{"write": "e2e.txt", "text": "looked\n"}]],
        VE3=[[{"run": f"bash -c 'kill -0 $(cat {pid}) && touch {cleaned}'"}]],
    )
    result = spec.run()
    assert result.code == (0 if works else 3), result
    assert cleaned.exists(), "the cleanup ran, and what VE1 started was still there"
    assert not running(int(pid.read_text())), "nothing is left after it"
    assert spec.ticks() == {"VE1": True, "VE2": works, "VE3": True}
