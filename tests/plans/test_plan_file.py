"""Plans on disk: finding them, telling their format, and ticking without losing anybody's edit."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unstuck.model.errors import BadUsage, CannotWrite
from unstuck.plans.plan_file import OpenPlan, open_plan, runnable_in
from unstuck.process.atomic_files import change_file

PLAN = "# Tasks\n\n- [ ] 1.1 First\n  - **Verify**: `true && test -f a`\n\n- [x] 1.2 Second\n- [ ] No id\n"


def open_tasks(path: Path, plan_format: str | None = None, **options: Any) -> OpenPlan:
    return open_plan(path, plan_format, **options)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    folder = tmp_path / "specs" / "demo"
    folder.mkdir(parents=True)
    (folder / "tasks.md").write_text(PLAN)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- finding ----------------------------------------------------------------------------------------


def test_a_plan_is_found_by_its_file_or_its_folder(spec: Path) -> None:
    assert open_tasks(spec).path == open_tasks(spec / "tasks.md").path == spec / "tasks.md"
    assert [task.id for task in open_tasks(spec).read().tasks] == ["1.1", "1.2", "t1"]


def test_companions_stand_beside_a_plan_in_a_spec_folder(spec: Path, tmp_path: Path) -> None:
    assert open_tasks(spec).companions == (".ralph-state.json", ".progress.md")
    assert open_tasks(spec / "tasks.md").companions == ()
    (spec / "requirements.md").touch()
    assert open_tasks(spec / "tasks.md").companions == (".ralph-state.json", ".progress.md")
    (tmp_path / "todo.md").write_text(PLAN)
    assert open_tasks(tmp_path / "todo.md").companions == ()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    (path / "tasks.md").mkdir(parents=True)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "There is no plan {}."),
        (lambda path: path.symlink_to("gone"), "There is no plan {}."),
        (Path.mkdir, "The folder {} has no tasks.md."),
        (make_folder, "The plan {}/tasks.md is no file."),
        (make_pipe, "The plan {} is no file."),
        (make_loop, "Cannot read the plan {}: Too many levels of symbolic links."),
    ],
    ids=["missing", "broken link", "empty folder", "tasks.md is a folder", "pipe", "loop"],
)
def test_what_is_no_plan_file_is_refused_with_a_hint(
    make: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(BadUsage) as refused:
        open_tasks(path)
    assert refused.value.message == message.format(path)
    assert refused.value.exit_code == 64
    assert refused.value.hint


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000], ids=["nul", "too long"])
def test_an_impossible_path_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(BadUsage):
        open_tasks(tmp_path / path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_plan_is_refused(spec: Path) -> None:
    (spec / "tasks.md").chmod(0)
    with pytest.raises(BadUsage, match="Permission denied"):
        open_tasks(spec)


def test_a_broken_json_plan_is_told_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "prd.json"
    path.write_text('{"userStories": [')
    with pytest.raises(BadUsage, match=r"prd\.json is no valid JSON: .*line 1 column 18"):
        open_tasks(path)


# --- formats ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("", "is empty"),
        ("# Notes\n\nNothing to do.\n", "a text without a task line"),
        ('[{"a": 1}]', "a JSON file"),
        pytest.param("[" * 5000, "a text without a task line", id="deep"),
    ],
)
def test_an_unknown_format_says_what_was_seen_and_what_is_read(content: str, seen: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.write_text(content)
    with pytest.raises(BadUsage) as refused:
        open_tasks(path)
    assert seen in refused.value.message
    assert "this version reads tasks.md" in refused.value.message
    assert "unstuck draft" in refused.value.hint
    assert open_tasks(path, "tasks.md").path == path


def test_a_format_that_we_do_not_know_is_refused(spec: Path) -> None:
    with pytest.raises(BadUsage, match="no plan format 'scrum'"):
        open_tasks(spec, "scrum")


@pytest.mark.parametrize("content", ["", "- [x](link)\n", "- [ ] 1.1 A\n* [ ] 1.2 almost\n", "\r- [ ] 1.1 A"])
def test_a_file_called_tasks_md_is_read_as_one(content: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.md").write_text(content, newline="")
    assert open_tasks(tmp_path).read().format == "tasks.md"


@pytest.mark.parametrize("name", ["tasks.md", "plan.bin"])
def test_a_binary_file_is_a_plan_with_a_problem(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x7fELF\0\0\xff" * 100)
    plan = open_tasks(tmp_path / name).read()
    assert [problem.message for problem in plan.problems] == ["The file is not text: it has NUL bytes."]


def test_a_huge_file_is_a_plan_with_a_problem(tmp_path: Path) -> None:
    with (tmp_path / "tasks.md").open("wb") as file:
        file.truncate(50_000_001)
    plan = open_tasks(tmp_path).read()
    assert [problem.message for problem in plan.problems] == [f"{tmp_path}/tasks.md is larger than 50 MB."]


# --- commands ---------------------------------------------------------------------------------------


def test_words_that_run_are_builtins_programs_and_files_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "check").touch()
    runnable = runnable_in(tmp_path)
    assert [word for word in ("test", "!", "git", "scripts/check", "/bin/sh") if not runnable(word)] == []
    assert [word for word in ("All", "scripts", "scripts/gone", "", "x" * 5000, "Exit") if runnable(word)] == []


def test_plain_verify_lines_are_judged_in_the_repository_around_the_plan(spec: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "check.sh").touch()
    (spec / "tasks.md").write_text("- [ ] 1.1 A\n  - **Verify**: ./check.sh --all\n")
    assert [check.command for check in open_tasks(spec).read().tasks[0].checks] == ["./check.sh --all"]
    assert open_tasks(spec, root=spec).read().tasks[0].checks == ()


# --- ticking ----------------------------------------------------------------------------------------


def test_a_tick_on_disk_changes_one_byte_and_leaves_nothing_behind(spec: Path) -> None:
    plan = open_tasks(spec)
    assert plan.mark({"1.1": "complete"})
    assert (spec / "tasks.md").read_text() == PLAN.replace("[ ] 1.1", "[x] 1.1")
    assert plan.mark({"1.1": "complete", "1.2": "complete"}) is False
    assert plan.mark({"1.1": "pending"})
    assert (spec / "tasks.md").read_text() == PLAN
    assert names(spec) == ["tasks.md"]


def test_nothing_is_written_when_nothing_changes(spec: Path) -> None:
    before = (spec / "tasks.md").stat()
    assert open_tasks(spec).mark({"1.2": "complete"}) is False
    after = (spec / "tasks.md").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_the_mode_is_kept_and_a_link_stays_a_link(spec: Path, tmp_path: Path) -> None:
    (spec / "tasks.md").chmod(0o640)
    link = tmp_path / "link.md"
    link.symlink_to(spec / "tasks.md")
    open_tasks(link).mark({"1.1": "complete"})
    assert link.is_symlink()
    assert "[x] 1.1" in (spec / "tasks.md").read_text()
    assert stat.S_IMODE((spec / "tasks.md").stat().st_mode) == 0o640


def test_tasks_that_vanished_are_passed_over_and_the_others_ticked(spec: Path) -> None:
    plan = open_tasks(spec)
    plan.read()
    (spec / "tasks.md").write_text("- [ ] 1.1 First\n- [ ] Another\n")
    assert plan.mark({"1.1": "complete", "1.2": "complete", "t1": "complete"})
    assert (spec / "tasks.md").read_text() == "- [x] 1.1 First\n- [ ] Another\n"


def test_a_task_without_an_id_is_found_by_its_title_after_an_edit(spec: Path) -> None:
    plan = open_tasks(spec)
    plan.read()
    (spec / "tasks.md").write_text("- [ ] Another\n- [ ] No id\n")
    assert plan.mark({"t1": "complete"})
    assert (spec / "tasks.md").read_text() == "- [ ] Another\n- [x] No id\n"
    again = open_tasks(spec, titles={"t1": "No id"}).read()
    assert [(task.id, task.done) for task in again.tasks] == [("t2", False), ("t1", True)]


@pytest.mark.parametrize("in_place", [True, False], ids=["written in place", "replaced"])
def test_a_persons_edit_between_our_read_and_write_is_kept(spec: Path, in_place: bool) -> None:
    path = spec / "tasks.md"
    edits = ["a person's line\n"]

    def change(content: bytes) -> bytes:
        for line in edits[:]:
            edits.remove(line)
            if in_place:
                path.write_text(PLAN + line)
            else:
                (spec / "new").write_text(PLAN + line)
                (spec / "new").rename(path)
        return content.replace(b"[ ] 1.1", b"[x] 1.1")

    assert change_file(path, change)
    assert path.read_text() == PLAN.replace("[ ] 1.1", "[x] 1.1") + "a person's line\n"
    assert names(spec) == ["tasks.md"]


def test_a_file_that_never_rests_is_given_up_with_the_last_edit_kept(spec: Path) -> None:
    path = spec / "tasks.md"

    def change(content: bytes) -> bytes:
        path.write_bytes(content + b"x")
        return b"ours"

    with pytest.raises(CannotWrite, match="it keeps changing"):
        change_file(path, change)
    assert path.read_text().startswith(PLAN + "x")
    assert names(spec) == ["tasks.md"]


def test_a_read_only_plan_is_not_written(spec: Path) -> None:
    plan = open_tasks(spec)
    (spec / "tasks.md").chmod(0o444)
    with pytest.raises(CannotWrite, match="it is read-only") as refused:
        plan.mark({"1.1": "complete"})
    assert refused.value.hint
    assert (spec / "tasks.md").read_text() == PLAN
    assert names(spec) == ["tasks.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_told(spec: Path) -> None:
    plan = open_tasks(spec)
    spec.chmod(0o555)
    with pytest.raises(CannotWrite, match="Permission denied"):
        plan.mark({"1.1": "complete"})


def test_a_plan_that_was_deleted_is_told(spec: Path) -> None:
    plan = open_tasks(spec)
    (spec / "tasks.md").unlink()
    assert not plan.mark({"1.1": "complete"})
    assert [one.message for one in plan.read().problems] == ["The plan's file tasks.md is missing."]
    assert names(spec) == []


def test_what_a_killed_supervisor_left_is_removed_by_the_next_tick(spec: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = spec / f".unstuck-tick-{int(killed.stdout)}-abc"
    left.write_text("half")
    running = spec / f".unstuck-tick-{os.getppid()}-abc"
    running.write_text("half")
    open_tasks(spec).mark({"1.1": "complete"})
    assert names(spec) == [running.name, "tasks.md"]
