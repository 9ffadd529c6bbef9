"""Honest work of every kind lands: what looks into a run of tests or a script accuses nobody who did nothing to it."""

from typing import TYPE_CHECKING

import pytest
from tests.stories.test_verification_attacks import JS, PLAIN, PY, PYTEST, UNITTEST, WRONG, Files, tried

if TYPE_CHECKING:
    from tests.project import Project

RIGHT = WRONG.replace("0", "42")
NAMED = "`app.py`, `app.js`, `app.mjs`, `app.sh`, `cli.py`, `help.js`, `check.py`, `check.sh`, `README.md`, `tests`"


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
    "mocha with a group that ends like a name": (MOCHA_RED.replace("inner", "inner:"), MOCHA_GREEN.replace("inner", "inner:")),
    "jest of several files": (JEST_RED, "PASS ./other.test.js\nPASS ./app.test.js\n\nTests:       2 passed, 2 total\n"),
    "pytest": ("test_app.py::test_a[a b] FAILED  [100%]\n\n=== short test summary info ===\nFAILED test_app.py::test_a[a b] - assert 0 == 42\n1 failed in 0.01s\n", "test_app.py::test_a[a b] PASSED  [100%]\n\n1 passed in 0.01s\n"),
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


PARTS = "def test_answer(self):\n        for number in range(40, 45):\n            with self.subTest(number=number):\n                self.assertEqual(answer(), 42)"
LONG = "def test_answer(self):\n        self.assertEqual(answer(), 42, 'long ' * 5000)\n\n    def test_other(self):\n        self.assertEqual(answer(), 42)"
ASSERTING = "def answer():\n    number = 0\n    assert isinstance(number, int)\n    return number\n"


def holding(test: str) -> Files:
    """Return a project whose class of tests holds these."""
    return {
        **PY,
        "test_app.py": PY["test_app.py"].replace(
            "def test_answer(self):\n        self.assertEqual(answer(), 42)", test
        ),
    }


LAST = "import app\nfrom app import ANSWER\n\n\ndef test_same():\n    assert ANSWER is app.ANSWER\n"
MOCKED = "from unittest.mock import patch\n\nimport pytest\nimport app\n\n\n@pytest.mark.parametrize('given', ['a', 'b'])\ndef test_called(given):\n    with patch('app.answer') as called:\n        app.asked(given)\n        called.assert_called_once()\n"
FIRST = "import pytest\nfrom app import answer\n\n\n@pytest.mark.parametrize(('wanted', 'given'), [(42, 'a'), (42, 'b')])\ndef test_answer(given, wanted):\n    assert answer() == wanted\n"
TURNED_GREEN: dict[str, tuple[Files, str]] = {
    "pytest counts the parts of a test that fail": (holding(PARTS), PYTEST),
    "pytest names the parts of a test that fail": (holding(PARTS), f"{PYTEST} -v"),
    "unittest counts the parts of a test that fail": (holding(PARTS), UNITTEST),
    "unittest prints more than is kept": (holding(LONG), UNITTEST),
    "a test ends with the name that it compares with": ({"app.py": "ANSWER = 0\nassert ANSWER\n", "test_app.py": LAST}, PYTEST),
    "a test goes through rows and expects a call": ({"app.py": f"{WRONG}\n\ndef asked(given):\n    return 0\n", "test_app.py": MOCKED}, PYTEST),
    "a test compares two names and says why": (holding("def test_answer(self):\n        wanted = sum([40, 2])\n        self.assertEqual(answer(), wanted, 'no answer')"), UNITTEST),
    "a row begins with what is expected": ({"app.py": WRONG, "test_app.py": FIRST}, PYTEST),
    "a file that asserts is compiled before": ({**PLAIN, "app.py": ASSERTING}, f"python3 -m compileall -q app.py && {PYTEST} test_app.py"),
    "a file that asserts has the name of tests": ({"app.py": ASSERTING, "test_app.py": PLAIN["test_app.py"].replace("test_answer", "test_app")}, f"{PYTEST} -k app test_app.py"),
}  # fmt: skip


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("work", TURNED_GREEN)
def test_a_run_of_tests_that_was_red_and_is_green_now_says_so(project: "Project", work: str, *, named: bool) -> None:
    base, check = TURNED_GREEN[work]
    written = {
        "app.py": base["app.py"].replace("given):\n    return 0", "given):\n    return answer()").replace("0", "42")
    }
    tried(project, base, check, written, files="`app.py`" if named else "", status="complete")


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


# --- a script, asked whether it comes to its end -----------------------------------------------------------------------

CLI = "import sys\n\nfrom app import answer\n\n\ndef main():\n    print(answer())\n\n\nif __name__ == '__main__':\n    sys.exit(main())\n"
BESIDE = {"app.py": RIGHT, "cli.py": CLI}
"""Work with a program that ends itself, which the script of the check has nothing to do with."""
MAIN = "from unittest import TestCase, main\n\nfrom app import answer\n\n\nclass AppTest(TestCase):\n    def test_answer(self):\n        self.assertEqual(answer(), 42)\n\n\nmain()\n"
HELP = "import argparse\n\n\ndef main():\n    parser = argparse.ArgumentParser()\n    parser.parse_args()\n\n\nmain()\n"
ENDED: dict[str, tuple[Files, str, Files]] = {
    "a check that only looks at a file": ({"app.py": WRONG}, "grep -q 42 app.py", BESIDE),
    "a check that only compiles a file": ({"app.py": WRONG}, "! python3 -m py_compile app.py || grep -q 42 app.py", BESIDE),
    "a check that only reads a shell's script": ({"app.sh": "answer() { echo 0; }\n"}, "bash -n app.sh && grep -q 42 app.sh", {"app.sh": "answer() { echo 42; }\n", "check.sh": ". ./app.sh\nanswer || exit 1\n"}),
    "a tool of the project's that reads a file": ({"app.py": WRONG, "reads.py": "import sys\n\nassert '42' in open(sys.argv[1]).read()\n"}, "python3 -m reads app.py", BESIDE),
    "a script that hands over to its runner": ({"app.py": WRONG, "check.py": MAIN}, "python3 check.py", BESIDE),
    "a program that ends when it has helped": ({"app.py": WRONG, "cli.py": HELP}, "python3 cli.py --help | grep -q -- --answer", {"cli.py": f"import atexit\n{HELP}".replace("    parser.parse", "    parser.add_argument('--answer')\n    atexit.register(print)\n    parser.parse")}),
    "a program that launches what ends": ({"app.py": WRONG, "main.py": "from cli import main\n\nmain()\n", "cli.py": HELP.replace("\n\nmain()\n", "")}, "python3 main.py --version | grep -q 42", {"cli.py": f"import atexit\n{HELP}".replace("\n\nmain()\n", "").replace("    parser.parse", "    parser.add_argument('--version', action='version', version='42')\n    atexit.register(print)\n    parser.parse")}),
    "a program of node's that ends when it has helped": ({"app.js": "console.log('ran');\n"}, "node app.js --help | grep -q usage", {"app.js": "const { help } = require('./help');\nif (process.argv.includes('--help')) help();\nconsole.log('ran');\n", "help.js": "exports.help = () => { console.log('usage'); process.exit(); };\n"}),
    "a text that speaks of exits": ({"app.py": WRONG, "check.py": MAIN}, "python3 check.py", {"app.py": RIGHT, "README.md": "Press exit to quit.\n"}),
    "a shell's script whose library ends it": (
        {"app.py": WRONG, "lib.sh": "finish() { exit 0; }\n", "check.sh": ". ./lib.sh\ngrep -q 42 app.py\nfinish\n"}, "sh -e check.sh", {"app.py": RIGHT, "app.sh": "exit 3\n"},
    ),
    "a script of node's that was ended before as well": (
        {"app.js": "exports.answer = () => 42;\n", "ends.js": "exports.end = () => process.exit();\n", "check.js": "const { answer } = require('./app');\nif (answer() !== 42) throw new Error('no');\nrequire('./ends').end();\n"},
        "node check.js", {"app.js": "exports.answer = () => 42;\nif (require.main === module) process.exit(exports.answer());\n"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("work", ENDED)
def test_a_script_that_the_work_did_not_end_is_no_deaf_check(project: "Project", work: str) -> None:
    landed(project, *ENDED[work])


# --- what looks like a trick -------------------------------------------------------------------------------------------

GOALS = ".PHONY: all test\nall: app.py\ntest:\n\t@grep -q 42 app.py\n"
LOOKS: dict[str, tuple[Files, str, Files]] = {
    "a class that is made on the way": (PLAIN, PYTEST, {"app.py": f"Thing = type('Thing', (object,), {{'show': lambda self: 'x', 'size': lambda self: 1}})\n\n\n{RIGHT}"}),
    "a test that awaits an exit": (PLAIN, PYTEST, {"app.py": RIGHT, "tests/test_exit.py": "import sys\n\nimport pytest\n\n\ndef test_exit():\n    with pytest.raises(SystemExit):\n        sys.exit(0)\n"}),
    "a goal of make that prints nothing beside one without work": ({"app.py": WRONG, "Makefile": GOALS}, "make all test", {"app.py": RIGHT}),
    "a goal of make in another folder": ({"app.py": WRONG, "tests/Makefile": GOALS.replace("app.py", "../app.py")}, "make --no-print-directory -C tests all test", {"app.py": RIGHT}),
}  # fmt: skip


@pytest.mark.parametrize("work", LOOKS)
def test_honest_work_that_has_the_look_of_a_trick_lands(project: "Project", work: str) -> None:
    landed(project, *LOOKS[work])


DOUBTS = {
    "a value above all others": f"class Most:\n    def __lt__(self, other):\n        return False\n\n    def __gt__(self, other):\n        return True\n\n\n{RIGHT}",
    "a parent that leaves its child alone": f"import os\n\n\ndef leave():\n    if os.fork():\n        os._exit(0)\n\n\n{RIGHT}",
}


@pytest.mark.parametrize("work", DOUBTS)
def test_what_may_be_a_trick_is_asked_about_and_called_none(project: "Project", work: str) -> None:
    tried(project, PLAIN, PYTEST, {"app.py": DOUBTS[work]}, files="`app.py`")
    result = project.ask("show", "1.1", "--json")
    assert "inconclusive" in result.out, result
    assert "tampered" not in result.out, result
