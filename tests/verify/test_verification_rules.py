"""What verification reads out of commands and outputs, as tables."""

from dataclasses import replace
from pathlib import Path

import pytest

from unstuck.diagnosis.missing import reason
from unstuck.model.outcome import Ended
from unstuck.model.verdict import CheckKind, CheckResult, Counts, Remark, Severity
from unstuck.toolchain.command_roles import effect
from unstuck.toolchain.shell import can_fail
from unstuck.toolchain.toolchains import checking_form, is_plain_run, selecting_command, shows_tests
from unstuck.verify.baseline import compare
from unstuck.verify.change import found
from unstuck.verify.exam import judge_all, weigh

OUTPUTS = Path(__file__).parents[1] / "diagnosis" / "outputs"

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


def red(output: str = "", *, code: int = 1, kind: CheckKind = "test") -> CheckResult:
    ended = Ended(ending="exited", exit_code=code, tail=output, output_bytes=len(output.encode()))
    return CheckResult(command="c", kind=kind, ended=ended)


def jest(*names: str, passed: int = 1, file: str = "src/a.test.js") -> str:
    """Return what jest prints when these cases of one file fail."""
    cases = "".join(
        f"  ● {name}\n\n    expect(received).toBe(expected)\n\n      at Object.toBe ({file}:3:42)\n\n" for name in names
    )
    total = len(names) + passed
    return f"FAIL {file}\n{cases}Tests:       {len(names)} failed, {passed} passed, {total} total\nTime:        1.{total} s\n"


def stylish(*rows: str) -> str:
    return "\n".join(rows) + f"\n\n✖ {sum(row.startswith(' ') for row in rows)} problems\n"


MYPY = 'a.py:{}: error: Incompatible types in assignment (expression has type "str")  [assignment]\n'
ROW = "  {}:1  error  'x' is not defined  no-undef"
EXCUSED = {
    "the same test": (red(jest("adds")), red(jest("adds"))),
    "one test less": (red(jest("adds", passed=2)), red(jest("adds", "holds"))),
    "a runner whose exit code counts": (red("  2 passing (1ms)\n  1 failing\n\n  1) adds:\n     Error: x\n      at a (t/a.js:1:2)\n", code=1),
                                        red("  1 passing (1ms)\n  2 failing\n\n  1) adds:\n     Error: x\n      at a (t/a.js:1:2)\n\n  2) b:\n     Error: y\n      at a (t/a.js:9:2)\n", code=2)),
    "the same complaint on a line that moved": (red("a.py:3: F401 os", kind="lint"), red("a.py:1: F401 os", kind="lint")),
    "one complaint less": (red("a.py:1: E501", kind="lint"), red("a.py:1: E501\nb.py:2: W1", kind="lint")),
    "the same coverage": (red("TOTAL  10  2  81%\n1 passed in 0.1s\n"), red("TOTAL  10  2  81%\n1 passed in 0.2s\n")),
    "the same words, in other times": (red("3 violations\ntook 12 ms\n"), red("3 violations\ntook 9 ms\n")),
}  # fmt: skip
HELD = {
    "green before": (red("x"), red("x", code=0), "passes on the base"),
    "two of one file": (red(jest("adds", "holds")), red(jest("adds", passed=2)), "src/a.test.js::holds"),
    "the shortest": (red("FAIL src/a.test.js\nTests: 2 failed\n"), red("FAIL src/a.test.js\nTests: 1 failed\n"), "2 tests fail, on the base 1"),
    "another test": (red(jest("holds")), red(jest("adds")), "src/a.test.js::holds"),
    "the test of another file": (red(jest("adds", file="src/b.test.js")), red(jest("adds")), "src/b.test.js::adds"),
    "fewer tests": (red(jest("adds", passed=1)), red(jest("adds", passed=3)), "it runs fewer tests: 2 now, 4 on the base"),
    "coverage": (red("TOTAL  10  7  31%\n1 passed in 0.1s"), red("TOTAL  10  2  81%\n1 passed in 0.1s"), "coverage: 31 now, 81 on the base"),
    "violations": (red("57 violations"), red("3 violations"), "violations: 57 now, 3 on the base"),
    "a quiet formatter": (red(kind="format"), red(kind="format"), "says nothing"),
    "another file": (red(stylish("/p/b.js", ROW.format(1)), kind="lint"), red(stylish("/p/a.js", ROW.format(1)), kind="lint"), "/p/b.js:1 no-undef"),
    "one more of the same": (red(MYPY.format(3) + MYPY.format(9), kind="types"), red(MYPY.format(3), kind="types"), "a.py:9 assignment"),
    "another rule": (red("a.py:3: F841 x", kind="lint"), red("a.py:3: F401 x", kind="lint"), "F841"),
    "another exit code": (red(jest("adds"), code=139), red(jest("adds")), "exit code 139"),
    "words that cannot be compared": (red("it broke: 7 of 9"), red("it broke: 6 of 9"), "cannot be compared"),
    "a new compiler error": (red("src/a.ts(1,7): error TS2322: no"), red(jest("adds")), "TS2322"),
}  # fmt: skip


def excuse(now: CheckResult, before: CheckResult) -> bool:
    return compare(now, before).verdict == "same"


def test_what_was_red_before_is_excused() -> None:
    assert not {name: compare(now, before) for name, (now, before) in EXCUSED.items() if not excuse(now, before)}


def test_what_is_new_is_held_against_the_work_and_named() -> None:
    told = {name: (compare(now, before), words) for name, (now, before, words) in HELD.items()}
    assert not {
        name: found for name, (found, words) in told.items() if found.verdict == "same" or words not in found.because
    }


def test_one_recorded_failure_excuses_itself_and_nothing_else() -> None:
    outputs = {
        path: path.read_text(encoding="utf-8") for path in OUTPUTS.glob("*/*.txt") if path.stem in ("several", "errors")
    }
    for path, text in outputs.items():
        assert excuse(red(text), red(text)), path
        for other, base in outputs.items():
            assert path == other or text == base or not excuse(red(text), red(base)), (path, other)


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
    "unittest": ("python3 -m unittest discover", ["tests/test_a.py"], "python3 -m unittest tests/test_a.py"),
    "mocha": ("npx mocha -r ts-node/register", ["a.spec.ts"], "npx mocha -r ts-node/register './a.spec.ts'"),
    "go": ("go test -race ./...", ["pkg/a_test.go", "pkg/b_test.go"], "go test -race ./pkg"),
    "cargo": ("cargo test --all", ["tests/it.rs"], "cargo test --test it"),
    "cargo, a unit test": ("cargo test", ["src/lib.rs"], None),
    "rspec": ("bundle exec rspec", ["spec/a_spec.rb"], "bundle exec rspec './spec/a_spec.rb'"),
    "rake": ("bundle exec rake test", ["test/a_test.rb"], "bundle exec rake test TEST='./test/a_test.rb'"),
    "maven": ("mvn -B -q test", ["src/test/java/ATest.java"], "mvn -B -q test -Dsurefire.failIfNoSpecifiedTests=false -Dtest=ATest"),
    "gradle": ("./gradlew test", ["a/ATest.java", "b/BTest.kt"], "./gradlew test --tests '*ATest' --tests '*BTest'"),
    "dotnet": ("dotnet test", ["A.cs", "B.cs"], "dotnet test --filter FullyQualifiedName~A\\|FullyQualifiedName~B"),
    "phpunit": ("vendor/bin/phpunit", ["ATest.php", "B.php"], "vendor/bin/phpunit './ATest.php' && vendor/bin/phpunit './B.php'"),
    "ctest": ("ctest --test-dir build", ["tests/a.cpp"], "ctest --test-dir build --no-tests=error -R a"),
    "variables": ("PYTHONPATH=. A='b c' python -m pytest", ["t.py"], "PYTHONPATH=. A='b c' python -m pytest -q -p no:cacheprovider './t.py'"),
    "a limit": ("env CI=1 timeout -k 5 60 npx jest", ["a.test.js"], "env CI=1 timeout -k 5 60 npx jest --ci --runTestsByPath './a.test.js'"),
    "variables, again and again": ("A=1 phpunit", ["ATest.php", "B.php"], "A=1 phpunit './ATest.php' && A=1 phpunit './B.php'"),
    "a class that is no word": ("mvn test", ["src/$(rm x).java"], None),
    "odd names": ("pytest", ["a'; rm -rf b.py"], "pytest -q -p no:cacheprovider './a'\"'\"'; rm -rf b.py'"),
    "the wrong runner": ("pytest", ["a.test.js"], None),
    "another folder": ("cd sub && pytest", ["a.py"], None),
    "no runner": ("make test", ["a.py"], None),
}  # fmt: skip


@pytest.mark.parametrize(("command", "files", "line"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_some_files_are_run_as_the_checks_run_all(command: str, files: list[str], line: str | None) -> None:
    assert selecting_command([command], files) == line


def test_a_plain_run_is_one_that_nothing_turns_round() -> None:
    assert is_plain_run("python -m pytest tests/test_a.py -k 'x or y'")
    assert not is_plain_run("pytest | grep -q FAIL && echo RED_PASS")
    assert is_plain_run("CI=1 pytest -q")
    assert not is_plain_run("! pytest")
    assert not is_plain_run("grep -q x y")


def test_a_runner_says_in_its_own_way_that_it_ran_tests() -> None:
    assert shows_tests("go test ./pkg", "ok  \tx/pkg\t0.01s\n")
    assert not shows_tests("go test ./pkg", "ok  \tx/pkg\t0.01s [no tests to run]\n")
    assert not shows_tests("dotnet test", "No test matches the given testcase filter")


def test_a_tool_that_repairs_has_a_checking_form() -> None:
    forms = {"ruff check .": "--no-fix", "python -m black .": "--check", "go mod tidy": "-diff", "sh fix.sh": ""}
    assert {command: checking_form(command) for command in forms} == forms


EFFECTS = {
    "": ("make test", "cargo test --release", "pytest > /dev/null", "grep -q 'rm -rf' a.sh", "npm run build", "curl -sf http://localhost",
         "grep -q release CHANGELOG.md", "grep -q '$(rm x)' a.sh"),
    "deletes": ("rm -rf build", "git clean -fdx", "psql -c 'DROP TABLE x'", "docker system prune -f", "cd x && rm -r y",
                "bash -c 'rm -rf build'", "sh -lc \"sh -c 'rm x'\"", 'test "$(rm x)" = ""', "eval 'rm x'", "\\rm x",
                "python -c 'import shutil; shutil.rmtree(1)'"),
    "deploys": ("make deploy", "npm run deploy:prod", "kubectl apply -f x", "terraform apply", "sh deploy.sh"),
    "pushes": ("git push", "docker push x", "scp a host:b", "gh release create v1"),
    "publishes": ("npm publish", "make release", "twine upload dist/*", "curl -X POST http://x"),
    "writes outside the repository": ("cp -r dist ../site", "echo x > /etc/y", "sudo make install", "npm install -g x"),
}  # fmt: skip


def test_a_command_that_does_more_than_check_is_known_by_its_words() -> None:
    assert {command: effect(command) for commands in EFFECTS.values() for command in commands} == {
        command: what for what, commands in EFFECTS.items() for command in commands
    }


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
    no_test = replace(red(code=0), command="python3 -m unittest discover", kind="verify", counts=Counts())
    assert judge_all([no_test], []) == ("inconclusive", f"`{no_test.command}` passes and runs no test")
    for proof in (red(code=0), replace(no_test, command="mypy . && pytest"), replace(no_test, counts=Counts(passed=1))):
        assert judge_all([no_test, proof], [])[0] == "pass"


def test_the_policy_weighs_what_the_audit_finds_but_not_a_secret() -> None:
    remarks = [
        Remark(rule="test-deleted", severity="reject", path="t.py", line=1, says="gone"),
        found("secret", "a.py"),
    ]
    assert [one.severity for one in weigh(remarks, {"reject": "warn"})] == ["warn", "reject"]
    assert [one.rule for one in weigh(remarks, {"reject": "off"})] == ["secret"]
