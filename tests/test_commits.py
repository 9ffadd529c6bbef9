"""Check the written history: commit subjects and changelog entries."""

import re
import subprocess
from pathlib import Path

import pytest
from scripts.commit_msg import main, subject_of, subject_problem

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
FIRST = "8c9b814ce7d79806d4c0d8672a5bd924caf933b5"
"""The last commit before the rules hold."""
MAX_WORDS = 25
LONG_OLD_ENTRIES = 160
"""Entries of more words in the sections below `Unreleased`. The number may only shrink."""


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)


def subjects_since_first() -> list[str]:
    """Return the subjects since `FIRST` without merges, or skip the test where the history lacks it."""
    if not FIRST:
        pytest.skip("FIRST names no commit yet")
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("there is no git history, or only a shallow one")
    if git("merge-base", "--is-ancestor", FIRST, "HEAD").returncode != 0:
        pytest.skip(f"the commit {FIRST} is not in this history")
    return git("log", "--no-merges", "--format=%s", f"{FIRST}..HEAD").stdout.splitlines()


def long_entries(section: str) -> list[str]:
    """Return the entries of a changelog section that have too many words."""
    entries = re.findall(r"^- (.+(?:\n +\S.*)*)", section, re.MULTILINE)
    return [entry for entry in entries if len(entry.split()) > MAX_WORDS]


def changelog_sections(text: str) -> dict[str, str]:
    """Return the sections of a changelog by their headings, the newest first."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_each_commit_is_a_conventional_commit() -> None:
    problems = [f"{subject}: {problem}" for subject in subjects_since_first() if (problem := subject_problem(subject))]
    assert not problems, "\n".join(problems)


def test_unreleased_entries_are_short() -> None:
    sections = changelog_sections(CHANGELOG.read_text(encoding="utf-8"))
    assert "[Unreleased]" in sections, "CHANGELOG.md needs a section `## [Unreleased]`."
    entries = long_entries(sections["[Unreleased]"])
    assert not entries, f"More than {MAX_WORDS} words:\n" + "\n".join(entries)


def test_old_long_entries_only_shrink() -> None:
    sections = changelog_sections(CHANGELOG.read_text(encoding="utf-8"))
    old = [
        entry for heading, section in sections.items() if heading != "[Unreleased]" for entry in long_entries(section)
    ]
    assert len(old) == LONG_OLD_ENTRIES, f"Set LONG_OLD_ENTRIES to {len(old)} if that is lower."


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("fix(git): keep the stash", ""),
        ("refactor(verify/audit,cli)!: drop the reader", ""),
        ("feat: " + "x" * 66, ""),
        ("feat: " + "x" * 67, "73 characters"),
        ("Fix the stash", "write `type"),
        ("feature: keep the stash", "write `type"),
        ("fix:keep the stash", "write `type"),
        ("fix(git) keep the stash", "write `type"),
        ("", "write `type"),
    ],
)
def test_a_bad_subject_is_refused_with_the_reason(subject: str, problem: str) -> None:
    assert subject_problem(subject).startswith(problem)
    assert bool(subject_problem(subject)) == bool(problem)


def test_the_hook_reads_the_subject_from_the_message_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("\n# a comment\nFix the stash\n\nfix: in the body\n", encoding="utf-8")
    assert subject_of(message.read_text(encoding="utf-8")) == "Fix the stash"
    assert main(str(message)) == 1
    assert "Commit refused: 'Fix the stash'" in capsys.readouterr().err
    message.write_text("Merge branch 'verify'\n", encoding="utf-8")
    assert main(str(message)) == 0


def test_long_entries_are_found_over_several_lines() -> None:
    section = f"- {'word ' * 20}\n  {'word ' * 6}\n- short\n\n### Fixed\n\n- {'word ' * 25}\n"
    assert len(long_entries(section)) == 1
    assert changelog_sections("# Log\n\n## [Unreleased]\n\n- a\n\n## [0.1.0]\n\n- b\n") == {
        "[Unreleased]": "\n- a\n\n",
        "[0.1.0]": "\n- b\n",
    }
