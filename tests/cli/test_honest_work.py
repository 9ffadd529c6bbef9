"""Honest work of every kind lands: what looks into a run of tests or a script accuses nobody who did nothing to it."""

from typing import TYPE_CHECKING

import pytest
from tests.cli.test_verification_attacked import JS, PLAIN, PY, PYTEST, UNITTEST, WRONG, Files, tried

if TYPE_CHECKING:
    from tests.project import Project

RIGHT = WRONG.replace("0", "42")
NAMED = "`app.py`, `app.js`, `app.mjs`, `app.sh`, `cli.py`, `check.py`, `check.sh`, `README.md`, `tests`"


def landed(project: "Project", base: Files, check: str, written: Files) -> None:
    tried(project, base, check, written, files=NAMED, status="complete")


# --- a run of tests, read by what it prints ---------------------------------------------------------------------------

JEST_RED = "FAIL ./app.test.js\n  app\n    ✓ is there (2 ms)\n    inner\n      ✕ answers (1 ms)\n\n  ● app \u203a inner \u203a answers\n\n    expect(received).toBe(expected)\n\n    Expected: 42\n    Received: 0\n\nTests:       1 failed, 1 passed, 2 total\n"
JEST_GREEN = "PASS ./app.test.js\n  app\n    ✓ is there (2 ms)\n    inner\n      ✓ answers (1 ms)\n\nTests:       2 passed, 2 total\n"
MOCHA_RED = "\n\n  app\n    ✔ is there\n    inner\n      1) answers\n\n\n  1 passing (13ms)\n  1 failing\n\n  1) app\n       inner\n         answers:\n\n      AssertionError [ERR_ASSERTION]: 0 == 42\n      at Context.<anonymous> (app.test.js:5:58)\n\n"
MOCHA_GREEN = "\n\n  app\n    ✔ is there\n    inner\n      ✔ answers (41ms)\n\n\n  2 passing (50ms)\n\n"
VITEST_RED = "   app.test.mjs (2 tests | 1 failed) 5ms\n     ✓ is there 1ms\n     x answers 3ms\n\n FAIL  app.test.mjs > app > answers\nAssertionError: expected +0 to be 42\n\n Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n"
SHOWN = {  # what runners print before and after: all names, names in groups, or no more than the files
    "jest": (JEST_RED, JEST_GREEN),
    "mocha": (MOCHA_RED, MOCHA_GREEN),
    "jest of several files": (JEST_RED, "PASS ./other.test.js\nPASS ./app.test.js\n\nTests:       2 passed, 2 total\n"),
    "vitest": (VITEST_RED, " ✓ app.test.mjs (2 tests) 2ms\n   ✓ is there  301ms\n\n Test Files  1 passed (1)\n      Tests  2 passed (2)\n"),
}  # fmt: skip


@pytest.mark.parametrize("runner", SHOWN)
def test_a_red_test_turns_green_though_its_runner_prints_its_name_in_another_way(
    project: "Project", runner: str
) -> None:
    red, green = SHOWN[runner]
    runner = runner.partition(" ")[0]
    base = {
        "app.py": WRONG,
        "red.txt": red,
        "green.txt": green,
        runner: "grep -q 42 app.py && exec cat green.txt\ncat red.txt\nexit 1\n",
    }
    landed(project, base, f"sh ./{runner}", {"app.py": RIGHT})


def test_a_file_of_tests_that_could_not_be_loaded_before_is_no_test_that_is_missed(project: "Project") -> None:
    base = {"readme.md": "To be written.\n", "app.test.js": JS["app.test.js"]}
    landed(project, base, "node --test", {"app.js": "exports.answer = () => 42;\n"})


# --- a run of tests, asked whether it still hears ----------------------------------------------------------------------

REACHES = "def answer():\n    import importlib\n\n    return importlib.import_module('math').floor(42.5)\n"
MANY = {"app.py": RIGHT, **{f"tests/test_{number:02}.py": PLAIN["test_app.py"] for number in range(24)}}


def within(files: Files) -> Files:
    return {"app.py": RIGHT, "tests/__init__.py": "", "tests/test_app.py": files["test_app.py"]}


HEARD: dict[str, tuple[Files, str, Files]] = {
    "more tests fail on purpose than a runner's output can be read of": (MANY, PYTEST, {"app.py": REACHES, "tests/test_005.py": PLAIN["test_app.py"]}),
    "a run of pytest ends at its first failure": (within(PLAIN), f"{PYTEST} -x", {"app.py": REACHES, "tests/test_aa.py": PLAIN["test_app.py"]}),
    "a run of unittest ends at its first failure": (within(PY), f"{UNITTEST} -f", {"app.py": REACHES, "tests/test_aa.py": PY["test_app.py"]}),
}  # fmt: skip


@pytest.mark.parametrize("work", HEARD)
def test_a_runner_that_says_other_things_of_other_files_is_no_deaf_one(project: "Project", work: str) -> None:
    landed(project, *HEARD[work])
