"""`init` proves what it writes: every gate is run on HEAD in a slot of its own, after the set-up."""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.project import Project

MAKEFILE = """
lint:
\t@echo "src/a.py:1:1: F401 unused import"; exit 1
typecheck:
\tno-such-type-checker-here .
format-check:
\techo more >> readme.txt
"""
TESTS = "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): pass\n  def test_b(self): pass\n"


@pytest.fixture
def stranger(project: Project) -> Project:
    """Make a project that nobody has configured."""
    project.git("rm", "-q", "unstuck.toml")
    project.git("commit", "-qm", "Nobody knows unstuck here")
    return project


def test_what_is_written_was_seen(stranger: Project) -> None:
    stranger.file("setup.cfg", "")
    stranger.file("tests/test_a.py", TESTS)
    stranger.file("Makefile", MAKEFILE)
    (stranger.root / "tests" / "test_a.py").write_text("not committed, so nobody's business")
    result = stranger.unstuck("init")
    assert result.code == 0, result
    text = (stranger.root / "unstuck.toml").read_text()
    assert tomllib.loads(text)["checks"] == {"test": "python3 -m unittest discover -s tests", "lint": "make lint"}
    assert "# test: 2 pass in " in text
    assert "# lint: red before" in text
    assert '# test = "python3 -m unittest discover"\n' in text, "what was tried and is no good is named as well"
    assert "# types: left out, because it cannot run here: " in text
    assert "# format: left out, because it changes files: readme.txt\n" in text
    assert "check: make lint" in result.err
    assert stranger.git("status", "--porcelain").splitlines() == [" M tests/test_a.py", "?? unstuck.toml"]


USES = "import unittest\nfrom {} import VALUE\nclass T(unittest.TestCase):\n  def test_a(self): self.assertEqual(VALUE, 1)\n"
LAYOUTS = {
    "inside-the-package": (
        {"pkg/__init__.py": "VALUE = 1\n", "pkg/tests/__init__.py": "", "pkg/tests/test_a.py": USES.format("pkg")},
        "python3 -m unittest discover",
    ),
    "beside-the-source": (
        {"src/lib.py": "VALUE = 1\n", "src/tests.py": USES.format("lib")},
        "python3 -m unittest discover -s src",
    ),
    "far-inside": (
        {"lib/pkg/core.py": "VALUE = 1\n", "lib/pkg/tests/test_a.py": USES.format("lib.pkg.core")},
        "python3 -m unittest discover -s lib/pkg/tests",
    ),
    "node-without-a-script": (
        {"package.json": "{}", "lib.js": "", "test/a.js": "require('node:test')('a', () => require('../lib.js'))\n"},
        "node --test",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tests_are_found_wherever_they_lie(stranger: Project, layout: str) -> None:
    files, line = LAYOUTS[layout]
    if line.startswith("node") and shutil.which("node") is None:
        pytest.skip("node is not on PATH")
    for name, text in {"setup.cfg": "", **files}.items():
        stranger.file(name, text)
    result = stranger.unstuck("init")
    assert result.code == 0, result
    assert tomllib.loads((stranger.root / "unstuck.toml").read_text())["checks"] == {"test": line}, result


def test_without_running_anything_nothing_is_claimed(stranger: Project) -> None:
    stranger.file("Makefile", MAKEFILE)
    result = stranger.ask("init", "--no-run")
    assert result.code == 0, result
    assert "lint: not run yet" in result.out
    assert "pass" not in result.out
    assert stranger.slots == []


def test_what_is_written_first_names_what_a_stranger_has(stranger: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stranger.root.parent / "bin"
    path.mkdir()
    (path / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(path))
    result = stranger.ask("init", "--no-run")
    assert result.code == 0, result
    assert result.out.startswith("# How unstuck works on this repository. All keys: unstuck docs configuration\n"), (
        result
    )
    assert result.err.endswith("then: unstuck go 'What should be done' --agent 'COMMAND'\n"), result


def test_a_check_that_is_red_before_it_meets_the_code_is_left_out_with_its_own_error(stranger: Project) -> None:
    """Such as `npm test`, whose runner finds no files."""
    stranger.file("lib.py", "VALUE = 1\n")
    stranger.file("Makefile", 'test:\n\t@echo "FAIL: no files to test"; echo "FAILED (failures=1)"; exit 1\n')
    result = stranger.unstuck("init")
    assert result.code == 0, result
    left_out = [line for line in result.out.splitlines() if line.startswith("# test: left out")]
    assert left_out, result
    assert all("another copy" not in line for line in left_out), left_out
    assert any("no files to test" in line or "FAILED" in line for line in left_out), left_out


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on PATH")
def test_a_fresh_clone_is_set_up_tried_and_then_worked_on(stranger: Project) -> None:
    package = {
        "name": "shop",
        "scripts": {"test": "check-shop", "lint": "no-such-linter --fix", "postinstall": "node src/shelf.js"},
        "devDependencies": {"checker": "file:./checker"},
    }
    checker = {"name": "checker", "version": "1.0.0", "bin": {"check-shop": "check.js"}}
    stranger.file("package.json", json.dumps(package))
    stranger.file("checker/package.json", json.dumps(checker))
    stranger.file("src/shelf.js", "require('fs').appendFileSync('readme.txt', 'set up')\n")
    stranger.file(
        "checker/check.js", "#!/usr/bin/env node\nconsole.log('ok 1 - sells\\n1..1\\n# tests 1\\n# pass 1')\n"
    )
    (stranger.root / "checker" / "check.js").chmod(0o755)
    (stranger.root / ".gitignore").write_text("")
    stranger.git("commit", "-qam", "Ignore nothing, not even node_modules")
    result = stranger.unstuck("init")
    assert result.code == 0, result
    written = tomllib.loads((stranger.root / "unstuck.toml").read_text())
    assert written["workspace"] == {"setup": ["npm install --no-package-lock --no-audit --no-fund"]}
    assert written["checks"] == {"test": "npm run test"}
    stranger.script(goal=[[{"write": "shop.js", "text": "// open\n"}]])
    done = stranger.unstuck("go", "Open the shop", "--agent", stranger.agent)
    assert done.code == 0, done
    assert stranger.git("diff", "--name-only", "HEAD^", "HEAD") == "shop.js", "what the set-up makes is nobody's work"
    assert not (stranger.root / "node_modules").exists()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on PATH")
def test_where_the_set_up_fails_what_is_there_is_copied_instead(stranger: Project) -> None:
    stranger.file("package.json", json.dumps({"scripts": {"test": "ours"}}))
    stranger.file("package-lock.json", "this is no lock file")
    ours = stranger.root / "node_modules" / ".bin" / "ours"
    ours.parent.mkdir(parents=True)
    ours.write_text("#!/bin/sh\nprintf 'ok 1 - sells\\n1..1\\n# tests 1\\n# pass 1\\n'\n")
    ours.chmod(0o755)
    result = stranger.unstuck("init")
    assert result.code == 0, result
    assert "The set-up `npm ci --no-audit --no-fund` failed: " in result.err
    written = tomllib.loads((stranger.root / "unstuck.toml").read_text())
    assert written["workspace"] == {"copy": ["node_modules"]}
    assert written["checks"] == {"test": "npm run test"}


@pytest.mark.skipif(
    subprocess.run(["python3", "-c", "import pytest"], capture_output=True, check=False).returncode != 0,
    reason="python3 has no pytest",
)
@pytest.mark.parametrize(
    "manifest",
    [
        ("requirements.txt", "--no-index\n"),
        pytest.param(
            ("pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = 'no_such_backend'\n"),
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=["out-of-reach", "broken"],
)
def test_tests_whose_runner_no_set_up_can_install_guard_by_the_one_that_is_there(
    stranger: Project, manifest: tuple[str, str]
) -> None:
    stranger.file(*manifest)
    stranger.file("cart.py", "def total():\n    return 6\n")
    stranger.file("test_cart.py", "from cart import total\n\n\ndef test_total():\n    assert total() == 6\n")
    result = stranger.unstuck("init")
    assert result.code == 0, result
    settings = tomllib.loads((stranger.root / "unstuck.toml").read_text())
    assert settings["checks"] == {"test": "python3 -m pytest"}, result
    assert "setup" not in settings["workspace"]


def test_what_a_set_up_does_to_the_tree_is_not_the_agents_work(project: Project) -> None:
    line = "mkdir -p tool && echo made > tool/it && echo more >> readme.txt"
    project.settings(f"[workspace]\nsetup = ['{line}']\n[checks]\ntest = 'test -f tool/it'\n")
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]])
    result = project.run("--parallel", "1")
    assert result.code == 0, result
    start = project.git("rev-list", "--max-parents=0", "HEAD")
    changed = set(project.git("diff", "--name-only", start, "HEAD").splitlines())
    assert changed - {"unstuck.toml", "tasks.md"} == {"a.txt", "b.txt"}


def test_a_file_that_is_there_is_refused_before_anything_is_run(project: Project) -> None:
    result = project.ask("init")
    assert result.code == 64
    assert "--force" in result.err
    assert not Path(project.store / "slots").exists()


def test_the_doctor_looks_where_the_checks_run(project: Project) -> None:
    tool = "#!/bin/sh\n"
    (project.root / "mine").write_text(tool)
    (project.root / "mine").chmod(0o755)
    lines = {"test": "made/here && python3 -m unittest", "lint": "./mine", "types": "python3 -m no_such_module"}
    setup = "mkdir -p made && cp /bin/true made/here"
    checks = "".join(f"{kind} = '{line}'\n" for kind, line in lines.items())
    project.settings(f"[workspace]\nsetup = ['{setup}']\n[checks]\n{checks}")
    result = project.unstuck("doctor", "--json")
    assert result.code == 69, result
    found = {one["says"].partition(":")[0]: one for one in result.json["findings"] if one["about"] == "check"}
    assert found["test"]["grade"] == "ok", found
    assert "./mine is not where checks run" in found["lint"]["says"], "only the user's checkout has it"
    assert "the module no_such_module of python3" in found["types"]["says"]
    assert f"set-up: {setup}" in result.err
    project.settings("[workspace]\nsetup = ['echo the registry is down; exit 4']\n")
    result = project.unstuck("doctor", "--json")
    assert [one["grade"] for one in result.json["findings"] if "cannot be set up" in one["says"]] == ["bad"], result
    assert project.unstuck("doctor", "--no-run").code == 0


def test_where_nothing_can_be_written_a_run_is_refused_and_the_doctor_tells_all_the_same(project: Project) -> None:
    project.settings("[checks]\ntest = 'true'\n")
    project.store.write_text("in the way\n")  # a folder without permissions would not stop the superuser
    result = project.unstuck("doctor", "--json")
    assert result.code == 69, result
    found = {one["about"]: one for one in result.json["findings"]}
    assert [found[about]["grade"] for about in ("writable", "workspace", "check")] == ["bad", "bad", "ok"], found
    assert str(project.store) in found["writable"]["says"]
    assert not any("resume" in one["remedy"] for one in result.json["findings"])
    went = project.unstuck("go", "Make a", "--agent", "true", "--check", "true")
    assert "Traceback" not in went.err, went
    assert "cannot be" in went.err


def test_a_test_run_that_does_not_see_the_code_guards_nothing(stranger: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "installed"
    elsewhere.mkdir()
    (elsewhere / "shop.py").write_text("PRICE = 1\n")
    stranger.file("src/shop.py", "PRICE = 1\n")
    stranger.file("tests/test_shop.py", f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\nimport shop\n{TESTS}")
    stranger.file("setup.cfg", "")
    result = stranger.unstuck("init")
    assert result.code == 0, result
    assert "# test: left out, because it says the same without the code of this repository" in result.out
    assert "Nothing was found that could guard this repository." in result.err
