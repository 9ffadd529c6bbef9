"""What a command is for, and when its exit code is an answer."""

import pytest

from unstuck.toolchain.command_roles import is_answer, role
from unstuck.toolchain.shell import programs


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("CI=1 npx --yes vitest run", "test"),
        ("uv run pytest -q && echo done", "test"),
        ("python3 -m pytest tests", "test"),
        ("cd app && ./gradlew check", "test"),
        ("npm run lint -- --max-warnings 0", "lint"),
        ("cargo clippy -- -D warnings", "lint"),
        ("go vet ./...", "lint"),
        ("tflint", "lint"),
        ("tsc --noEmit", "types"),
        ("mypy src", "types"),
        ("black --check .", "format"),
        ("cargo fmt --check", "format"),
        ("terraform fmt -check", "format"),
        ("make -j4", "build"),
        ("docker build .", "build"),
        ("pip install -r requirements.txt", "install"),
        ("echo 'pytest failed'", ""),
        ("cat lint.log", ""),
    ],
)
def test_the_last_program_that_has_a_use_decides(command: str, expected: str) -> None:
    assert role(command) == expected


def test_the_kind_of_our_own_check_says_it_better() -> None:
    assert role("./check.sh", check="lint") == "lint"


def test_quoted_text_is_not_cut_into_commands() -> None:
    assert programs("A=1 sudo -n bash -c 'a; b | c' && ./x/y.sh -v | tee log") == (
        "bash -c 'a; b | c'",
        "y.sh -v",
        "tee log",
    )


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("grep -q x file", 1, True),
        ("grep -q x file", 2, False),
        ("cat a | grep x", 1, True),
        ("diff -u a b", 1, True),
        ("git diff --exit-code", 1, True),
        ("[ -d build ]", 1, True),
        ("terraform plan -detailed-exitcode", 2, True),
        ("python3 grep.py", 1, False),
        ("false || true", 1, True),
    ],
)
def test_some_exit_codes_are_answers(command: str, code: int, expected: bool) -> None:
    assert is_answer(command, "", code) is expected
