"""What a user relies on, told through the command line: real processes, real git, a scripted agent."""

import json
import os
import re
import shlex
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.project import Project

A = ("1.1", "Make a", "test -f a.txt")
B = ("1.2", "Make b", "test -f b.txt")
C = ("1.3", "Make c", "test -f c.txt")
MAKE_A, MAKE_B, MAKE_C = {"write": "a.txt", "text": "a\n"}, {"write": "b.txt", "text": "b\n"}, {"write": "c.txt"}


# --- what agents do wrong ------------------------------------------------------------------------------


def test_a_false_done_is_caught_and_the_next_attempt_knows_what_was_wrong(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    project.script(
        _1_1=[
            [{"write": "a.txt", "text": "wrong\n"}, {"print": "All tests pass.\nAPPROACH: guess"}],
            [{"write": "a.txt", "text": "right\n"}],
        ]
    )
    result = project.run("--json")
    assert result.code == 0, result
    assert result.json["tasks"]["1.1"] == {
        "status": "complete",
        "attempts": 2,
        "commit": project.git("rev-parse", "main~1"),
        "cost_usd": None,
    }
    brief = (project.home / "briefs" / "1.1-2-1.md").read_text()
    assert "Attempt 1: guess - FAILED" in brief
    assert "grep -q right a.txt" in brief
    assert (project.root / "a.txt").read_text() == "right\n"


def test_a_crash_is_retried_in_the_tree_that_it_left(project: "Project") -> None:
    project.plan(("1.1", "Make both", "test -f a.txt && test -f b.txt"))
    project.script(_1_1=[[MAKE_A, {"error": "Traceback: boom"}, {"exit": 1}], [MAKE_B]])
    result = project.run("--json")
    assert result.json["tasks"]["1.1"]["attempts"] == 2, result
    assert project.git("ls-tree", "--name-only", "main", "a.txt", "b.txt") == "a.txt\nb.txt"


def test_a_hanging_agent_whose_work_is_right_lands_and_leaves_no_process_behind(project: "Project") -> None:
    project.settings("[limits]\nsilence = 1\n")
    project.plan(A)
    marker = f"sleep {3600 + os.getpid()}"
    project.script(_1_1=[[MAKE_A, {"print": "waiting"}, {"start": marker}, {"hang": True}]])
    result = project.run("--json")
    assert result.json["tasks"]["1.1"]["status"] == "complete", result
    assert result.json["tasks"]["1.1"]["attempts"] == 1
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert marker not in listed


def test_a_green_tree_that_nobody_claims_does_not_land_when_it_was_green_before(project: "Project") -> None:
    project.settings("[limits]\nsilence = 1\n")
    project.plan(("1.1", "Make a", "test -f readme.txt"))
    project.script(_1_1=[[{"print": "working"}, {"hang": True}], [MAKE_A]])
    result = project.run("--json")
    assert result.json["tasks"]["1.1"]["attempts"] == 2, result
    assert "no_claim" in project.ask("log").out


# --- a person is asked, and answers --------------------------------------------------------------------


@pytest.fixture
def stuck(project: "Project") -> "Project":
    """Run a plan whose second task nobody can do; the third one goes on."""
    project.plan(A, ("1.2", "Make b", "grep -q right b.txt"), C)
    project.script(_1_1=[[MAKE_A]], _1_2=[[{"write": "b.txt", "text": "wrong\n"}]], _1_3=[[MAKE_C]])
    result = project.run("--max-attempts", "1")
    assert result.code == 3, result
    assert "unstuck retry 1.2 --hint" in result.out
    return project


def test_a_stuck_task_is_asked_about_and_later_ones_go_on(stuck: "Project") -> None:
    assert stuck.status() == {"1.1": "complete", "1.2": "stuck", "1.3": "complete"}
    assert stuck.commits("main") == ["Write tasks.md", "Start"], "nothing comes home while something is open"
    assert [line[:5] for line in (stuck.root / "tasks.md").read_text().splitlines() if line.startswith("-")] == [
        "- [x]",
        "- [ ]",
        "- [x]",
    ]
    report = (stuck.home / "reports" / "1.2.md").read_text()
    assert report.startswith("## Stuck Subtask: 1.2\n")


def test_a_hint_reaches_the_next_brief_and_resume_lands_the_rest(stuck: "Project") -> None:
    asked = stuck.ask("retry", "1.2", "--hint", "write the word right")
    assert asked.code == 0, asked
    assert "unstuck resume" in asked.out
    stuck.script(_1_2=[[{"write": "b.txt", "text": "right\n"}]])
    result = stuck.unstuck("resume")
    assert result.code == 0, result
    assert "write the word right" in (stuck.home / "briefs" / "1.2-2-1.md").read_text()
    assert stuck.commits("main") == ["Tick the plan", "Make b", "Make c", "Make a", "Write tasks.md", "Start"]


def test_a_skipped_task_settles_the_run(stuck: "Project") -> None:
    assert stuck.ask("skip", "1.2", "--because", "not worth it").code == 0
    result = stuck.unstuck("resume")
    assert result.code == 0, result
    assert stuck.status()["1.2"] == "skipped"
    assert "Make b" not in stuck.commits("main")
    assert "- [ ] 1.2" in (stuck.root / "tasks.md").read_text()


def test_accepted_work_lands_as_it_is_with_the_reason_in_the_commit(stuck: "Project") -> None:
    assert stuck.ask("accept", "1.2", "--because", "the check is wrong").code == 0
    result = stuck.unstuck("resume")
    assert result.code == 0, result
    assert (stuck.root / "b.txt").read_text() == "wrong\n"
    message = stuck.git("log", "-1", "--format=%B", "--grep=Make b", "main")
    assert "Accepted: the check is wrong" in message
    assert "Unstuck-Task: 1.2" in message


def test_accept_needs_a_reason_and_work(stuck: "Project") -> None:
    assert stuck.ask("accept", "1.2").code == 64
    assert stuck.ask("accept", "1.2", "--because", " ").code == 64
    assert stuck.ask("answer", "1.2", "").code == 64
    refused = stuck.ask("accept", "1.1", "--because", "I say so")
    assert refused.code == 64, refused
    assert "has landed already" in refused.err


def test_a_change_of_mind_is_told_by_name_and_takes_no_other_tasks_work_for_this_ones(stuck: "Project") -> None:
    assert stuck.ask("retry", "1.2").code == 0
    assert "Waiting for a person" not in stuck.ask("status").out
    retried = max(entry["seq"] for entry in map(json.loads, stuck.ask("log", "--json").out.splitlines()))
    for reason in ("the check is wrong", "it is fine"):
        assert stuck.ask("accept", "1.2", "--because", reason).code == 0
    assert "unfinished work" not in stuck.ask("log").out, "the worktree had gone to task 1.3 since"
    refused = stuck.ask("undo", str(retried))
    assert (refused.code, "has gone on since" in refused.err) == (64, True), refused
    assert "accept 1.2 ('it is fine'))." in stuck.ask("undo").out
    assert "accept 1.2 ('the check is wrong'))." in stuck.ask("undo").out
    assert "retry 1.2" in stuck.ask("undo").out
    assert stuck.status()["1.2"] == "stuck"
    assert "begins again with the work at refs/unstuck/snapshots/" in stuck.ask("undo").out


def test_after_a_change_of_mind_a_task_is_tried_anew_and_what_came_home_is_not_told_to_be_away(
    stuck: "Project",
) -> None:
    assert stuck.ask("skip", "1.2").code == 0
    assert "Everything is on your branch main." in stuck.unstuck("resume").out
    assert "skip 1.2). Task 1.2 is open again, with fresh attempts and without its question." in stuck.ask("undo").out
    result = stuck.unstuck("resume")
    assert (result.code, "1.2: attempt 2 with" in result.err) == (3, True), result
    assert "not on main yet" not in result.out


def test_a_skip_that_is_taken_back_gives_fresh_attempts_however_the_run_ended(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"), ("1.2", "Make b", "test -f b.txt"))
    wrong, right = ([{"write": "a.txt", "text": f"{text}\n"}] for text in ("wrong", "right"))
    project.script(
        _1_1=[wrong, right], _1_2=[{"sessions": [[{"print": "begun"}, {"hang": True}], [{"write": "b.txt"}]]}]
    )
    with project.start("run", "tasks.md", "--agent", project.agent, "--max-attempts", "1") as running:
        wait_until((project.home / "briefs" / "1.2-1-1.md").exists)
        running.terminate()
        running.terminate()
        running.communicate(timeout=60)
    assert (running.returncode, project.status()["1.1"]) == (143, "stuck")
    assert project.ask("skip", "1.1").code == 0
    assert project.ask("undo").code == 0
    assert project.status()["1.1"] == "pending"
    result = project.unstuck("resume")
    assert (result.code, "1.1: attempt 2 with" in result.err) == (0, True), result


def test_a_plan_that_changed_is_gone_on_with_as_the_hint_says(stuck: "Project") -> None:
    plan = stuck.root / "tasks.md"
    plan.write_text(plan.read_text().replace("Make b", "Make b well"))
    result = stuck.ask("resume")
    assert (result.code, "The plan changed since the run began (changed: 1.2)" in result.err) == (64, True), result
    way = re.search("Go on with the new text: `unstuck (.+?)`", result.err)
    assert way, result
    result = stuck.unstuck(*shlex.split(way[1]))
    assert "1.2: attempt 2 with" in result.err, result


def test_a_persons_word_is_not_taken_for_work_that_they_never_saw(project: "Project") -> None:
    project.plan(("1.1", "Make x", "grep -q right x.txt"), ("1.2", "Make x, too", "grep -q two x.txt"))
    seen, unseen = ({"write": "x.txt", "text": text} for text in ("seen\n", "two, unseen\n"))
    project.script(_1_1=[[seen], [unseen]], _1_2=[[{"write": "x.txt", "text": "two\n"}]])
    assert project.run("--max-attempts", "1").code == 3
    assert project.ask("accept", "1.1", "--because", "I read it").code == 0
    result = project.unstuck("resume")
    assert "merge_conflict" in result.err, result
    assert (result.code, project.status()["1.1"]) == (3, "stuck"), result


def test_an_unverified_task_is_a_question_and_names_accept_as_the_answer(project: "Project") -> None:
    project.plan(("1.1", "Make a", ""))
    project.script(_1_1=[[MAKE_A]])
    result = project.run()
    assert result.code == 3, result
    assert "unstuck accept 1.1 --because" in result.out
    assert project.ask("accept", "1.1", "--because", "looked at it").code == 0
    assert project.unstuck("resume").code == 0
    assert (project.root / "a.txt").read_text() == "a\n"


def test_reset_does_a_landed_task_again(stuck: "Project") -> None:
    assert stuck.ask("retry", "1.1").code == 64, "a landed task is not retried by accident"
    assert stuck.ask("reset", "1.1").code == 0
    stuck.ask("skip", "1.2")
    stuck.script(_1_1=[[{"write": "a.txt", "text": "again\n"}]])
    result = stuck.unstuck("resume")
    assert result.code == 0, result
    assert (stuck.root / "a.txt").read_text() == "again\n"
    assert stuck.commits("main").count("Make a") == 2


def test_rollback_takes_a_task_back_and_undo_brings_it_again(stuck: "Project") -> None:
    run = stuck.ask("status", "--json").json["run"]
    before = stuck.git("rev-parse", f"unstuck/{run}")
    result = stuck.ask("rollback", "1.3")
    assert result.code == 0, result
    assert stuck.commits(f"unstuck/{run}")[0] == "Make a"
    assert stuck.status()["1.3"] == "pending"
    assert "- [ ] 1.3" in (stuck.root / "tasks.md").read_text()
    assert stuck.ask("undo").code == 0
    assert stuck.git("rev-parse", f"unstuck/{run}") == before
    assert stuck.status()["1.3"] == "complete"
    assert "- [x] 1.3" in (stuck.root / "tasks.md").read_text()


def test_rollback_to_a_commit_reopens_all_that_landed_after_it(stuck: "Project") -> None:
    run = stuck.ask("status", "--json").json["run"]
    result = stuck.ask("rollback", "--to", stuck.git("rev-parse", "main"))
    assert result.code == 0, result
    assert stuck.status() == {"1.1": "pending", "1.2": "stuck", "1.3": "pending"}
    assert stuck.git("rev-parse", f"unstuck/{run}") == stuck.git("rev-parse", "main")
    assert stuck.ask("rollback", "--to", "nonsense").code == 64
    assert stuck.ask("rollback").code == 64


def test_the_work_that_came_home_is_taken_back_with_git(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    assert project.run().code == 0
    refused = project.ask("rollback", "1.1")
    assert refused.code == 64
    assert "git revert" in refused.err


def test_stop_lets_the_session_finish_and_resume_goes_on(project: "Project") -> None:
    project.plan(A, B)
    gate = project.root.parent / "go"
    wait = {"run": f"sh -c 'until test -f {gate}; do sleep 0.05; done'"}
    project.script(_1_1=[[{"print": "begun"}, wait, MAKE_A]], _1_2=[[MAKE_B]])
    with project.start("run", "tasks.md", "--agent", project.agent) as running:
        wait_until((project.home / "briefs" / "1.1-1-1.md").exists)
        result = project.ask("stop")
        assert result.code == 0, result
        assert "running supervisor" in result.out
        wait_until(lambda: "asked to stop" in project.ask("log").out)
        gate.touch()
        out, err = running.communicate(timeout=60)
    assert running.returncode == 3, out + err
    assert project.status() == {"1.1": "complete", "1.2": "pending"}
    assert project.ask("stop").out == "No supervisor is running here.\n"
    assert project.unstuck("resume").code == 0
    assert project.commits("main")[:3] == ["Tick the plan", "Make b", "Make a"]


def test_a_request_about_a_running_task_ends_its_session(project: "Project") -> None:
    project.plan(A, B)
    project.script(_1_1=[[{"print": "begun"}, {"hang": True}]], _1_2=[[MAKE_B]])
    with project.start("run", "tasks.md", "--agent", project.agent) as running:
        wait_until(lambda: "1.1: attempt 1" in project.ask("log").out)
        assert project.ask("skip", "1.1").code == 0
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0, out + err
    assert project.status() == {"1.1": "skipped", "1.2": "complete"}


def test_on_stuck_halt_starts_nothing_more(project: "Project") -> None:
    project.plan(A, B)
    project.script(_1_1=[[]], _1_2=[[MAKE_B]])
    result = project.run("--max-attempts", "1", "--on-stuck", "halt")
    assert result.code == 3, result
    assert project.status() == {"1.1": "stuck", "1.2": "pending"}


def test_a_time_limit_ends_the_run_with_exit_2(project: "Project") -> None:
    project.settings("[limits]\ndrain = 0\n")
    project.plan(A)
    project.script(_1_1=[[{"print": "begun"}, {"hang": True}]])
    result = project.run("--max-time", "1s")
    assert result.code == 2, result
    assert "time limit" in result.out


# --- the way home --------------------------------------------------------------------------------------


def test_the_branch_is_fast_forwarded_and_the_tick_changes_one_byte(project: "Project") -> None:
    plan = project.plan(A)
    before = plan.read_bytes()
    project.script(_1_1=[[MAKE_A]])
    result = project.run()
    assert result.code == 0, result
    assert project.commits("main") == ["Tick the plan", "Make a", "Write tasks.md", "Start"]
    assert project.git("status", "--porcelain") == ""
    after = plan.read_bytes()
    assert len(after) == len(before)
    assert [(one, other) for one, other in zip(before, after, strict=True) if one != other] == [(ord(" "), ord("x"))]


def test_a_branch_that_moved_meanwhile_is_merged_after_the_checks_pass_together(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A, *person_commits(project, "mine.txt")]])
    result = project.run()
    assert result.code == 0, result
    subjects = project.commits("main")
    assert {"Make a", "mine"} <= set(subjects), subjects
    assert project.git("rev-list", "--merges", "--count", "main") == "1"
    assert project.git("status", "--porcelain") == ""


def test_a_merge_that_would_break_a_check_stays_on_the_run_branch(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt && test ! -f mine.txt"))
    project.script(_1_1=[[MAKE_A, *person_commits(project, "mine.txt")]])
    result = project.run()
    assert result.code == 0, result
    assert project.commits("main") == ["mine", "Write tasks.md", "Start"]
    assert "git merge unstuck/" in result.out
    assert "Merged with your new commits" in result.out


@pytest.mark.parametrize("mode", ["auto", "single"])
def test_a_branch_that_was_rewritten_down_to_its_first_commit_takes_the_work_commit_by_commit(
    project: "Project", mode: str
) -> None:
    project.plan(A, B)
    commit = f"git -C {project.root} commit-tree -m Anew {project.git('rev-parse', 'HEAD^{tree}')}"
    anew = {"run": f"bash -c 'git -C {project.root} update-ref HEAD $({commit})'"}
    project.script(_1_1=[[MAKE_A, anew]], _1_2=[[{"write": "c.txt"}], [MAKE_B]])
    result = project.run("--commit", mode, "--max-attempts", "1")
    assert result.code == 3, result
    project.unstuck("retry", "1.2")
    result = project.unstuck("resume")
    assert result.code == 0, result
    assert "main has no commit in common with the run any more" in result.out
    assert project.commits() == ["Anew"], "nothing of the old history comes back by itself"
    (command,) = set(re.findall(r"To bring it home: (git cherry-pick .+)", result.out))
    project.git("checkout", "--", "tasks.md")
    typed = command.replace("git commit", "git commit -m Both")  # which asks for a message
    subprocess.run(typed, shell=True, cwd=project.root, check=True, capture_output=True)
    assert (project.root / "a.txt").exists()
    assert (project.root / "b.txt").exists()
    assert project.commits()[-1] == "Anew"


def test_a_task_that_is_done_again_without_a_change_adds_no_empty_commit(project: "Project") -> None:
    project.plan(A, B)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]])
    project.run("--commit", "single")
    before = project.commits()
    project.ask("reset", "1.2")
    result = project.unstuck("resume")
    assert (result.code, "Everything is on your branch main." in result.out) == (0, True), result
    assert project.commits() == before


def test_dirty_files_that_the_run_changed_keep_it_on_its_branch_with_a_clear_sentence(project: "Project") -> None:
    project.plan(("1.1", "Change the readme", "grep -q new readme.txt"))
    (project.root / "readme.txt").write_text("my own words\n")
    project.script(_1_1=[[{"write": "readme.txt", "text": "new\n"}]])
    result = project.run()
    assert result.code == 0, result
    assert "You have uncommitted changes in readme.txt, which the run changed, too." in result.out
    assert (project.root / "readme.txt").read_text() == "my own words\n"
    assert project.commits("main") == ["Write tasks.md", "Start"]
    (command,) = set(re.findall(r"To bring it home: (git merge .+)", result.out))
    subprocess.run(command, shell=True, cwd=project.root, check=True, capture_output=True)
    assert project.commits("main")[0] == "Change the readme"


def test_the_command_that_brings_dirty_work_home_takes_nothing_out_of_an_older_stash(project: "Project") -> None:
    project.plan(("1.1", "Change the readme", "grep -q new readme.txt"))
    project.file("notes.txt", "kept\n")
    (project.root / "notes.txt").write_text("put aside long ago\n")
    project.git("stash")
    (project.root / "readme.txt").write_text("my own words\n")
    project.script(_1_1=[[{"write": "readme.txt", "text": "new\n"}]])
    (command,) = set(re.findall(r"To bring it home: (git merge .+)", project.run().out))
    project.git("checkout", "readme.txt")  # as the sentence says: commit or stash them first, or do without
    subprocess.run(command, shell=True, cwd=project.root, check=True, capture_output=True)
    assert project.commits("main")[0] == "Change the readme"
    assert (project.root / "notes.txt").read_text() == "kept\n"
    assert project.git("stash", "list").count("stash@") == 1
    result = project.ask("status")
    assert "What landed is on your branch main: somebody merged it." in result.out, result
    assert "To bring it home" not in result.out, result


def test_work_that_a_person_took_from_an_unfinished_run_is_told_to_be_on_the_branch(project: "Project") -> None:
    project.plan(A, ("1.2", "Make b", "grep -q right b.txt"))
    project.script(_1_1=[[MAKE_A]], _1_2=[[{"write": "b.txt", "text": "wrong\n"}]])
    result = project.run("--max-attempts", "1")
    project.git("merge", "--ff-only", re.findall("git merge --ff-only (.+)", result.out)[0])
    result = project.ask("status")
    assert "What landed is on your branch main: somebody merged it." in result.out, result
    assert "take it as it is  git merge" not in result.out, result
    assert "unstuck retry 1.2" in result.out, result


def test_the_users_dirty_files_are_untouched_byte_for_byte_and_told(project: "Project") -> None:
    project.plan(A)
    (project.root / "readme.txt").write_bytes(b"dirty\r\n\xff\x00")
    project.file("staged.txt", "staged\n", commit=False)
    project.git("add", "staged.txt")
    project.file("notes/new.txt", "untracked\n", commit=False)
    project.script(_1_1=[[{"run": "ls"}, MAKE_A]])
    result = project.run()
    assert result.code == 0, result
    assert "Uncommitted and not used by the run" in result.err
    assert (project.root / "readme.txt").read_bytes() == b"dirty\r\n\xff\x00"
    assert project.git("status", "--porcelain", "-uall").splitlines() == [
        " M readme.txt",
        "A  staged.txt",
        "?? notes/new.txt",
    ]
    assert project.commits("main")[:2] == ["Tick the plan", "Make a"]
    log = (project.home / "logs" / "task-1.1.log").read_text()
    assert "staged.txt" not in log, "the run starts from HEAD"


def test_a_checkout_that_moved_to_another_branch_is_left_there(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A, {"run": f"git -C {project.root} switch -q -c other"}]])
    result = project.run()
    assert result.code == 0, result
    assert "The run began on main and your checkout is now on other." in result.out
    assert "git switch main && git merge unstuck/" in result.out
    assert project.git("rev-parse", "main") == project.git("rev-parse", "other")


def test_new_commits_of_the_user_come_in_on_resume_and_a_conflict_is_told_by_file(stuck: "Project") -> None:
    stuck.file("a.txt", "mine\n")
    refused = stuck.unstuck("resume")
    assert refused.code == 3, refused
    assert "changed the same lines: a.txt" in refused.err
    stuck.git("reset", "-q", "--hard", "HEAD~1")
    stuck.file("fixed.txt", "by hand\n")
    stuck.script(_1_2=[[{"run": "cp fixed.txt b.txt"}, {"append": "b.txt", "text": "right\n"}]])
    result = stuck.unstuck("resume")
    assert result.code == 0, result
    assert (stuck.root / "b.txt").read_text() == "by hand\nright\n"


def test_single_makes_one_commit(project: "Project") -> None:
    project.plan(A, B)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]])
    result = project.run("--commit", "single")
    assert result.code == 0, result
    assert project.commits("main") == ["Tick the plan", "A plan", "Write tasks.md", "Start"]
    assert "- 1.1 Make a\n- 1.2 Make b" in project.git("show", "--no-patch", "--format=%B", "main~1")


def test_message_only_moves_nothing_and_its_script_makes_the_commits(project: "Project") -> None:
    project.plan(A, B)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]])
    result = project.run("--commit", "message-only")
    assert result.code == 0, result
    assert project.commits("main") == ["Write tasks.md", "Start"]
    script = project.home / "commits.sh"
    assert str(script) in result.out
    for _ in ("once", "twice does no harm"):
        subprocess.run(["sh", str(script)], cwd=project.root, check=True, capture_output=True)
    assert project.commits("main")[:2] == ["Make b", "Make a"]
    assert (project.root / "b.txt").read_text() == "b\n"


def test_prune_removes_what_came_home_and_keeps_what_did_not(stuck: "Project") -> None:
    kept = stuck.ask("prune")
    assert kept.code == 0, kept
    assert "Kept the branch unstuck/" in kept.out
    stuck.ask("skip", "1.2")
    assert stuck.unstuck("resume").code == 0
    stuck.ask("reset", "1.1")
    assert "its run is not finished" in stuck.ask("prune", "--dry-run").out, "it was opened again"
    assert stuck.unstuck("resume").code == 0
    dry = stuck.ask("prune", "--dry-run")
    assert "Would remove the branch unstuck/" in dry.out
    assert stuck.git("branch", "--list", "unstuck/*") != ""
    result = stuck.ask("prune")
    assert result.code == 0, result
    assert stuck.git("branch", "--list", "unstuck/*") == ""
    assert stuck.git("for-each-ref", "refs/unstuck") == ""
    assert stuck.git("worktree", "list", "--porcelain").count("worktree ") == 1
    assert "Removed" not in stuck.ask("prune").out


# --- where the plan stands -----------------------------------------------------------------------------


def test_an_untracked_plan_is_in_the_worktree_and_in_no_commit(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt && test -f plans/tasks.md"), name="plans/tasks.md", commit=False)
    project.script(_1_1=[[MAKE_A]])
    result = project.run(plan="plans")
    assert result.code == 0, result
    assert project.git("ls-tree", "-r", "--name-only", "main").splitlines() == [
        ".gitignore",
        "a.txt",
        "readme.txt",
        "unstuck.toml",
    ]
    assert "- [x] 1.1" in (project.root / "plans" / "tasks.md").read_text()


def test_a_plan_outside_of_the_repository_works_too(project: "Project", tmp_path: Path) -> None:
    plan = project.plan(A, commit=False).rename(tmp_path / "elsewhere.md")
    project.script(_1_1=[[MAKE_A]])
    result = project.run(plan=str(plan))
    assert result.code == 0, result
    assert "- [x] 1.1" in plan.read_text()
    assert project.commits("main") == ["Make a", "Start"]
    again = project.run(plan=str(plan))
    assert again.code == 0, again
    assert "Nothing is left to do" in again.out


def test_the_files_of_a_spec_folder_never_land_with_a_task(project: "Project") -> None:
    project.file("specs/login/.ralph-state.json", '{"phase": "execution", "mine": 1}')
    project.file("specs/login/.progress.md", "# Progress\n")
    project.plan(A, name="specs/login/tasks.md")
    project.script(
        _1_1=[
            [MAKE_A, {"append": "specs/login/.progress.md", "text": "x"}, {"delete": "specs/login/.ralph-state.json"}]
        ]
    )
    result = project.run(plan="specs/login")
    assert result.code == 0, result
    landed = project.git("log", "-1", "--grep=Make a", "--name-only", "--format=", "main")
    assert landed == "a.txt"
    assert json.loads((project.root / "specs/login/.ralph-state.json").read_text())["mine"] == 1


# --- what agents leave behind --------------------------------------------------------------------------


def test_an_agents_edits_of_the_plan_and_of_our_files_are_dropped_and_told(project: "Project") -> None:
    project.plan(A, B)
    cheat = {"run": "sed -i 's/\\[ \\]/[x]/' tasks.md"}
    project.script(_1_1=[[MAKE_A, cheat, {"write": ".unstuck/phases/phase-1.2.json", "text": "{}"}]], _1_2=[[MAKE_B]])
    result = project.run()
    assert result.code == 0, result
    assert project.git("log", "-1", "--grep=Make a", "--name-only", "--format=", "main") == "a.txt"
    story = project.ask("show", "1.1").out
    assert "tasks.md" in story
    assert ".unstuck" in story
    assert project.status() == {"1.1": "complete", "1.2": "complete"}
    assert project.ask("status", "--json").json["tasks"]["1.2"]["attempts"] == 1


def test_an_agents_own_commits_are_folded_in_and_ignored_files_left_out(project: "Project") -> None:
    project.plan(A)
    project.script(
        _1_1=[
            [
                MAKE_A,
                {"run": "git add -A"},
                {"run": "git -c user.name=Agent -c user.email=a@b commit -qm 'wip by the agent'"},
                {"append": "a.txt", "text": "more\n"},
                {"write": "debug.log", "text": "noise"},
                {"write": "node_modules/x/index.js", "text": "noise"},
            ]
        ]
    )
    result = project.run()
    assert result.code == 0, result
    assert project.commits("main") == ["Tick the plan", "Make a", "Write tasks.md", "Start"]
    assert project.git("show", "main:a.txt") == "a\nmore"
    assert project.git("ls-tree", "-r", "--name-only", "main", "debug.log", "node_modules") == ""
    assert project.git("log", "-1", "--format=%an", "--grep=Make a", "main") == "Ada"


def test_what_an_agent_does_to_refs_stash_and_settings_stays_in_its_slot(project: "Project") -> None:
    project.plan(A)
    project.git("branch", "keep-me")
    project.git("tag", "v1")
    (project.root / "readme.txt").write_text("stashed\n")
    project.git("stash", "push", "--quiet", "-m", "my stash")
    project.git("clone", "--quiet", "--bare", ".", "../remote.git")
    project.git("remote", "add", "origin", "../remote.git")
    config = (project.root / ".git" / "config").read_bytes()
    before = project.git("for-each-ref"), project.git("-C", "../remote.git", "for-each-ref")
    clumsy = "git stash clear; git branch -D keep-me; git reflog expire --expire=now --all; git gc --prune=now"
    commands = (clumsy, "git tag -d v1", "git push origin HEAD:main", "git config core.hooksPath /evil")
    project.script(_1_1=[[MAKE_A, *({"run": f"bash -c '{command}'"} for command in commands)]])
    result = project.run("--commit", "message-only")
    assert result.code == 0, result
    ours = ("refs/heads/unstuck/", "refs/unstuck/")
    refs = [line for line in project.git("for-each-ref").splitlines() if not any(name in line for name in ours)]
    assert ("\n".join(refs), project.git("-C", "../remote.git", "for-each-ref")) == before
    assert "my stash" in project.git("stash", "list")
    assert (project.root / ".git" / "config").read_bytes() == config
    assert "While agents were at work" not in result.out
    assert "push-is-refused" in (project.home / "logs" / "task-1.1.log").read_text()


def test_what_an_agent_does_to_the_users_own_checkout_is_told_in_the_summary(project: "Project") -> None:
    project.plan(A)
    project.git("branch", "side")
    sly = (f"echo sly > {project.root}/readme.txt", f"git -C {project.root} branch -D side")
    project.script(_1_1=[[MAKE_A, *({"run": f"bash -c '{command}'"} for command in sly)]])
    result = project.run()
    assert result.code == 0, result
    assert "While agents were at work:" in result.out
    assert "Changed in your checkout: readme.txt." in result.out
    assert "To bring it back: git branch side " in result.out


# --- the user works meanwhile --------------------------------------------------------------------------

MEANWHILE = {
    "commits": "echo mine > mine.txt; git add mine.txt; git commit -qm Mine",
    "amends": "git commit -q --amend -m Amended",
    "rebases": "git checkout -q -b topic HEAD; git commit -q --allow-empty -m Topic; git checkout -q main; git rebase -q topic",
    "stashes": "echo x >> readme.txt; git stash -q; git stash pop -q; git checkout -q readme.txt",
    "collects garbage": "git reflog expire --expire=now --all; git gc -q --prune=now",
    "cleans": "git clean -fdxq",
    "removes our folder": "rm -rf .unstuck",
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_the_user_is_free_to_work_meanwhile(project: "Project", what: str) -> None:
    project.plan(A, B)
    mine = f"bash -c 'cd {project.root}; {MEANWHILE[what]}'"
    project.script(_1_1=[[MAKE_A, {"run": mine}]], _1_2=[[{"run": mine}, MAKE_B]])
    result = project.run()
    assert result.code == 0, result
    assert project.status() == {"1.1": "complete", "1.2": "complete"}
    assert (project.root / "a.txt").exists()
    assert (project.root / "b.txt").exists()
    assert (project.home / "config.json").exists()
    assert (project.home / "phases" / "phase-1.1.json").exists()
    assert "landed as" in project.ask("show", "1.1").out
    assert (project.home / "logs" / "task-1.1.log").exists()
    project.git("fsck", "--strict")


def test_a_user_who_switches_branches_meanwhile_gets_the_work_by_hand(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A, {"run": f"git -C {project.root} switch -q -c elsewhere"}]])
    result = project.run()
    assert "your checkout is now on elsewhere" in result.out
    assert "git switch main && git merge unstuck/" in result.out
    assert not (project.root / "a.txt").exists()


def test_a_checkout_that_is_moved_meanwhile_goes_on_in_its_new_place(project: "Project") -> None:
    project.plan(A, B)
    moved = project.root.with_name("moved")
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B, {"run": f"mv {project.root} {moved}"}], [MAKE_B]])
    result = project.run()
    assert result.code != 0, result
    assert "is gone" in result.out + result.err
    assert "resume" in result.out + result.err
    there = replace(project, root=moved)
    assert there.unstuck("resume", cwd=moved).code == 0
    assert (moved / "a.txt").exists()
    assert (moved / "b.txt").exists()


def test_an_old_journal_is_taken_over(stuck: "Project") -> None:
    for name in ("logs", "transcripts", "briefs", "old"):
        (stuck.home / name).unlink()
        (stuck.store / name).rename(stuck.home / name)
    for path in stuck.store.glob("journal.db*"):
        path.rename(stuck.home / path.name)
    assert stuck.status()["1.2"] == "stuck"
    assert not list(stuck.home.glob("journal.db*"))
    assert "FAIL" not in stuck.ask("show", "1.2").err
    assert (stuck.store / "logs" / "task-1.2.log").exists()


# --- going on, again, and by hand ----------------------------------------------------------------------


def test_running_a_finished_plan_again_does_nothing_and_ends_well(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    assert project.run().code == 0
    before = project.git("for-each-ref")
    result = project.run()
    assert result.code == 0, result
    assert "Nothing is left to do" in result.out
    assert project.git("for-each-ref") == before
    assert project.unstuck("resume").code == 0


def test_run_goes_on_with_the_unfinished_run_and_its_options(stuck: "Project") -> None:
    run = stuck.ask("status", "--json").json["run"]
    stuck.script(_1_2=[[{"write": "b.txt", "text": "right\n"}]])
    result = stuck.unstuck("run", "tasks.md", "--json")
    assert result.code == 0, result
    assert result.json["run"] == run
    assert result.json["tasks"]["1.1"]["attempts"] == 1
    assert result.json["tasks"]["1.2"]["attempts"] == 2


def test_a_changed_plan_is_refused_by_name_until_a_person_accepts_it(stuck: "Project") -> None:
    plan = stuck.root / "tasks.md"
    plan.write_text(plan.read_text().replace("grep -q right b.txt", "grep -q wrong b.txt"))
    refused = stuck.run()
    assert refused.code == 64, refused
    assert "changed: 1.2" in refused.err
    assert "--accept-plan-change" in refused.err
    result = stuck.run("--accept-plan-change")
    assert result.code == 0, result


def test_fresh_moves_the_old_state_aside(stuck: "Project") -> None:
    run = stuck.ask("status", "--json").json["run"]
    stuck.script(_1_1=[[MAKE_A]], _1_2=[[{"write": "b.txt", "text": "right\n"}]], _1_3=[[MAKE_C]])
    result = stuck.run("--fresh", "--json")
    assert result.code == 0, result
    assert result.json["run"] != run
    assert len(list((stuck.home / "old").glob("*/journal.db"))) == 1
    assert stuck.git("branch", "--list", f"unstuck/{run}") != "", "commits stay"


@pytest.mark.parametrize("edit", ["set to pending", "deleted"])
def test_a_phase_file_changed_by_hand_runs_that_task_again(stuck: "Project", edit: str) -> None:
    file = stuck.home / "phases" / "phase-1.1.json"
    if edit == "deleted":
        file.unlink()
    else:
        file.write_text(file.read_text().replace('"status": "complete"', '"status": "pending"'))
    stuck.script(_1_1=[[{"write": "a.txt", "text": "again\n"}]], _1_2=[[{"write": "b.txt", "text": "right\n"}]])
    result = stuck.unstuck("resume", "--json")
    assert result.code == 0, result
    assert result.json["tasks"]["1.1"]["attempts"] == 2
    assert result.json["tasks"]["1.3"]["attempts"] == 1
    assert (stuck.root / "a.txt").read_text() == "again\n"


def test_a_landed_task_set_back_in_the_attempt_history_runs_again(stuck: "Project") -> None:
    file = stuck.home / "attempt_history.json"
    history = json.loads(file.read_text())
    assert history["subtasks"]["1.1"]["status"] == "completed"
    history["subtasks"]["1.1"]["status"] = "pending"
    file.write_text(json.dumps(history))
    stuck.script(_1_1=[[{"write": "a.txt", "text": "again\n"}]], _1_2=[[{"write": "b.txt", "text": "right\n"}]])
    result = stuck.unstuck("resume", "--json")
    assert "its status in attempt_history.json was set to pending by hand" in result.err
    assert result.json["tasks"]["1.1"]["attempts"] == 2


def test_a_phase_file_that_does_not_parse_is_set_aside_with_a_message(stuck: "Project") -> None:
    file = stuck.home / "phases" / "phase-1.1.json"
    file.write_text("{ half a file")
    stuck.script(_1_2=[[{"write": "b.txt", "text": "right\n"}]])
    result = stuck.unstuck("resume", "--json")
    assert result.code == 0, result
    assert result.json["tasks"]["1.1"]["attempts"] == 1, "nothing is lost, and nothing done twice"
    (aside,) = (stuck.home / "phases").glob("phase-1.1.json.unreadable-*")
    assert aside.read_text() == "{ half a file"
    assert aside.name in result.err
    assert json.loads(file.read_text())["status"] == "complete"


def test_a_secret_that_the_agent_prints_is_stored_nowhere(project: "Project") -> None:
    secret = "correct-horse-battery-staple"
    project.plan(("1.1", f"Make a with {secret}", f"echo {secret}; test -f a.txt"), commit=False)
    project.script(
        _1_1=[
            [{"run": "sh -c 'echo token: $FOO_TOKEN'"}, {"error": f"APPROACH: use {secret}"}],
            [{"print": secret}, MAKE_A],
        ]
    )
    result = project.run(FOO_TOKEN=secret)
    assert result.code == 0, result
    for path, content in project.stored_bytes():
        assert secret.encode() not in content, path
    assert secret not in project.git("log", "--all", "--format=%B")
    assert secret not in result.out + result.err
    assert project.unstuck("run", "tasks.md", FOO_TOKEN=secret).code == 0


def test_two_runs_at_once_are_refused_by_name(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[{"print": "begun"}, {"hang": True}]])
    with project.start("run", "tasks.md", "--agent", project.agent) as running:
        wait_until((project.home / "briefs" / "1.1-1-1.md").exists)
        result = project.run()
        assert result.code == 69, result
        assert str(running.pid) in result.err
        assert project.ask("status").out.count(f"pid {running.pid}") == 1
        assert project.ask("prune").code == 69
        running.terminate()
        running.send_signal(15)
        running.communicate(timeout=60)
    assert running.returncode == 143
    assert project.status() == {"1.1": "interrupted"}
    assert "(interrupted)" in project.ask("show", "1.1").out


def test_a_file_that_a_verify_names_beside_its_command_is_not_run(project: "Project") -> None:
    project.file(
        "tasks.md", "- [ ] 1.1 Make a\n  - **Verify**: `grep -q a a.txt` holds: `a.txt` has what `make_a()` wrote\n"
    )
    project.script(_1_1=[[MAKE_A]])
    assert project.ask("plan", "tasks.md").out.count("(1.1)") == 1
    result = project.run()
    assert result.code == 0, result


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_work_of_a_session_that_was_cut_short_is_shown_or_said_to_be_looked_at_later(
    project: "Project", number: int
) -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A, {"print": "begun"}, {"hang": True}]])
    with project.start("run", "tasks.md", "--agent", project.agent) as running:
        wait_until(lambda: project.slots and (project.slots[0] / "a.txt").exists())
        later = project.ask("diff", "1.1")
        assert (later.code, "when its session has ended" in later.err) == (64, True), later
        running.send_signal(number)
        running.send_signal(number)
        running.communicate(timeout=60)
    result = project.ask("diff", "1.1")
    if number == signal.SIGKILL:
        assert (result.code, "unstuck resume" in result.err) == (64, True), result
    else:
        assert "+++ b/a.txt" in result.out, result


def person_commits(project: "Project", name: str) -> list[dict[str, str]]:
    """Return steps in which the person, not the agent, commits in their own checkout."""
    there = f"git -C {project.root}"
    return [
        {"write": f"{project.root}/{name}", "text": "mine\n"},
        {"run": f"{there} add {name}"},
        {"run": f"{there} commit -qm mine"},
    ]
