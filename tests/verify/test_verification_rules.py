"""What verification reads out of commands and outputs, as tables."""

import pytest

from unstuck.diagnosis.counting import read_counts
from unstuck.diagnosis.reasons import reason
from unstuck.journal.attempt import CheckResult, Counts, Ended, Remark, Severity
from unstuck.tools.idle import can_fail
from unstuck.verify.baseline import excuse
from unstuck.verify.selecting import is_plain_run, selecting
from unstuck.verify.weighing import judge_all, own, weigh

CANNOT = [
    "echo 'Verify manually'", "true", ":", "exit 0", "pytest || true", "pytest; echo done", "pytest || echo 'never mind'",
    "npm test || exit 0", "printf ok", "pytest | cat; true", "", "# nothing", "FOO=1 echo x", "pytest & echo started",
    "echo $(pytest)",
]  # fmt: skip
CAN = [
    "pytest", "test -f a && echo ok", "echo a | grep b", "set -e; pytest; echo done", "! grep x y", "if true; then false; fi",
    "pytest 2>&1 | grep -q FAIL && echo RED_PASS", "exit 1", "(pytest)", "cd a && pytest", "true && pytest",
    "echo 'a || b' && make", "false || make",
]  # fmt: skip


@pytest.mark.parametrize("command", CANNOT)
def test_a_line_that_always_ends_well_is_no_check(command: str) -> None:
    assert not can_fail(command)


@pytest.mark.parametrize("command", CAN)
def test_a_line_that_can_fail_is_a_check(command: str) -> None:
    assert can_fail(command)


COUNTS = {
    "pytest": ("==== 1 failed, 2 passed, 3 skipped in 0.12s ====", (2, 1, 3)),
    "pytest -q": ("..F\n1 failed, 2 passed in 0.05s", (2, 1, 0)),
    "jest": ("Tests:       1 failed, 1 skipped, 4 passed, 6 total\n", (4, 1, 1)),
    "vitest": ("      Tests  1 failed | 2 passed (3)\n", (2, 1, 0)),
    "node": ("# tests 3\n# suites 0\n# pass 2\n# fail 1\n# skipped 0\n", (2, 1, 0)),
    "unittest": ("Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n", (2, 2, 1)),
    "cargo": ("test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured", (3, 1, 2)),
    "mocha": ("  3 passing (5ms)\n  1 failing\n", (3, 1, 0)),
    "two suites": ("test result: ok. 1 passed; 0 failed\ntest result: ok. 2 passed; 0 failed\n", (3, 0, 0)),
}


@pytest.mark.parametrize(("output", "counts"), COUNTS.values(), ids=COUNTS.keys())
def test_a_runner_says_how_many_tests_it_ran(output: str, counts: tuple[int, int, int]) -> None:
    passed, failed, skipped = counts
    assert read_counts(output) == Counts(passed=passed, failed=failed, skipped=skipped)


def test_other_output_counts_nothing() -> None:
    assert read_counts("3 files changed, 10 insertions\nAll good, 4 passed the exam\n") is None


def red(output: str = "", *, code: int = 1, tests: tuple[str, ...] = (), total: int = 0) -> CheckResult:
    counts = Counts(passed=total) if total else None
    ended = Ended(ending="exited", exit_code=code, tail=output, output_bytes=len(output.encode()))
    return CheckResult(command="c", kind="test", ended=ended, tests=tests, counts=counts)


EXCUSES = {
    "the same test": (red(tests=("a",)), red(tests=("a", "b")), True),
    "another test": (red(tests=("a", "c")), red(tests=("a", "b")), False),
    "green before": (red(), red(code=0), False),
    "another exit code": (red(code=2, tests=("a",)), red(code=1, tests=("a",)), False),
    "tests that are gone": (red(tests=("a",), total=3), red(tests=("a",), total=5), False),
    "the same complaint on another line": (red("a.py:3: F401 os"), red("a.py:1: F401 os"), True),
    "one complaint more": (red("a.py:3: E501\na.py:9: E501"), red("a.py:1: E501"), False),
    "one complaint less": (red("a.py:1: E501"), red("a.py:1: E501\nb.py:2: W1"), True),
}


@pytest.mark.parametrize(("now", "before", "excused"), EXCUSES.values(), ids=EXCUSES.keys())
def test_only_what_was_red_before_is_excused(now: CheckResult, before: CheckResult, *, excused: bool) -> None:
    assert bool(excuse(now, before)) is excused


def test_output_that_is_not_known_whole_must_be_as_long_as_before() -> None:
    cut = Ended(ending="exited", exit_code=1, tail="same\n", output_bytes=90_000)
    longer = Ended(ending="exited", exit_code=1, tail="same\n", output_bytes=91_000)
    one, other = (CheckResult(command="c", kind="lint", ended=ended) for ended in (cut, longer))
    assert excuse(one, one)
    assert not excuse(other, one)


SELECTIONS = {
    "pytest": ("pytest tests -x", ["tests/test_a.py"], "pytest -q -p no:cacheprovider './tests/test_a.py'"),
    "a module": (".venv/bin/python -P -m pytest", ["t.py"], ".venv/bin/python -P -m pytest -q -p no:cacheprovider './t.py'"),
    "uv": ("uv run pytest -q", ["t.py"], "uv run pytest -q -p no:cacheprovider './t.py'"),
    "vitest": ("npx vitest run", ["a.test.ts"], "npx vitest run './a.test.ts'"),
    "jest": ("npx jest", ["a.test.js"], "npx jest --ci --runTestsByPath './a.test.js'"),
    "node": ("node --test", ["a.test.js"], "node --test './a.test.js'"),
    "odd names": ("pytest", ["a'; rm -rf b.py"], "pytest -q -p no:cacheprovider './a'\"'\"'; rm -rf b.py'"),
    "the wrong runner": ("pytest", ["a.test.js"], None),
    "another folder": ("cd sub && pytest", ["a.py"], None),
    "no runner": ("make test", ["a.py"], None),
}  # fmt: skip


@pytest.mark.parametrize(("command", "files", "line"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_some_files_are_run_as_the_checks_run_all(command: str, files: list[str], line: str | None) -> None:
    assert selecting([command], files) == line


def test_a_plain_run_is_one_that_nothing_turns_round() -> None:
    assert is_plain_run("python -m pytest tests/test_a.py -k 'x or y'")
    assert not is_plain_run("pytest | grep -q FAIL && echo RED_PASS")
    assert not is_plain_run("! pytest")
    assert not is_plain_run("grep -q x y")


REASONS = {
    "an assertion": ("E       assert 0 == 3\nFAILED t.py::test - assert 0 == 3", "asserted"),
    "jest": ("expect(received).toBe(expected)", "asserted"),
    "a name that is to come": ("ImportError: cannot import name 'sub' from 'calc'", "missing"),
    "a module that the plan speaks of": ("ModuleNotFoundError: No module named 'parser_core'", "missing"),
    "a module that nobody speaks of": ("ModuleNotFoundError: No module named 'reqeusts'", "mistaken"),
    "a syntax error": ("E   SyntaxError: invalid syntax", "mistaken"),
    "no tests": ("no tests ran in 0.01s", "mistaken"),
    "anything else": ("Killed", "mistaken"),
}


@pytest.mark.parametrize(("output", "why"), REASONS.values(), ids=REASONS.keys())
def test_a_red_test_has_a_reason(output: str, why: str) -> None:
    assert reason(output, ["Write src/parser_core.py"]) == why


@pytest.mark.parametrize(
    ("severities", "status"),
    [(["warn"], "pass"), (["ask", "warn"], "inconclusive"), (["reject", "ask"], "fail"), ([], "pass")],
)
def test_the_gravest_remark_decides_over_green_checks(severities: list[Severity], status: str) -> None:
    remarks = [Remark(rule="r", severity=severity, path="p", line=1, says="s") for severity in severities]
    assert judge_all([red(code=0)], remarks)[0] == status


def test_nothing_run_is_inconclusive_and_a_red_check_fails() -> None:
    assert judge_all([], [])[0] == "inconclusive"
    assert judge_all([red()], [])[0] == "fail"


def test_the_policy_weighs_what_the_audit_finds_but_not_a_secret() -> None:
    found = [Remark(rule="test-deleted", severity="reject", path="t.py", line=1, says="gone"), own("secret", "a.py")]
    assert [one.severity for one in weigh(found, {"reject": "warn"})] == ["warn", "reject"]
    assert [one.rule for one in weigh(found, {"reject": "off"})] == ["secret"]
