"""The files beside a spec's plan: smart-ralph's examples, and what other people keep in them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from unstuck.compat.smart_ralph import (
    NotAState,
    Progress,
    SpecFolder,
    asked_by,
    merged,
    parse,
    progress,
    settings,
    updated,
)
from unstuck.journal.run_state import RunState, fold
from unstuck.model.action import Accept, Decision, Fix
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    Entry,
    Options,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.failure import Failure, Kind
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.verdict import Verdict
from unstuck.plans.plan_file import open_plan
from unstuck.plans.tasks_md import read_tasks_md
from unstuck.policy.profiles import profile

PLAN = "".join(f"- [{'x' if number < 3 else ' '}] 1.{number} Task {number}\n" for number in range(1, 11))
SEED_STATE = {"phase": "execution", "taskIndex": 2, "totalTasks": 10, "fixTaskMap": {}}


def failed(errors: dict[str, str]) -> RunState:
    """Return a run in which task 1.3 failed, once for each fix task, with these errors."""
    tasks = read_tasks_md(PLAN, "tasks.md", runnable=lambda _: True).tasks
    options = Options(agents=("a",), profile="adaptive")
    events: list[Any] = [
        RunStarted(run="r", plan="p", format="tasks.md", base="0", branch=None, options=options, tasks=tuple(tasks))
    ]
    for number, (new, error) in enumerate(errors.items(), 1):
        fix = Fix(id=new, error=error, attempted_fix="")
        added = read_tasks_md(f"- [ ] {new} [FIX 1.3] Fix: it\n", "", runnable=lambda _: True).tasks
        events += [
            AttemptStarted(task="1.3", attempt=number, agent="a", base="0", slot=0),
            SessionEnded(task="1.3", outcome=Outcome(ended=Ended(ending="exited", exit_code=1))),
            Verified(task="1.3", verdict=Verdict(status="fail", tree="t", base="0")),
            Classified(task="1.3", failure=Failure(kind=Kind.CHECK_FAILED, summary=error)),
            Decided(task="1.3", decision=Decision(action=fix, reason="", rung="check_failed[0]")),
            Acted(task="1.3", action=fix, added=tuple(added)),
        ]
    return fold(Entry(seq, float(seq), event) for seq, event in enumerate(events, 1))


ERRORS = {"1.3.1": "File not found: src/parser.ts", "1.3.2": "Syntax error in parser.ts line 42"}


def test_the_seeds_state_after_the_first_fix_comes_out_exactly() -> None:
    state = failed({"1.3.1": ERRORS["1.3.1"]})
    entry = {"attempts": 1, "fixTaskIds": ["1.3.1"], "lastError": "File not found: src/parser.ts"}
    assert merged(SEED_STATE, state) == {
        "phase": "execution", "taskIndex": 2, "totalTasks": 11, "fixTaskMap": {"1.3": entry},
    }  # fmt: skip


def test_the_seeds_state_after_the_second_fix_comes_out_exactly() -> None:
    state = failed(ERRORS)
    before = merged(SEED_STATE, failed({"1.3.1": ERRORS["1.3.1"]}))
    entry = {"attempts": 2, "fixTaskIds": ["1.3.1", "1.3.2"], "lastError": "Syntax error in parser.ts line 42"}
    after = merged(before, state)
    assert after["totalTasks"] == 12
    assert after["fixTaskMap"] == {"1.3": entry}
    assert merged(after, state) == after, "counted once, however often it is written"


def test_what_we_do_not_know_stays_and_in_its_place() -> None:
    before = {
        "nativeTaskMap": {"a": 1}, "phase": "tasks", "custom": [1, {"x": None}], "taskIteration": 4,
        "fixTaskMap": {"9.9": {"attempts": 7, "note": "mine"}, "1.3": {"attempts": 1, "fixTaskIds": ["1.3.0"], "who": "me"}},
    }  # fmt: skip
    after = merged(before, failed({"1.3.1": "boom"}))
    assert list(after)[:5] == list(before)
    assert after["custom"] == [1, {"x": None}]
    assert after["fixTaskMap"]["9.9"] == {"attempts": 7, "note": "mine"}
    assert after["fixTaskMap"]["1.3"] == {
        "attempts": 2, "fixTaskIds": ["1.3.0", "1.3.1"], "who": "me", "lastError": "boom",
    }  # fmt: skip
    assert after["taskIteration"] == 1


def test_the_next_task_is_the_first_that_is_not_done() -> None:
    text = "- [x] 1.1 A\n- [ ] 1.2 B\n- [x] 1.3 C\n- [ ] 1.4 D\n- [ ] 1.4.1 E\n- [ ] 2.1 F\n    - [ ] nested\n"
    tasks = read_tasks_md(text, "", runnable=lambda _: True).tasks
    started = RunStarted(
        run="r", plan="p", format="f", base="0", branch=None, options=Options(agents=()), tasks=tuple(tasks)
    )
    after = merged({}, fold([Entry(1, 0.0, started)]))
    assert (after["totalTasks"], after["taskIndex"]) == (6, 1)


@pytest.mark.parametrize(
    ("content", "recovery", "limits"),
    [
        ({}, False, {}),
        ({"recoveryMode": True}, True, {}),
        ({"recoveryMode": "true"}, False, {}),
        ({"maxFixTasksPerOriginal": 1, "maxFixTaskDepth": 0, "maxTaskIterations": 2, "maxGlobalIterations": 9}, False,
         {"fixes": 1, "fix_depth": 0, "attempts": 2, "executions": 9}),
        ({"maxFixTasksPerOriginal": -1, "maxTaskIterations": 0, "maxFixTaskDepth": "3", "maxGlobalIterations": True}, False, {}),
    ],
)  # fmt: skip
def test_a_state_file_sets_recovery_mode_and_limits(
    content: dict[str, Any], recovery: bool, limits: dict[str, int]
) -> None:
    found = settings(content)
    assert (found.recovery, found.limits) == (recovery, limits)


# --- .progress.md ------------------------------------------------------------------------------------

SEED_PROGRESS = """\
## Completed Tasks
- [x] 1.1 Task A - abc123
- [x] 1.2 Task B - def456

## Learnings
- Some learning
"""


def said(**parts: Any) -> Progress:
    return Progress(**{"completed": {}, "open": frozenset(), "fixes": {}, "learnings": (), **parts})


def test_the_seeds_progress_file_comes_out_exactly() -> None:
    line = "- Task 1.2: 2 fixes attempted (1.2.1, 1.2.2) - Final: PASS"
    after = updated(SEED_PROGRESS, said(fixes={"1.2": line}), "demo")
    head, tail = SEED_PROGRESS.split("## Learnings")
    assert after == f"{head}## Fix Task History\n{line}\n\n## Learnings{tail}"
    assert updated(after, said(fixes={"1.2": line}), "demo") == after


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_sections_are_found_by_heading_wherever_they_stand(end: str) -> None:
    text = end.join(
        ["# P", "", "## Learnings", "- old", "```", "## Completed Tasks", "```", "", "## fix task history", "- Task 1.2: old",
         "- Task 9.9: x", "", "## Completed Tasks", "- [x] 1.1 A - abc", "- [x] 2.2 B - fff", "", "## Next", "text"]
    )  # fmt: skip
    new = said(
        completed={"1.1": "- [x] 1.1 A - def", "1.2": "- [x] 1.2 C"},
        open=frozenset({"2.2"}),
        fixes={"1.2": "- Task 1.2: new"},
        learnings=("- old", "- fresh"),
    )
    after = updated(text, new, "demo")
    assert after == end.join(
        ["# P", "", "## Learnings", "- old", "```", "## Completed Tasks", "```", "- fresh", "", "## fix task history", "- Task 1.2: new",
         "- Task 9.9: x", "", "## Completed Tasks", "- [x] 1.1 A - def", "- [x] 1.2 C", "", "## Next", "text"]
    )  # fmt: skip
    assert updated(after, new, "demo") == after


def test_a_progress_file_is_begun_where_there_is_none() -> None:
    new = said(completed={"1.1": "- [x] 1.1 A - abc"}, fixes={"1.1": "- Task 1.1: x"}, learnings=("- one",))
    assert updated("", new, "demo") == (
        "# Progress: demo\n\n## Completed Tasks\n- [x] 1.1 A - abc\n\n## Fix Task History\n- Task 1.1: x\n\n"
        "## Learnings\n- one\n"
    )


FULL = {"completed": {"1.1": "- [x] 1.1 A - abcdef0"}, "fixes": {"1.1": "- Task 1.1: x"}, "learnings": ("- one",)}


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "# P\r\n\r\n## Learnings\r\n- L",
            ("# P\r\n\r\n## Completed Tasks\r\n- [x] 1.1 A - abcdef0\r\n\r\n## Fix Task History\r\n- Task 1.1: x\r\n\r\n"
            "## Learnings\r\n- L\r\n- one"),
        ),
        (
            "# P\n```sh\n## Learnings\n- L\n",
            "# P\n```sh\n\n## Completed Tasks\n- [x] 1.1 A - abcdef0\n\n## Fix Task History\n- Task 1.1: x\n\n## Learnings\n- L\n- one\n",
        ),
        (
            "````\n```\n## Learnings\n```\n````\n## Completed Tasks ##\n## Fix Task History\n## Learnings:\n",
            ("````\n```\n## Learnings\n```\n````\n## Completed Tasks ##\n- [x] 1.1 A - abcdef0\n\n## Fix Task History\n- Task 1.1: x\n\n"
            "## Learnings:\n- one\n"),
        ),
    ],
    ids=["crlf-without-a-final-newline", "a-fence-that-never-ends", "a-fence-in-a-fence"],
)  # fmt: skip
def test_odd_progress_files_are_added_to_once_and_nothing_else_moves(text: str, after: str) -> None:
    assert updated(text, said(**FULL), "demo") == after
    assert updated(after, said(**FULL), "demo") == after


def test_a_persons_remark_behind_our_line_stays() -> None:
    learning = "- Task 1.1, attempt 1 failed (test_failed): boom"
    text = f"## Completed Tasks\n- [x] 1.1 A - abcdef0 (nice!)\n\n## Fix Task History\n- Task 1.1: x - thanks\n\n## Learnings\n{learning} -> see #7\n"
    assert updated(text, said(**(FULL | {"learnings": (learning,)})), "demo") == text
    again = {"1.1": "- [x] 1.1 A"}
    assert "- [x] 1.1 A\n" in updated("## Completed Tasks\n- [x] 1.1 A - abcdef0\n", said(completed=again), "demo")


def test_nothing_to_say_changes_nothing() -> None:
    for text in (SEED_PROGRESS, SEED_PROGRESS.replace("\n", "\r\n"), "x\r\ny\nz", "## Learnings"):
        assert updated(text, said(), "demo") == text


# --- on disk -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"{ bad", b"[1]", b"\xff\xfe", b'{"a": 1'])
def test_a_state_that_is_not_json_is_kept_aside_and_said(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".ralph-state.json").write_bytes(content)
    told: list[str] = []
    folder = SpecFolder(path=tmp_path, report=told.append)
    (tmp_path / "tasks.md").write_text("- [ ] 1.1 A\n")
    assert asked_by(open_plan(tmp_path)).limits == {}
    folder.write(failed({"1.3.1": "boom"}), profile("fix-tasks").limits)
    (kept,) = tmp_path.glob(".ralph-state.json.unreadable-*")
    assert kept.read_bytes() == content
    assert told[0].startswith("State file is not valid JSON: ")
    assert json.loads((tmp_path / ".ralph-state.json").read_bytes())["totalTasks"] == 11
    with pytest.raises(NotAState, match="State file is not valid JSON:"):
        parse(content)


def test_a_folder_without_files_gets_them_with_the_limits_in_force(tmp_path: Path) -> None:
    SpecFolder(path=tmp_path, report=print).write(failed({"1.3.1": "boom"}), profile("fix-tasks").limits)
    content = json.loads((tmp_path / ".ralph-state.json").read_bytes())
    assert content["name"] == tmp_path.name
    assert (content["maxFixTasksPerOriginal"], content["maxFixTaskDepth"], content["maxGlobalIterations"]) == (
        3,
        3,
        100,
    )
    assert "attempt 1 failed (check_failed): boom" in (tmp_path / ".progress.md").read_text()


def test_an_odd_folder_name_stays_on_its_line_and_the_state_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"-d\xff\n# mo")
    folder.mkdir()
    spec = SpecFolder(path=folder, report=pytest.fail)
    for error in ("boom", "again"):
        spec.write(failed({"1.3.1": error}), profile("fix-tasks").limits)
    assert (folder / ".progress.md").read_text().startswith("# Progress: -d\\xff # mo\n\n")
    assert json.loads((folder / ".ralph-state.json").read_bytes())["name"] == "-d\\xff # mo"


def test_half_a_character_in_a_field_of_somebody_elses_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".ralph-state.json").write_text('{"theirs": "\\ud83d", "mine": "\u2603"}')
    for _ in range(2):
        SpecFolder(path=tmp_path, report=pytest.fail).write(failed({}), profile("fix-tasks").limits)
    content = json.loads((tmp_path / ".ralph-state.json").read_text(encoding="utf-8"))
    assert (content["theirs"], content["mine"], content["totalTasks"]) == ("\ud83d", "\u2603", 10)


def test_an_unchanged_state_is_not_written_again(tmp_path: Path) -> None:
    state = failed({"1.3.1": "boom"})
    folder = SpecFolder(path=tmp_path, report=print)
    folder.write(state, profile("fix-tasks").limits)
    before = [(path.stat().st_ino, path.read_bytes()) for path in sorted(tmp_path.iterdir())]
    folder.write(state, profile("fix-tasks").limits)
    assert [(path.stat().st_ino, path.read_bytes()) for path in sorted(tmp_path.iterdir())] == before


def test_a_death_of_the_supervisor_is_no_learning_and_no_iteration() -> None:
    tasks = tuple(read_tasks_md(PLAN, "tasks.md", runnable=lambda _: True).tasks)
    died = Outcome(ended=Ended(ending="supervisor_died"))
    events: list[Any] = [
        RunStarted(run="r", plan="p", format="f", base="0", branch=None, options=Options(agents=("a",)), tasks=tasks),
        AttemptStarted(task="1.3", attempt=1, agent="a", base="0", slot=0),
        SessionStarted(task="1.3", session=1),
        SessionEnded(task="1.3", outcome=died),
        Verified(task="1.3", verdict=Verdict(status="fail", tree="t", base="0")),
        Classified(task="1.3", failure=Failure(kind=Kind.INTERRUPTED, summary="died")),
        SessionStarted(task="1.3", session=2),
    ]
    state = fold(Entry(seq, float(seq), event) for seq, event in enumerate(events, 1))
    assert progress(state).learnings == ()
    assert merged({"globalIteration": 1}, state)["globalIteration"] == state.executions == 1


def test_a_file_that_is_written_once_says_the_same_as_one_written_after_every_event() -> None:
    tasks = tuple(read_tasks_md(PLAN, "tasks.md", runnable=lambda _: True).tasks)
    events: list[Any] = [
        RunStarted(run="r", plan="p", format="f", base="0", branch=None, options=Options(agents=("a",)), tasks=tasks)
    ]
    for name, attempt, error in (("1.4", 1, "a"), ("1.3", 1, "b"), ("1.4", 2, ""), ("1.3", 2, "")):
        events.append(AttemptStarted(task=name, attempt=attempt, agent="a", base="0", slot=0))
        events.append(SessionEnded(task=name, outcome=Outcome(ended=Ended(ending="exited", exit_code=0))))
        failure = Failure(kind=Kind.CHECK_FAILED, summary=error)
        events.append(Classified(task=name, failure=failure) if error else Acted(task=name, action=Accept()))
    state, often = RunState(), ""
    for seq, event in enumerate(events, 1):
        state.apply(Entry(seq, float(seq), event))
        often = updated(often, progress(state), "demo")
    assert updated("", progress(state), "demo") == often
    assert [line[6:9] for line in often.splitlines() if "[x]" in line] == ["1.4", "1.3"]


def test_hostile_errors_stay_on_their_line_of_the_progress_file() -> None:
    state = failed({"1.3.1": "x\n## Completed Tasks\n- [x] 9.9 done\n```"})
    lines = updated(SEED_PROGRESS, progress(state), "demo").splitlines()
    assert lines[:5] == SEED_PROGRESS.splitlines()[:5]
    assert len(lines) == len(SEED_PROGRESS.splitlines()) + 1
