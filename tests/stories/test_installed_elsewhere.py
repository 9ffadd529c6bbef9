"""The project is installed on the machine from somewhere else: a check sees the tree that it is asked about."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project

RIGHT, WRONG = "def answer():\n    return 42\n", "def answer():\n    return 0\n"
TEST = "from pkg import answer\n\n\ndef test_answer():\n    assert answer() == 42\n"
FINDER = "MAPPING: dict[str, str] = {{'pkg': '{place}/pkg'}}\n"
HOOK = "import sys; sys.path.append({place!r})\n"


@pytest.fixture
def packages(project: "Project", tmp_path: Path) -> Path:
    """Make a project with its package in src, and an environment outside of it, active by its full name in the check."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = next(venv.glob("lib/python*/site-packages"))
    (packages / "tools.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    project.file("src/pkg/__init__.py", WRONG)
    project.file("tests/test_pkg.py", TEST)
    project.file(".gitignore", "_made.py\n__pycache__\n")
    project.plan(("1.1", "Answer 42", f"{venv}/bin/python -m pytest -q -p no:cacheprovider"))
    return packages


def installed(packages: Path, place: Path, how: str) -> None:
    """Install the project as pip -e does: by a path, or by a finder that is asked last."""
    if how == "path":
        (packages / "__editable__.pkg-1.pth").write_text(f"{place}\n")
    else:
        (packages / "__editable___pkg_1_finder.py").write_text(FINDER.format(place=place))
        (packages / "__editable__.pkg-1.pth").write_text(HOOK.format(place=str(place)))


@pytest.mark.parametrize("how", ["path", "finder"])
def test_work_is_judged_and_not_the_checkout_that_is_installed(project: "Project", packages: Path, how: str) -> None:
    installed(packages, project.root / "src", how)
    project.script(_1_1=[[{"write": "src/pkg/__init__.py", "text": RIGHT}]])
    assert project.run("--max-attempts", "1").code == 0
    project.plan(("1.1", "Answer more", project.root.joinpath("tasks.md").read_text().split("`")[1]), name="more.md")
    project.script(_1_1=[[{"write": "src/pkg/__init__.py", "text": WRONG}]])
    result = project.run("--max-attempts", "1", "--json", plan="more.md")
    assert result.json["tasks"]["1.1"]["status"] == "stuck", result


@pytest.mark.parametrize(("text", "status"), [("from pkg._made import answer\n", "stuck"), (RIGHT, "complete")])
def test_what_an_agent_installs_from_its_slot_is_not_what_is_judged(
    project: "Project", packages: Path, text: str, status: str
) -> None:
    installed(packages, project.root / "src", "path")
    install = f"sh -c 'echo $PWD/src > {packages}/__editable__.pkg-1.pth'"
    written = [{"write": "src/pkg/__init__.py", "text": text}, {"write": "src/pkg/_made.py", "text": RIGHT}]
    project.script(_1_1=[[*written, {"run": install}]])
    result = project.run("--max-attempts", "1", "--json")
    assert result.json["tasks"]["1.1"]["status"] == status, result
