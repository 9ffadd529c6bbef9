"""What git does not carry: a run on a Python project with a venv and on a Node project with `node_modules`."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project


@pytest.fixture
def python_project(project: "Project") -> "Project":
    """Make a package with a venv in which another library is installed."""
    project.file("src/shop/__init__.py", "PRICE = 1\n")
    made_venv(project.root)
    packages(project.root).joinpath("numbers_lib.py").write_text("ONE = 1\n")
    return project


def test_a_copied_venv_serves_the_checks_of_every_worktree(python_project: "Project") -> None:
    project = python_project
    project.settings('[workspace]\ncopy = [".venv"]\n')
    project.plan(
        (
            "1.1",
            "Change the price",
            "PYTHONPATH=src .venv/bin/python -c 'import shop, numbers_lib; assert shop.PRICE == 2'",
        )
    )
    project.script(_1_1=[[{"write": "src/shop/__init__.py", "text": "PRICE = 2\n"}]])
    result = project.run()
    assert result.code == 0, result
    assert project.git("ls-tree", "-r", "--name-only", "main", ".venv") == ""
    worktree, _ = project.slots
    assert not (worktree / ".venv").is_symlink()


def test_an_editable_install_is_not_copied_and_the_user_is_told_what_to_do_instead(python_project: "Project") -> None:
    project = python_project
    packages(project.root).joinpath("shop.pth").write_text(f"{project.root / 'src'}\n")
    project.settings('[workspace]\ncopy = [".venv"]\n')
    project.plan(("1.1", "Change the price", ".venv/bin/python -c 'import shop; assert shop.PRICE == 1'"))
    project.script(_1_1=[[{"write": "src/shop/__init__.py", "text": "PRICE = 2\n"}]])
    result = project.run("--max-attempts", "1")
    assert result.code == 3, "the check must not see the user's checkout, where the price is 1"
    assert "shop.pth in it installs the project from" in result.err, result
    assert "by a `setup` in `[workspace]`" in result.err
    assert "shop.pth" in project.ask("doctor").out


def test_setup_makes_an_editable_venv_once_per_worktree_and_checks_import_the_worktree(
    python_project: "Project",
) -> None:
    project = python_project
    log = project.root.parent / "setup.log"
    made = project.root.parent / "make_venv.sh"
    made.write_text(
        f"set -e\necho made >> {log}\n{sys.executable} -m venv --without-pip .venv\n"
        'cd .venv/lib/python*/site-packages && echo "$OLDPWD/src" > shop.pth\n'
    )
    project.settings(f'[workspace]\nsetup = ["bash {made}"]\n')
    check = ".venv/bin/python -c 'import shop; assert shop.PRICE >= {}; assert \"/slots/\" in shop.__file__'"
    project.plan(*((f"1.{number}", f"Price {number}", check.format(number)) for number in (2, 3, 4)))
    project.script(
        **{
            f"_1_{number}": [[{"write": "src/shop/__init__.py", "text": f"PRICE = {number}\n{'#' * number}\n"}]]
            for number in (2, 3, 4)
        }
    )
    result = project.run()
    assert result.code == 0, result
    assert log.read_text().splitlines() == ["made"] * 2, (
        "three tasks, one worktree for the agent and one for the checks"
    )
    assert (project.root / "src/shop/__init__.py").read_text() == "PRICE = 4\n####\n"
    assert project.git("ls-tree", "-r", "--name-only", "main", ".venv") == ""


@pytest.mark.parametrize("setting", ["core.autocrlf=true", "core.eol=crlf"])
def test_the_line_ends_that_a_person_likes_make_no_right_work_red(project: "Project", setting: str) -> None:
    project.file(".gitattributes", "*.txt text=auto\n*.bat text eol=crlf\n")
    project.file("run.bat", "echo\n")
    project.git("config", *setting.split("="))
    (project.root / "run.bat").unlink()
    project.git("checkout", "--", "run.bat")
    project.plan(("1.1", "Make a", "test $(tr -d a-z < a.txt | wc -c) = 1 && grep -q $'\\r' run.bat"))
    project.script(_1_1=[[{"write": "a.txt", "text": "right\n"}]])
    result = project.run()
    assert result.code == 0, result
    assert project.git("cat-file", "blob", "main:a.txt") == "right"
    assert project.git("status", "--porcelain") == ""


def test_a_setup_that_fails_is_a_question_with_its_output(project: "Project") -> None:
    project.settings('[workspace]\nsetup = ["echo the registry is down >&2; exit 4"]\n')
    project.plan(("1.1", "Make a", "test -f a.txt"))
    result = project.run()
    assert result.code == 3, result
    assert "the registry is down >&2; exit 4" in result.out
    assert "the registry is down" in project.ask("show", "1.1").out
    assert project.ask("status", "--json").json["tasks"]["1.1"]["attempts"] == 1, "the agent is not to blame"


def test_worktreeinclude_brings_ignored_files_in_and_nothing_else(project: "Project") -> None:
    project.file(".gitignore", "*.env\n*.key\n")
    project.file(".worktreeinclude", "*.env\n")
    (project.root / "test.env").write_text("MODE=test\n")
    (project.root / "private.key").write_text("secret\n")
    project.plan(("1.1", "Make a", "test -f a.txt && grep -q MODE test.env && test ! -e private.key"))
    project.script(_1_1=[[{"write": "a.txt"}, {"append": "test.env", "text": "changed by the agent"}]])
    result = project.run()
    assert result.code == 0, result
    assert (project.root / "test.env").read_text() == "MODE=test\n"
    assert "test.env" not in project.git("ls-tree", "--name-only", "main")


# --- Node ----------------------------------------------------------------------------------------------


@pytest.fixture
def node_project(project: "Project") -> "Project":
    """Make a package with a dependency in node_modules."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    project.file("package.json", '{"name": "shop", "version": "1.0.0"}\n')
    project.file("price.js", "module.exports = 1\n")
    library = project.root / "node_modules" / "left-pad"
    library.mkdir(parents=True)
    (library / "index.js").write_text("module.exports = (text) => ' ' + text\n")
    (project.root / "node_modules" / ".bin").mkdir()
    (project.root / "node_modules" / ".bin" / "pad").symlink_to("../left-pad/index.js")
    return project


@pytest.mark.parametrize("rule", ["copy", "link"])
def test_node_modules_serve_the_checks_and_do_not_land(node_project: "Project", rule: str) -> None:
    project = node_project
    project.settings(f'[workspace]\n{rule} = ["node_modules"]\n')
    check = "node -e \"require('assert').equal(require('left-pad')('x'), ' x'); require('assert').equal(require('./price'), 2)\""
    project.plan(("1.1", "Change the price", check))
    project.script(_1_1=[[{"write": "price.js", "text": "module.exports = 2\n"}]])
    result = project.run()
    assert result.code == 0, result
    assert project.git("log", "-1", "--grep=Change the price", "--name-only", "--format=", "main") == "price.js"
    worktree, _ = project.slots
    assert (worktree / "node_modules").is_symlink() == (rule == "link")
    assert (project.root / "node_modules" / "left-pad" / "index.js").exists()


@pytest.fixture
def workspaces(node_project: "Project") -> "Project":
    """Link a package of the repository itself into node_modules, as npm does for workspaces."""
    node_project.file("packages/price/index.js", "module.exports = 1\n")
    (node_project.root / "node_modules" / "price").symlink_to(node_project.root / "packages" / "price")
    node_project.plan(("1.1", "Change the price", "node -e \"require('assert').equal(require('price'), 2)\""))
    node_project.script(_1_1=[[{"write": "packages/price/index.js", "text": "module.exports = 2\n"}]])
    return node_project


def test_a_workspace_link_that_leads_back_is_told_with_the_way_on(workspaces: "Project") -> None:
    workspaces.settings('[workspace]\ncopy = ["node_modules"]\n')
    result = workspaces.run("--max-attempts", "1")
    assert result.code == 3, "the check sees the user's own package, so green would be a lie"
    assert "node_modules cannot be placed" in result.err, result
    assert "by a `setup` in `[workspace]`" in result.err


def test_setup_makes_workspace_links_that_lead_into_the_worktree(workspaces: "Project") -> None:
    workspaces.settings(
        '[workspace]\nsetup = ["mkdir -p node_modules && ln -sfn ../packages/price node_modules/price"]\n'
    )
    result = workspaces.run()
    assert result.code == 0, result
    landed = workspaces.git("log", "-1", "--grep=Change the price", "--name-only", "--format=", "main")
    assert landed == "packages/price/index.js"


def test_init_proposes_what_the_stack_needs(node_project: "Project") -> None:
    node_project.git("rm", "-q", "unstuck.toml")
    assert 'copy = ["node_modules"]' in node_project.ask("init").out


def made_venv(root: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)


def packages(root: Path) -> Path:
    return next((root / ".venv" / "lib").glob("python*/site-packages"))


def test_a_place_where_no_slot_can_be_made_is_told_as_that_place(project: "Project", tmp_path: "Path") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    (tmp_path / "state").write_text("a file where a folder should be")
    state = str(tmp_path / "state")
    examined = project.unstuck("doctor", "--no-run", XDG_STATE_HOME=state)
    assert f"{state} is no folder that can be written" in examined.out, examined
    result = project.run(XDG_STATE_HOME=state)
    assert result.code == 1, result
    assert state in result.err, result
    assert "rm -rf" not in result.err, "there is nothing to remove"
    assert "slots" in result.err.partition("Hint: ")[2], result
    (tmp_path / "state").unlink()
    assert project.unstuck("resume", XDG_STATE_HOME=state).code == 0
