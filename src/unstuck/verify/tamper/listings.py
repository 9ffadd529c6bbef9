"""Judge files that list paths or packages: what git and linters leave out, what git shows otherwise, what is installed."""

import re
from collections.abc import Iterator

from unstuck.verify.tamper.change import Change, Finding, added_lines
from unstuck.verify.tamper.gates import ARTEFACT
from unstuck.verify.tamper.rules import found


def judge_listing(change: Change) -> Iterator[Finding]:
    """Judge a file of lines; settings with keys are judged elsewhere."""
    if change.path.endswith("ignore"):
        yield from _ignore_file(change)
    elif change.path.endswith(".gitattributes"):
        yield from _attributes(change)
    yield from retrying_plugins(change)


def is_listing(path: str) -> bool:
    """Tell whether a settings file is a plain list."""
    return path.endswith(("ignore", ".gitattributes", ".txt", ".in"))


def retrying_plugins(change: Change) -> Iterator[Finding]:
    """Find a dependency that exists to run tests until they pass."""
    for line in added_lines(change):
        if re.search(
            r"\b(?:pytest-rerunfailures|pytest-retry|flaky|pytest-ignore-flaky|jest-retries|mocha-retry)\b", line.text
        ):
            yield found(
                "test-retried", change.path, line.number, "A plugin repeats tests until they pass.", line.text.strip()
            )


def _ignore_file(change: Change) -> Iterator[Finding]:
    about_git = change.path.endswith(".gitignore")
    for line in added_lines(change):
        bare = line.text.strip()
        if bare.startswith(("#", "!")) or ARTEFACT.search(bare):
            continue
        if about_git and not re.search(
            r"(?:^|/)(?:tests?|specs?|__tests__)/?(?:\*+)?$|(?:^|/)\*?test_[\w*]*\.py$|\.(?:test|spec)\.[\w*]+$", bare
        ):
            continue
        rule = "test-hidden" if about_git else "gate-loosened"
        yield found(
            rule, change.path, line.number, f"{bare} is left out from now on.", bare, "ask" if about_git else None
        )


def _attributes(change: Change) -> Iterator[Finding]:
    """Find attributes by which git shows or stores another text than the one that is there."""
    for line in added_lines(change):
        if re.search(
            r"\bfilter=(?!lfs\b)|\bdiff=(?!lfs|\w*(?:python|css|html|markdown))\w|(?:test|spec).*(?:-diff|binary|export-ignore)\b|merge=ours",
            line.text,
        ):
            says = "Git no longer shows this as it is."
            yield found("test-hidden", change.path, line.number, says, line.text.strip(), "ask")
