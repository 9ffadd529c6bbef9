"""Out again: a run as a pull request and as a page."""

import os
from pathlib import Path

import pytest
from tests.project import Project

GH = """#!/bin/sh
echo "$@" >> {log}
case "$1" in
auth) exit {auth};;
pr) cat > /dev/null; echo https://example.invalid/pull/1;;
esac
"""


@pytest.fixture
def landed(project: Project) -> Project:
    project.plan(
        ("1.1", "Greet @everyone | closes #1", "grep -q hello greeting.txt"), ("1.2", "Make b", "test -f b.txt")
    )
    project.script(
        _1_1=[[{"write": "greeting.txt", "text": "no"}], [{"write": "greeting.txt", "text": "hello\n"}]],
        _1_2=[[]],
    )
    result = project.run("--max-attempts", "2")
    assert result.code == 3, result
    return project


def test_the_draft_tells_what_landed_how_it_was_verified_what_was_recovered_and_what_is_left(landed: Project) -> None:
    result = landed.ask("pr", "--draft-file")
    assert result.code == 0, result
    text = (landed.home / "pull-request.md").read_text()
    assert result.out.strip().removeprefix("# ") in text
    for heading in ("What landed", "How it was verified", "What was recovered", "What is left"):
        assert f"## {heading}\n" in text
    assert "`grep -q hello greeting.txt`: pass" in text
    assert "attempt 1: check_failed" in text
    assert "- 1.2 Make b: stuck" in text
    body = text.partition("\n")[2]
    assert "@everyone" not in body, "nobody is called by a title"
    assert "#1" not in body
    assert " | closes" not in body
    page = landed.ask("report", "--md").out
    assert page.startswith("# Run ")
    assert "## What is left" in page
    assert landed.ask("report", "1.2", "--md").code == 64
    elsewhere = landed.root.parent / "request.md"
    assert landed.ask("pr", "--draft-file", str(elsewhere)).code == 0
    assert elsewhere.read_text() == text


def test_it_is_opened_where_gh_is_logged_in_and_the_branch_is_at_origin(
    landed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, log = tmp_path / "bin", tmp_path / "gh.log"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    gh = programs / "gh"
    gh.write_text(GH.format(log=log, auth=1))
    gh.chmod(0o755)
    assert "gh auth login" in landed.ask("pr").err
    gh.write_text(GH.format(log=log, auth=0))
    landed.git("init", "-q", "--bare", str(tmp_path / "origin.git"))
    landed.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    result = landed.ask("pr")
    assert "We push nothing by ourselves: git push -u origin unstuck/" in result.err
    assert "pr create" not in log.read_text()
    landed.git("push", "-q", "origin", "--all")
    result = landed.ask("pr")
    assert "https://example.invalid/pull/1" in result.err, result
    assert "pr create --title" in log.read_text()
    assert "--base main" in log.read_text()


def test_without_anything_landed_there_is_nothing_to_ask_for(project: Project) -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[]])
    project.run("--max-attempts", "1")
    result = project.ask("pr")
    assert result.code == 64
    assert "has landed yet" in result.err
