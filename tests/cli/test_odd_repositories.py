"""Repositories and environments that are odd, each with its ending."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project

A = ("1.1", "Make a", "test -f a.txt")
MAKE_A = {"write": "a.txt", "text": "a\n"}


def test_a_file_name_that_is_no_text_is_recorded_and_told(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A, {"write": "\udcff\udcfe.txt", "text": "x\n"}]])
    told = project.run()
    shown = [project.ask(*command) for command in (("show", "1.1"), ("log", "--json"), ("status", "--json"))]
    assert (told.code, [one.code for one in shown]) == (0, [0, 0, 0]), told
    assert "Traceback" not in told.err + "".join(one.err for one in shown)


def test_words_that_are_no_text_reach_the_journal_all_the_same(half_done: "Project") -> None:
    told = half_done.ask("answer", "1.2", "yes \udcff")
    assert "Traceback" not in told.err, told


def test_dates_for_git_in_the_environment_do_not_stop_a_run(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    told = project.run(GIT_AUTHOR_DATE="yesterday-ish", GIT_COMMITTER_DATE="2001-01-01T00:00:00")
    assert told.code == 0, told
    assert project.git("log", "-1", "--format=%cd", "--date=format:%Y") != "2001\n"


def test_a_broken_git_config_is_told_as_such(project: "Project", tmp_path: "Path") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    config = tmp_path / "gitconfig"
    config.write_text("[user\nname = Ada\n")
    told = project.run(GIT_CONFIG_GLOBAL=str(config))
    assert told.code != 0
    assert str(config) in told.err, told
    assert "config" in told.err, told
    assert "Traceback" not in told.err, told
