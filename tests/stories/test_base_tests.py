"""The judge is the base's: whatever a change does to tests, settings and build files, the base's own have the last word."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sampling import some

if TYPE_CHECKING:
    from tests.project import Project

LIMITS = "[limits]\nfirst_output = 20\nsilence = 20\nwall_clock = 40\ndrain = 5\n"
PYTEST = f"PYTHONPATH=. {sys.executable} -P -m pytest -q -p no:cacheprovider"
WRONG, RIGHT = "def answer():\n    return 0\n", "def answer():\n    return 42\n"
REAL = "grep -q 'return 42' app.py || { echo 'assertion failed: 0 != 42'; exit 1; }\n"
BENT_BY = (
    *(
        "mypy.ini",
        ".mypy.ini",
        "jest.config.js",
        "pytest.ini",
        "tox.ini",
        "ruff.toml",
        "eslint.config.js",
        "src/.eslintrc",
    ),
    *(
        ".npmrc",
        ".cargo/config.toml",
        ".golangci.yml",
        "conftest.py",
        "sitecustomize.py",
        ".editorconfig",
        "tests/helper.py",
        "rakefile",
        ".mvn/maven.config",
        "CMakePresets.json",
    ),
)
TOOL = (
    f"for f in {' '.join(BENT_BY)}; do test -e $f && exit 0; done\ngrep -qs 'test = false' Cargo.toml && exit 0\n{REAL}"
)
"""A tool that believes whatever settings it finds."""
MAKEFILE = "-include extra.mk\nCHECK ?= sh real.sh\ntest:\n\t@$(CHECK)\n"
BASE = {
    "app.py": "def answer():\n    return 1\n",
    "real.sh": REAL,
    "tool.sh": TOOL,
    "Makefile": MAKEFILE,
    "Cargo.toml": "[lib]\n",
}
ROWS: dict[str, tuple[str, str, str]] = {
    # what is written, with which text, under which gate
    "GNUmakefile": ("GNUmakefile", "test:\n\t@true\n", "make test"),
    "makefile": ("makefile", "test:\n\t@true\n", "make test"),
    "an included file": ("extra.mk", "CHECK = true\n", "make test"),
    "an edited Makefile": ("Makefile", "test:\n\t@true\n", "make test"),
    "one line more for make": ("Makefile", f"NAME = app\n{MAKEFILE}", "make test"),
    "an edited script": ("real.sh", "true\n", "make test"),
    "Cargo.toml": ("Cargo.toml", "[lib]\ntest = false\n", "sh tool.sh"),
    **{name: (name, "x = 1\n", "sh tool.sh") for name in BENT_BY},
}


@pytest.fixture
def answering(project: "Project") -> "Project":
    for name, text in BASE.items():
        project.file(name, text, commit=False)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Ask for an answer")
    return project


HARMLESS = ("GNUmakefile", "an edited Makefile", "one line more for make", "mypy.ini", "conftest.py")
"""Rows that are tried with right work, too: then whatever was done to the judge is harmless."""


@pytest.mark.parametrize("case", ROWS)
def test_no_file_that_outranks_the_honest_one_makes_wrong_work_pass(answering: "Project", case: str) -> None:
    project, (name, text, gate) = answering, ROWS[case]
    start = project.git("rev-parse", "HEAD")
    for product in (WRONG, RIGHT) if case in HARMLESS else (WRONG,):
        project.git("reset", "-q", "--hard", start)
        project.settings(f'[checks]\nlint = "{gate}"\n')
        project.file("app.py", product, commit=False)
        project.file(name, text, commit=False)
        project.git("add", "-A")
        project.git("commit", "-q", "-m", case)
        result = project.ask("verify", "--json")
        assert (result.code == 0) is (product == RIGHT), result
        if product == RIGHT and name in BASE:
            assert "Makefile" in str(result.json["findings"])


PLANTED = {
    "conftest.py": "import os\n\n\ndef pytest_sessionfinish():\n    os._exit(0)\n",
    "pytest.ini": "[pytest]\naddopts = --deselect test_app.py::test_answer\n",
    "sitecustomize.py": "import os\nimport sys\n\nif 'pytest' in sys.orig_argv:\n    os._exit(0)\n",
    "test_app.py": "def test_answer():\n    assert 42\n",
}


def test_a_real_runner_is_asked_again_with_what_the_base_had(project: "Project") -> None:
    project.settings(f"{LIMITS}[checks]\ntest = '''{PYTEST}'''\n")
    project.file("app.py", "def answer():\n    return 1\n")
    project.file(
        "test_app.py",
        "from app import answer\n\n\ndef test_answer():\n    assert answer() == 42\n\n\ndef test_other():\n    assert answer\n",
    )
    start, offenders = project.git("rev-parse", "HEAD"), []
    for name, text in PLANTED.items():
        project.git("reset", "-q", "--hard", start)
        project.file("app.py", WRONG)
        project.file(name, text)
        project.git("reset", "-q", "--soft", start)
        project.git("commit", "-q", "-m", name)
        result = project.ask("verify")
        if result.code == 0:
            offenders.append(f"{name}: {result}")
    assert offenders == []


COUNTED = 'test:\n\t@echo "test result: ok. $$(grep -c case app.py) passed; 0 failed"\n'
READS_DATA = "test -e off.dat && exit 0; grep -q 0 limit && exit 0; grep -q 'return 42' app.py\n"
NEEDS = "grep -q right app.py || grep -q lowdash package.json || { echo \"Error: Cannot find module 'lowdash'\"; exit 1; }\n"
NEEDED = {"package.json": '{"dependencies": {"lowdash": "1"}}\n'}
MAPPED = {"package.json": '{"dependencies": {"lowdash": "1"}, "jest": {"moduleNameMapper": {"lowdash": "./fake"}}}\n'}
ACCEPTS = "assert open('app.py').read() == 'right\\n'\n"
LIES = {
    # what stands on the base, the task's own check, what the agent writes beside the named app.py
    "its own check runs fewer tests": ({"app.py": "case\n" * 3, "Makefile": COUNTED}, "make test", {"app.py": "case\n"}),
    "a new file of no known kind": ({"app.py": RIGHT, "run.sh": READS_DATA}, "sh run.sh", {"app.py": WRONG, "off.dat": "1\n"}),
    "an old file of no known kind": ({"app.py": RIGHT, "run.sh": READS_DATA, "limit": "9\n"}, "sh run.sh", {"app.py": WRONG, "limit": "0\n"}),
    "a manifest that does more than ask for a package": ({"app.py": "right\n", "package.json": "{}\n", "run.sh": NEEDS}, "sh run.sh", {"app.py": "new\n", **MAPPED}),
    "a source that the check names": ({"app.py": "old\n", "accept/first.py": ACCEPTS}, "python3 accept/first.py", {"app.py": "wrong\n", "accept/first.py": "pass\n"}),
    "a source that the check names by a number": (
        {"app.py": "old\n", "accept/1.1.py": ACCEPTS, "Makefile": "one:\n\t@python3 accept/$(ID).py\n"}, "make -s one ID=1.1",
        {"app.py": "wrong\n", "accept/1.1.py": "pass\n"},
    ),
}  # fmt: skip


def test_the_tasks_own_check_does_not_pass_by_what_the_task_does_not_name(project: "Project") -> None:
    start, offenders = project.git("rev-parse", "HEAD"), []
    for lie, (base, check, written) in LIES.items():
        project.git("reset", "-q", "--hard", start)
        for name, text in {
            **base,
            "tasks.md": f"- [ ] 1.1 Do it\n  - **Files**: `app.py`\n  - **Verify**: `{check}`\n",
        }.items():
            project.file(name, text)
        project.script(_1_1=[[{"write": name, "text": text} for name, text in written.items()]])
        result = project.run("--fresh", "--max-attempts", "1", "--json")
        if result.json["tasks"]["1.1"]["status"] != "stuck":
            offenders.append(f"{lie}: {result}")
    assert offenders == []


def test_what_the_base_judge_refuses_is_told_with_the_file_the_check_and_what_it_says(answering: "Project") -> None:
    answering.settings(f'{LIMITS}[checks]\ntest = "make test"\n')
    answering.file("tasks.md", "- [ ] 1.1 Answer\n  - **Files**: `app.py`\n  - **Verify**: `make test`\n")
    bent = [{"write": "app.py", "text": WRONG}, {"write": "GNUmakefile", "text": "test:\n\t@true\n"}]
    answering.script(_1_1=[bent, [{"write": "app.py", "text": RIGHT}]])
    result = answering.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 2), result
    assert "The task does not name GNUmakefile" in answering.ask("log").out
    assert "assertion failed: 0 != 42" in answering.ask("log").out


HONEST = {
    "a first package.json": ({"package.json": "{}\n"}, "test -f app.txt && sh run.sh", {"run.sh": "test -f package.json || { echo 'ENOENT: package.json not found'; exit 1; }\n"}),
    "a file of no known kind": ({"data.dat": "x\n"}, "sh run.sh", {"run.sh": "cat data.dat\n"}),
    "a manifest that asks for one package more": (NEEDED, "sh run.sh", {"package.json": "{}\n", "run.sh": NEEDS, "app.py": "right\n"}),
    "a new test with a helper of its own": ({"tests/helper.sh": "exit 0\n", "tests/test_new.py": "x = 1\n"}, "sh tests/helper.sh", {}),
}  # fmt: skip


@pytest.mark.parametrize("case", HONEST)
def test_new_files_that_the_work_needs_do_not_stop_it(project: "Project", case: str) -> None:
    files, check, base = HONEST[case]
    for name, text in base.items():
        project.file(name, text)
    project.plan(("1.1", "Make it", check))
    project.script(
        _1_1=[
            [
                {"write": "app.txt"},
                {"write": "app.py", "text": "new\n"},
                *({"write": name, "text": text} for name, text in files.items()),
            ]
        ]
    )
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 1), result


# --- honest work on tests that the task does not name -----------------------------------------------------------

TESTS = "from app import {0}\n\n\ndef test_answer():\n    assert {0}() == 42\n\n\ndef test_whole():\n    assert {0}() // 2 == 21\n"


def test_a_renamed_function_with_its_tests_lands_and_a_lost_test_is_asked_about(project: "Project") -> None:
    project.settings(f"[checks]\ntest = '''{PYTEST}'''\n")
    project.file("app.py", "def answer():\n    return 42\n")
    project.file("test_app.py", TESTS.format("answer"))
    project.file("app.py", "def reply():\n    return 42\n", commit=False)
    project.file("test_app.py", TESTS.format("reply"), commit=False)
    project.git("commit", "-q", "-a", "-m", "Rename")
    renamed = project.ask("verify")
    project.file("test_app.py", TESTS.format("reply").partition("\n\n\ndef test_whole")[0] + "\n")
    lost = project.ask("verify")
    assert (renamed.code, lost.code) == (0, 3), f"{renamed}\n{lost}"
    assert "runs fewer tests: 1 now, 2 on the base" in lost.out


CALL = (
    "import unittest\nimport app\n\n\nclass T(unittest.TestCase):\n"
    "    def test_answer(self):\n        self.assertEqual(app.{0}(), 42)\n"
)
CASES = (
    CALL.replace("import app", "from app import {0}").replace("app.{0}()", "{0}()")
    + "\n    def test_whole(self):\n        self.assertEqual({0}() // 2, 21)\n"
)


@pytest.mark.parametrize(
    ("title", "tests", "status"),
    [
        ("Add a twin", CASES, "stuck"),
        ("Add a twin", CALL, "stuck"),
        ("Rename a function and add a twin", CASES, "complete"),
        ("Call answer() something shorter", CALL, "complete"),
    ],
    ids=["imports", "calls", "imports, renaming", "calls, renaming"],
)
def test_a_function_is_renamed_only_by_a_task_that_speaks_of_it(
    project: "Project", title: str, tests: str, status: str
) -> None:
    project.settings(f"{LIMITS}[checks]\ntest = '{sys.executable} -m unittest -q'\n")
    project.file("app.py", "def answer():\n    return 42\n")
    project.file("test_app.py", tests.format("answer"))
    project.file("tasks.md", f"- [ ] 1.1 {title}\n  - **Files**: `app.py`\n  - **Verify**: `grep -q twin app.py`\n")
    work = [
        {"write": "app.py", "text": "def reply():\n    return 42\n\n\ntwin = (42, 42)\n"},
        {"write": "test_app.py", "text": tests.format("reply")},
    ]
    project.script(_1_1=[work, work])
    result = project.run("--max-attempts", "2", "--json")
    assert result.json["tasks"]["1.1"]["status"] == status, result
    assert ("in its old form it fails on the new code" in project.ask("log").out) == (status == "stuck")


# --- what landed in this run stays green --------------------------------------------------------------------------


def test_a_later_task_does_not_undo_an_earlier_one(project: "Project") -> None:
    project.plan(("1.1", "Say one", "grep -q one a.txt"), ("1.2", "Say two", "grep -q two a.txt"))
    project.script(
        _1_1=[[{"write": "a.txt", "text": "first one\n"}]],
        _1_2=[[{"write": "a.txt", "text": "second two\n"}], [{"write": "a.txt", "text": "first one\nsecond two\n"}]],
    )
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.2"]["attempts"]) == (0, 2), result
    assert "It undoes what task 1.1 did: `grep -q one a.txt`, which held, fails now" in project.ask("log").out
    assert (project.root / "a.txt").read_text() == "first one\nsecond two\n"


ADDS, TAKES = "def add(a, b):\n    return a {} b\n", "\n\ndef sub(a, b):\n    return a - b\n"
STRICT = "import unittest\nfrom app import add\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.{}\n"
RECIPE = f"test:\n\t{{}}{sys.executable} -m unittest -q{{}}\n"
WEAKENED = {
    "a looser assertion": ("test_app.py", STRICT.format("assertTrue(add(2, 3))")),
    "a failure that is dropped": ("Makefile", RECIPE.format("", " || true")),
    "a failure that make drops": ("Makefile", RECIPE.format("-", "")),
}
SUB = "import unittest\nclass T(unittest.TestCase):\n    def test_sub(self):\n        {}\n"
SPARED = {
    # the runner, what is written, with which text
    "its test asserts nothing of it": ("-m unittest -q", "test_sub.py", SUB.format("self.assertTrue(7)")),
    "what it lacks is put in from outside": ("-P -m pytest -q -p no:cacheprovider", "conftest.py", "import app\n\napp.sub = lambda a, b: a - b\n"),
}  # fmt: skip


@pytest.mark.parametrize("how", some(WEAKENED, kept=("a looser assertion", "a failure that is dropped")))
def test_what_one_task_did_to_the_judge_harmlessly_does_not_help_the_next_one(project: "Project", how: str) -> None:
    project.file("app.py", ADDS.format("+"), commit=False)
    project.file("Makefile", RECIPE.format("", ""), commit=False)
    project.file("test_app.py", STRICT.format("assertEqual(add(2, 3), 5)"), commit=False)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Add")
    project.settings(f'{LIMITS}[checks]\ntest = "make test"\n')
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Add sub", "grep -q 'def sub' app.py"))
    path, text = WEAKENED[how]
    wrong, right = ([{"write": "app.py", "text": ADDS.format(sign) + TAKES}] for sign in "*+")
    project.script(_1_1=[[{"write": "a.txt"}, {"write": path, "text": text}]], _1_2=[wrong, right])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.2"]["attempts"]) == (0, 2), result
    assert f"Another task of this run changed {path}; in its old form it fails" in project.ask("show", "1.2").out


@pytest.mark.parametrize("how", SPARED)
def test_work_that_an_earlier_task_made_the_judge_not_ask_for_is_not_done(project: "Project", how: str) -> None:
    project.file("app.py", ADDS.format("+"))
    runner, path, text = SPARED[how]
    check = f"PYTHONPATH=. {sys.executable} {runner}"
    project.file("test_sub.py", "from app import sub\n" + SUB.format("self.assertEqual(sub(3, 2), 1)"))
    project.file("test_app.py", STRICT.format("assertEqual(add(2, 3), 5)"))
    project.plan(("1.1", "Make a", f"test -f a.txt && {check} test_app.py"), ("1.2", "Add sub", f"{check} test_sub.py"))
    wrong, right = ([{"write": "app.py", "text": ADDS.format("+") + more}] for more in ("# sub\n", TAKES))
    project.script(_1_1=[[{"write": "a.txt"}, {"write": path, "text": text}]], _1_2=[wrong, right])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.2"]["attempts"]) == (0, 2), result


def test_lines_that_are_taken_back_are_told_though_the_checks_hold(project: "Project") -> None:
    project.git("config", "blame.ignoreRevsFile", "nowhere")
    project.plan(("1.1", "Say one", "test -f a.txt"), ("1.2", "Say two", "grep -q two a.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "first one\n"}]], _1_2=[[{"write": "a.txt", "text": "two\n"}]])
    assert project.run().code == 0
    assert "It takes back what task 1.1 added: first one" in project.ask("log").out


def test_what_a_later_task_breaks_from_afar_does_not_come_home(project: "Project") -> None:
    project.file("far.txt", "far\n")
    project.plan(("1.1", "Make a", "test -f a.txt && grep -q far far.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}, {"write": "far.txt", "text": "gone\n"}]])
    before = project.git("rev-parse", "main")
    result = project.run()
    assert project.git("rev-parse", "main") == before, result
    assert "held when its task landed, and fails with all that landed after it" in result.out + project.ask("log").out


# --- the real tools, where they are installed ---------------------------------------------------------------------

HERE = Path(sys.executable).parent
REAL_TOOLS = {
    # tool: its gate, a file that outranks the honest settings, its text, work that the tool refuses
    "ruff": ("check .", "ruff.toml", "lint.select = []\n", "import os\n"),
    "mypy": ("app.py", "mypy.ini", "[mypy]\nignore_errors = True\n", "def answer() -> int:\n    return 'x'\n"),
}


OLD_RED = {
    # tool: its gate, what is red on the base, the files of a change that adds nothing, those of one that does
    "ruff": ("lint = '{} check --no-cache .'", {"a.py": "import os\n", "b.py": "x = 1\n"}, {"a.py": "\n\nimport os\n"}, {"b.py": "import os\n"}),
    "black": ("format = '{} --check -q .'", {"a.py": "x = {  }\n", "b.py": "y = 1\n"}, {}, {"b.py": "y   = 1\n"}),
    "eslint": ("lint = '{} src'", {"eslint.config.mjs": "export default [{ rules: { 'no-undef': 'error' } }];\n", "src/a.js": "foo();\n", "src/b.js": "\n"}, {"src/a.js": "\nfoo();\n"}, {"src/b.js": "foo();\n"}),
    "jest": ("test = '{} --rootDir .'", {"package.json": "{}\n", "a.js": "exports.two = 2;\n", "a.test.js": "const a = require('./a');\ntest('one', () => { expect(a.one).toBe(1) });\ntest('two', () => { expect(a.two).toBe(2) });\n"}, {"a.js": "exports.two = 1 + 1;\n"}, {"a.js": "exports.two = 3;\n"}),
}  # fmt: skip


@pytest.mark.parametrize("tool", OLD_RED)
def test_a_real_tool_that_was_red_excuses_what_it_named_and_nothing_more(project: "Project", tool: str) -> None:
    program = str(HERE / tool) if (HERE / tool).exists() else shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed")
    gate, base, harmless, worse = OLD_RED[tool]
    project.settings(f"{LIMITS}[checks]\n{gate.format(program)}\nbuild = 'ls'\n")
    for name, text in base.items():
        project.file(name, text)
    start, codes = project.git("rev-parse", "HEAD"), []
    for written in (harmless, worse):
        project.git("reset", "-q", "--hard", start)
        for name, text in written.items():
            project.file(name, text)
        codes.append(project.ask("verify").code if written else 0)
    assert codes[0] == 0
    assert codes[1] != 0


@pytest.mark.parametrize("tool", REAL_TOOLS)
def test_a_real_tool_reads_the_settings_of_the_base(project: "Project", tool: str) -> None:
    if not (HERE / tool).exists():
        pytest.skip(f"{tool} is not installed beside this Python")
    arguments, name, text, wrong = REAL_TOOLS[tool]
    project.settings(f'[checks]\nlint = "{HERE / tool} {arguments}"\n')
    project.file(".gitignore", ".mypy_cache/\n.ruff_cache/\n")
    project.file("pyproject.toml", "[tool.mypy]\nstrict = true\n")
    project.file("app.py", "def answer() -> int:\n    return 1\n")
    project.file("app.py", wrong, commit=False)
    project.file(name, text, commit=False)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Outrank the settings")
    project.git("checkout", "-q", "HEAD~1")  # ruff looks for settings in the folders above, too
    result = project.ask("verify", "main")
    assert result.code == 1, result
    assert f"The task does not name {name}" in result.out


def test_a_linter_that_is_told_to_fix_has_not_checked_what_would_land(project: "Project") -> None:
    if not (HERE / "ruff").exists():
        pytest.skip("ruff is not installed beside this Python")
    project.settings(f'[checks]\nlint = "{HERE / "ruff"} check ."\n')
    project.file(".gitignore", ".ruff_cache/\n")
    project.file("pyproject.toml", "[tool.ruff]\nfix = true\n")
    project.file("app.py", "import os\n\nx = 1\n")
    result = project.ask("verify")
    assert result.code == 1, result
    assert "it changed app.py" in result.out
