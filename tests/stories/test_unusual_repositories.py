"""Repositories and environments that are odd, each with its ending."""

import hashlib
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.project import Project

A = ("1.1", "Make a", "test -f a.txt")
MAKE_A = {"write": "a.txt", "text": "a\n"}


def test_a_file_name_that_is_no_text_is_recorded_and_told(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A, {"write": "\udcff\udcfe.txt", "text": "x\n"}]])
    result = project.run()
    shown = [project.ask(*command) for command in (("show", "1.1"), ("log", "--json"), ("status", "--json"))]
    assert (result.code, [one.code for one in shown]) == (0, [0, 0, 0]), result
    assert "Traceback" not in result.err + "".join(one.err for one in shown)


def test_words_that_are_no_text_reach_the_journal_all_the_same(half_done: "Project") -> None:
    result = half_done.ask("answer", "1.2", "yes \udcff")
    assert "Traceback" not in result.err, result


def test_dates_for_git_in_the_environment_do_not_stop_a_run(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    result = project.run(GIT_AUTHOR_DATE="yesterday-ish", GIT_COMMITTER_DATE="2001-01-01T00:00:00")
    assert result.code == 0, result
    assert project.git("log", "-1", "--format=%cd", "--date=format:%Y") != "2001\n"


def test_a_broken_git_config_is_told_as_such(project: "Project", tmp_path: "Path") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    config = tmp_path / "gitconfig"
    config.write_text("[user\nname = Ada\n")
    result = project.run(GIT_CONFIG_GLOBAL=str(config))
    assert result.code != 0
    assert str(config) in result.err, result
    assert "config" in result.err, result
    assert "Traceback" not in result.err, result


@pytest.mark.parametrize("variables", [{}, {"CACHE_KEY": "HEAD"}], ids=["by its look", "by a variable"])
def test_a_commit_whose_name_could_be_a_secret_is_still_a_commit(
    project: "Project", variables: "Mapping[str, str]"
) -> None:
    project.plan(A)
    project.git("reset", "--quiet", "--hard", commit_named(project, "4b1d"))
    project.script(_1_1=[[{"write": "a.txt", "text": "b\n"}], [MAKE_A]])
    result = project.run(**{name: project.git("rev-parse", value) for name, value in variables.items()})
    assert result.code == 0, result
    assert (project.root / "a.txt").exists()


def commit_named(project: "Project", start: str) -> str:
    """Commit what is committed already, with a message that gives the commit a name with this beginning."""
    head = f"tree {project.git('rev-parse', 'HEAD^{tree}')}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\n"
    bodies = (f"{head}{number}\n" for number in count())
    named = (
        body for body in bodies if hashlib.sha1(f"commit {len(body)}\0{body}".encode()).hexdigest().startswith(start)
    )
    (project.root.parent / "commit").write_text(next(named))
    return project.git("hash-object", "-t", "commit", "-w", str(project.root.parent / "commit"))
