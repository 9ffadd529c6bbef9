"""What is gone, moved or left over while nobody looked: each has an ending in words."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.project import Project

A, B = ("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt")
MAKE_A, MAKE_B = ({"write": f"{name}.txt", "text": f"{name}\n"} for name in "ab")


def test_our_folder_is_made_anew_from_the_journal_when_somebody_removed_it(
    half_done: "Project", tmp_path: Path
) -> None:
    copy = replace(half_done, root=tmp_path / "project")
    shutil.copytree(half_done.root, copy.root, symlinks=True)
    before = sorted(path.relative_to(copy.home) for path in copy.home.rglob("*.json"))
    shutil.rmtree(copy.home)
    assert copy.status()["1.2"] == "stuck"
    assert copy.ask("retry", "1.2").code == 0
    assert sorted(path.relative_to(copy.home) for path in copy.home.rglob("*.json")) == before


@pytest.fixture(autouse=True)
def _leave_no_slots() -> Iterator[None]:
    """Take away what is left of repositories that are gone: `prune` would tell every later test of them."""
    state = Path(os.environ["XDG_STATE_HOME"]) / "unstuck"
    before = set(state.iterdir()) if state.exists() else set()
    yield
    for folder in set(state.iterdir()) - before if state.exists() else ():
        shutil.rmtree(folder, ignore_errors=True)


def test_a_checkout_that_is_removed_meanwhile_ends_the_run_in_words(project: "Project") -> None:
    project.plan(A, B)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B, {"run": f"rm -rf {project.root}"}]])
    result = project.run()
    assert result.code != 0, result
    assert "the repository was moved or removed" in result.err, result
    assert "Traceback" not in result.err, result
    assert not project.store.exists()


def test_prune_removes_the_slots_of_a_repository_that_is_long_gone_and_tells_of_a_younger_one(
    project: "Project",
) -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    assert project.run().code == 0
    state = project.slots[0].parents[2]
    old, young = (state / f"{name}-1234abcd" for name in ("old", "young"))
    for folder in (old, young):
        (folder / "slots" / "w0").mkdir(parents=True)
        (folder / "slots" / "checkout").write_text(f"{project.root.parent}/{folder.name}\n")
    month_ago = time.time() - 32 * 86400
    for path in (*old.rglob("*"), old):
        os.utime(path, (month_ago, month_ago))
    result = project.ask("prune").out
    assert f"Removed the slots in {old}/slots." in result
    assert f"Kept the slots in {young}/slots: its checkout" in result
    assert (old.exists(), young.exists()) == (False, True)


def test_a_run_whose_branch_was_deleted_or_moved_back_loses_nothing_that_landed(project: "Project") -> None:
    project.plan(A, ("1.2", "Make b", "test -f never"), ("1.3", "Make c", "test -f c.txt"))
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]], _1_3=[[{"write": "c.txt"}]])
    result = project.run("--max-attempts", "1")
    assert result.code == 3, result
    branch = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/unstuck")
    tip, base = project.git("rev-parse", branch), project.git("rev-parse", "main")
    project.git("branch", "-f", branch, base)
    assert project.ask("skip", "1.2").code == 0
    result = project.unstuck("resume")
    assert result.code == 1, result
    assert f"git branch -f {branch} {tip}" in result.err, result
    assert project.git("rev-parse", "main") == base
    project.git("branch", "-D", branch)
    result = project.unstuck("resume")
    assert result.code == 0, result
    assert f"was gone: it stands again where work last landed, at {tip[:12]}" in result.err
    assert (project.root / "a.txt").exists()
    assert (project.root / "c.txt").exists()


def test_what_is_asked_of_a_suspended_supervisor_is_refused_at_once_and_of_a_dead_one_done(project: "Project") -> None:
    project.plan(A, B)
    mark, go = project.root.parent / "begun", project.root.parent / "go"
    wait = {"run": f"bash -c 'touch {mark}; until test -e {go}; do sleep 0.05; done'"}
    project.script(_1_1=[[MAKE_A, wait]], _1_2=[[MAKE_B]])
    running = project.start("run", "tasks.md", "--agent", project.agent, "--quiet", "--parallel", "1")
    wait_until(mark.exists, "the session")
    running.send_signal(signal.SIGSTOP)
    result = project.unstuck("skip", "1.2")
    assert result.code == 69, result
    assert f"kill -CONT {running.pid}" in result.err, result
    asked = project.start("skip", "1.2")
    wait_until(lambda: any((project.store / "asking").iterdir()), "the request")
    running.kill()
    out, err = asked.communicate(timeout=60)
    assert asked.returncode == 0, err
    assert "is skipped" in out
    running.communicate(timeout=60)
    go.touch()
    result = project.unstuck("resume")
    assert result.code == 0, result
    assert project.status() == {"1.1": "complete", "1.2": "skipped"}
