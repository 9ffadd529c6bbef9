"""Honest commits, verified by the command on real git: they land where their tests are named, and ask with the facts where not."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import CommandResult, Project

BASE = {
    "calc.py": "def add(a, b):\n    return a + b\n\n\ndef verify(a):\n    return a > 0\n\n\ndef old(a):\n    return -a\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": (
        "import sys\nimport unittest\n\nfrom calc import add\nfrom calc import old\nfrom calc import verify\n\n\n"
        "class CalcTest(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n"
        "    def test_old(self):\n        self.assertEqual(old(1), -1)\n\n"
        "    def test_sign(self):\n        if not verify(1):\n            self.fail('one is more than nothing')\n"
    ),
    "setup.cfg": "[metadata]\nversion = 1.0\n\n[flake8]\nmax-line-length = 100\n",
}
CODE, TESTS = BASE["calc.py"], BASE["tests/test_calc.py"]
WITHOUT_OLD = CODE.partition("\n\n\ndef old")[0] + "\n"
HONEST: Mapping[str, Mapping[str, str | None]] = {
    "a feature with its tests": {
        "calc.py": f"{CODE}\n\ndef twice(a):\n    return add(a, a)\n",
        "tests/test_calc.py": TESTS.replace("add\n", "add, twice\n", 1)
        + "\n    def test_twice(self):\n        self.assertEqual(twice(2), 4)\n",
    },
    "another behaviour with another expectation": {
        "calc.py": CODE.replace("a + b", "a + b + 1"),
        "tests/test_calc.py": TESTS.replace("2), 3", "2), 4"),
    },
    "Remove old, its test and its import": {
        "calc.py": WITHOUT_OLD,
        "tests/test_calc.py": TESTS.replace("from calc import old\n", "").replace(
            "    def test_old(self):\n        self.assertEqual(old(1), -1)\n\n", ""
        ),
    },
    "Move calc to sums, with its tests": {
        "calc.py": None,
        "sums.py": CODE,
        "tests/test_calc.py": None,
        "tests/test_sums.py": TESTS.replace("from calc", "from sums"),
    },
    "another message of a failure": {
        "calc.py": CODE.replace("a > 0", "a >= 1"),
        "tests/test_calc.py": TESTS.replace("one is more than nothing", "one is positive"),
    },
    "a test that fails on one platform": {
        "calc.py": CODE.replace("a > 0", "0 < a"),
        "tests/test_calc.py": TESTS.replace(
            "    def test_sign", "    @unittest.skipIf(sys.platform == 'none', 'no numbers there')\n    def test_sign"
        ),
    },
    "another version": {"calc.py": f"{CODE}\nVERSION = '1.1'\n", "setup.cfg": BASE["setup.cfg"].replace("1.0", "1.1")},
}
REALLY_RED = {"another behaviour with another expectation": ("tests/test_calc.py::test_add", "add ( 1 , 2 ) , 3")}
"""Honest changes under which a test of the base is red: nobody but a person can tell; what they are told."""


@pytest.fixture
def based(project: "Project") -> "Project":
    for path, text in BASE.items():
        project.file(path, text, commit=False)
    project.settings("[checks]\ntest = 'python3 -m unittest -q'\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Base")
    return project


def test_honest_commits_land_where_the_task_names_their_tests(based: "Project") -> None:
    stopped = {}
    for title, files in HONEST.items():
        told = committed(based, title, files, named=True)
        if told.code != 0:
            stopped[title] = told.json["findings"]
    assert not stopped, json.dumps(stopped, indent=1)


def test_honest_commits_whose_tests_are_not_named_land_or_ask_with_the_test_and_what_it_said(based: "Project") -> None:
    offenders = {}
    for title, files in HONEST.items():
        told = committed(based, title, files, named=False)
        grave = [one for one in told.json["findings"] if one["severity"] != "warn"]
        wanted = REALLY_RED.get(title, ())
        said = " ".join(one["says"] for one in grave if one["rule"] in {"old-test-fails", "expected-changed"})
        if (told.code == 0) == bool(wanted) or not all(word in said for word in wanted):
            offenders[title] = grave
    assert not offenders, json.dumps(offenders, indent=1)


def committed(project: "Project", title: str, files: Mapping[str, str | None], *, named: bool) -> "CommandResult":
    """Commit a change on the base, and verify it as the work on a task that names its tests or does not."""
    for path, text in files.items():
        place = project.root / path
        if text is None:
            place.unlink()
        else:
            place.write_text(text)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", title)
    names = [path for path in files if named or not path.startswith("tests/")]
    told = project.ask("verify", "HEAD", "--json", *(word for path in names for word in ("--file", path)))
    project.git("reset", "-q", "--hard", "HEAD~1")
    return told
