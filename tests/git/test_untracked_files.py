import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from unstuck.git.untracked_files import UntrackedFiles, unsafe_copies
from unstuck.model.errors import BadUsage


@dataclass(frozen=True)
class Place:
    root: Path
    worktree: Path

    def write(self, name: str, text: str = "text") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self) -> None:
        _run("git", "add", "-A", cwd=self.root)
        _run("git", "commit", "-q", "-m", "more", cwd=self.root)

    def add_worktree(self) -> None:
        _run("git", "worktree", "add", "-q", "--detach", str(self.worktree), cwd=self.root)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path / "user's repo"
    root.mkdir()
    _run("git", "init", "-q", "-b", "main", cwd=root)
    _run("git", "config", "user.name", "User", cwd=root)
    _run("git", "config", "user.email", "user@example.org", cwd=root)
    here = Place(root, root / ".unstuck" / "worktrees" / "1")
    here.write(".gitignore", ".unstuck/\n.venv/\nnode_modules/\n.env*\nbuild/\n*.secret\n")
    here.write("tracked/file")
    here.commit()
    return here


def test_files_and_folders_are_copied_with_modes_times_and_links(place: Place) -> None:
    script = place.write("build/deep/script", "#!/bin/sh\n")
    script.chmod(0o750)
    os.utime(script, (1_000_000, 1_000_000))
    os.utime(script.parent, (2_000_000, 2_000_000))
    (place.root / "build" / "link").symlink_to("deep/script")
    (place.root / "build" / "folder-link").symlink_to("deep")
    place.add_worktree()
    assert UntrackedFiles(root=place.root, copy=("build",))(place.worktree, True) == ("build",)
    copy = place.worktree / "build"
    assert (copy / "deep" / "script").read_text() == "#!/bin/sh\n"
    assert (copy / "deep" / "script").stat().st_mode & 0o777 == 0o750
    assert (copy / "deep" / "script").stat().st_mtime == 1_000_000
    assert (copy / "deep").stat().st_mtime == 2_000_000
    assert (copy / "link").readlink() == Path("deep/script")
    assert (copy / "folder-link").readlink() == Path("deep")
    (copy / "deep" / "script").write_text("changed")
    assert script.read_text() == "#!/bin/sh\n"


def test_a_link_leads_to_the_users_own(place: Place) -> None:
    place.write("node_modules/a/index.js")
    place.add_worktree()
    assert UntrackedFiles(root=place.root, link=("node_modules",))(place.worktree, True) == ("node_modules",)
    assert (place.worktree / "node_modules").is_symlink()
    assert (place.worktree / "node_modules" / "a" / "index.js").read_text() == "text"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((".env",), (".env",)),
        ((".env*",), (".env", ".env.local", ".env odd\nname")),
        (("packages/*/node_modules",), ("packages/a/node_modules", "packages/b/node_modules")),
        (("**/node_modules",), ("node_modules", "packages/a/node_modules", "packages/b/node_modules")),
        (("build/cache",), ("build/cache",)),
        (("build", "build/cache"), ("build",)),
        (("build/",), ("build",)),
        (("packages",), ("packages/a/node_modules", "packages/b/node_modules", "packages/new")),
        (("tracked", ".gitignore", "nothing"), ()),
        (("*.secret",), (os.fsdecode(b"caf\xe9.secret"),)),
    ],
    ids=lambda value: " ".join(value).encode("ascii", "replace").decode() or "nothing",
)
def test_patterns_name_what_git_does_not_carry(
    place: Place, patterns: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    place.write("packages/a/index.js")
    place.write("packages/b/index.js")
    place.commit()
    for name in (".env", ".env.local", ".env odd\nname", "build/cache/x", "build/y", "packages/new/x"):
        place.write(name)
    place.write(os.fsdecode(b"caf\xe9.secret"))
    for folder in ("", "packages/a/", "packages/b/"):
        place.write(f"{folder}node_modules/m/node_modules/n/index.js")
    place.add_worktree()
    placed = UntrackedFiles(root=place.root, copy=patterns)(place.worktree, True)
    assert sorted(placed) == sorted(expected)
    assert all((place.worktree / name).exists() for name in placed)


def test_worktreeinclude_names_ignored_files_in_gitignores_language(place: Place) -> None:
    place.write(".worktreeinclude", "# local settings\n.env*\n!.env.production\n/build/\n*.txt\n")
    place.commit()
    for name in (".env", ".env.production", "build/x", "sub/.env", "notes.txt", ".unstuck/.env"):
        place.write(name)
    place.add_worktree()
    placed = UntrackedFiles(root=place.root)(place.worktree, True)
    assert sorted(placed) == [".env", "build", "sub/.env"]
    assert (place.worktree / "sub" / ".env").read_text() == "text"


def test_a_tracked_file_is_never_overwritten(place: Place) -> None:
    place.write("settings", "in git")
    place.commit()
    place.add_worktree()
    _run("git", "rm", "-q", "--cached", "settings", cwd=place.root)
    place.write("settings", "the user's")
    placed = UntrackedFiles(root=place.root, copy=("settings",)).place(place.worktree)
    assert placed.paths == ()
    assert (place.worktree / "settings").read_text() == "in git"
    assert "git carries it" in placed.notes[0]


def test_what_stands_in_a_used_worktree_stays_and_what_is_missing_comes_back(place: Place) -> None:
    place.write(".env", "the user's")
    place.write("build/x")
    place.add_worktree()
    placing = UntrackedFiles(root=place.root, copy=(".env", "build"))
    placing(place.worktree, True)
    (place.worktree / "build" / "x").write_text("warm")
    (place.worktree / ".env").unlink()
    assert placing(place.worktree, False) == (".env", "build")
    assert (place.worktree / "build" / "x").read_text() == "warm"
    assert (place.worktree / ".env").read_text() == "the user's"


def test_half_a_copy_from_a_crash_is_cleared_away(place: Place) -> None:
    place.write("build/x")
    place.add_worktree()
    left = place.worktree.parent / ".1.placing-abc"
    (left / "copy").mkdir(parents=True)
    UntrackedFiles(root=place.root, copy=("build",))(place.worktree, True)
    assert [path.name for path in place.worktree.parent.iterdir()] == ["1"]


@pytest.mark.parametrize(
    "pattern", ["../x", "/etc/passwd", "a/../../x", "", ".", ".git", ".git/config", ".unstuck/logs"]
)
def test_a_pattern_that_leaves_the_repository_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(BadUsage) as refused:
        UntrackedFiles(root=tmp_path, copy=(pattern,))
    assert refused.value.hint


def test_a_folder_that_is_a_link_out_of_the_worktree_is_not_written_through(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.root / "out").symlink_to(outside)
    place.commit()
    place.add_worktree()
    (place.root / "out").unlink()
    place.write("out/.env")
    placed = UntrackedFiles(root=place.root, copy=("out/.env",)).place(place.worktree)
    assert placed.paths == ()
    assert placed.notes
    assert list(outside.iterdir()) == []


def test_a_relative_link_out_of_the_repository_still_finds_its_goal(place: Place) -> None:
    (place.root.parent / "shared.env").write_text("shared")
    (place.root / ".env").symlink_to("../shared.env")
    place.add_worktree()
    UntrackedFiles(root=place.root, copy=(".env",))(place.worktree, True)
    assert (place.worktree / ".env").read_text() == "shared"


def test_sockets_and_pipes_are_left_out(place: Place) -> None:
    place.write("build/x")
    os.mkfifo(place.root / "build" / "pipe")
    os.mkfifo(place.root / ".env")
    folder = os.open(place.root / "build", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        # A socket's own name may be no longer than 107 bytes; pytest's folders are.
        listener.bind(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
        place.add_worktree()
        placed = UntrackedFiles(root=place.root, copy=("build", ".env")).place(place.worktree)
    assert placed.paths == ("build",)
    assert "neither a file" in placed.notes[0]
    assert [path.name for path in (place.worktree / "build").iterdir()] == ["x"]


def test_nothing_asked_for_runs_nothing(tmp_path: Path) -> None:
    assert UntrackedFiles(root=tmp_path / "not a repository")(tmp_path / "gone", True) == ()


# --- Python ---


def test_a_copied_venv_works_and_its_scripts_run_the_copy(place: Place) -> None:
    venv = _make_venv(place)
    _site_packages(venv).joinpath("third.py").write_text("where = __file__\n")
    script = venv / "bin" / "tool"
    script.write_text(f"#!{venv}/bin/python\nimport sys, third\nprint(sys.prefix)\nprint(third.where)\n")
    script.chmod(0o755)
    place.add_worktree()
    placed = UntrackedFiles(root=place.root, copy=(".venv",)).place(place.worktree)
    assert placed.paths == (".venv",)
    copy = place.worktree / ".venv"
    shebang = (copy / "bin" / "tool").read_text().splitlines()[0]
    assert shebang == f"#!{copy}/bin/python"
    prefix, where = _run(str(copy / "bin" / "python"), str(copy / "bin" / "tool"), cwd=place.worktree).splitlines()
    assert prefix == str(copy)
    assert where.startswith(str(copy))
    assert script.read_text().startswith(f"#!{venv}/bin/python\n")


EDITABLE = {
    "a path file": lambda root: {"project.pth": f"{root}/src\n"},
    "setuptools' path file": lambda root: {"__editable__.project-1.0.pth": f"{root}/src\n"},
    "setuptools' finder": lambda root: {
        "__editable___project_finder.py": f"MAPPING = {{'project': {str(root / 'src' / 'project')!r}}}\n"
    },
    "an egg link": lambda root: {"project.egg-link": f"{root}\n.\n"},
    "pip's record": lambda root: {
        "project-1.dist-info/direct_url.json": f'{{"dir_info": {{"editable": true}}, "url": "file://{root}"}}'
    },
}


@pytest.mark.parametrize("files", EDITABLE.values(), ids=EDITABLE.keys())
@pytest.mark.parametrize("linked", [False, True], ids=["copied", "linked"])
def test_a_venv_with_an_editable_install_is_a_trap(place: Place, files: object, linked: bool) -> None:
    venv = _make_venv(place)
    assert callable(files)
    for name, text in files(place.root).items():
        path = _site_packages(venv) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    place.add_worktree()
    rules = {"link" if linked else "copy": (".venv",)}
    placed = UntrackedFiles(root=place.root, **rules).place(place.worktree)
    assert placed.paths == ()
    assert "unstuck init --force" in placed.notes[0]
    assert not os.path.lexists(place.worktree / ".venv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("distutils-precedence.pth", "import os; var = 'SETUPTOOLS_USE_DISTUTILS'\n"),
        ("other.pth", "/opt/another/project\n"),
        ("relative.pth", "vendored\n"),
        ("__editable___other_finder.py", "MAPPING = {'other': '/opt/another/project'}\n"),
        ("other-1.dist-info/direct_url.json", '{"dir_info": {"editable": true}, "url": "file:///opt/another"}'),
        ("other-2.dist-info/direct_url.json", "not json"),
    ],
)
def test_a_venv_that_does_not_lead_back_is_no_trap(place: Place, name: str, text: str) -> None:
    path = _site_packages(_make_venv(place)) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert unsafe_copies(place.root, [".venv"]) == ()


def test_the_python_trap_is_real_and_the_setup_that_replaces_it_works(place: Place) -> None:
    place.write("src/project.py", "who = 'the commit'\n")
    place.commit()
    place.add_worktree()
    place.write("src/project.py", "who = 'the checkout'\n")
    venv = _make_venv(place)
    _site_packages(venv).joinpath("project.pth").write_text(f"{place.root}/src\n")
    ask = ("-c", "import project; print(project.who)")
    naive = place.worktree / "naive"
    shutil.copytree(venv, naive, symlinks=True)
    assert _run(str(naive / "bin" / "python"), *ask, cwd=place.worktree) == "the checkout"
    assert UntrackedFiles(root=place.root, copy=(".venv",))(place.worktree, True) == ()
    _run(sys.executable, "-m", "venv", "--without-pip", ".venv", cwd=place.worktree)
    own = place.worktree / ".venv"
    _site_packages(own).joinpath("project.pth").write_text(f"{place.worktree}/src\n")
    assert _run(str(own / "bin" / "python"), *ask, cwd=place.worktree) == "the commit"


# --- Node ---


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not on PATH, so the Node project cannot be run")
    return found


def test_a_copied_node_modules_loads_the_worktrees_own_workspace_package(place: Place, node: str) -> None:
    _make_node_project(place, "../../packages/lib")
    assert unsafe_copies(place.root, ["node_modules"]) == ()
    placed = UntrackedFiles(root=place.root, copy=("node_modules",))(place.worktree, True)
    assert placed == ("node_modules",)
    assert _run(node, "main.js", cwd=place.worktree) == "third, the commit"
    assert _run(node, "main.js", cwd=place.root) == "third, the checkout"


def test_a_linked_node_modules_with_workspace_links_is_a_trap(place: Place, node: str) -> None:
    _make_node_project(place, "../../packages/lib")
    placed = UntrackedFiles(root=place.root, link=("node_modules",)).place(place.worktree)
    assert placed.paths == ()
    assert "unstuck init --force" in placed.notes[0]
    (place.worktree / "node_modules").symlink_to(place.root / "node_modules")
    assert _run(node, "main.js", cwd=place.worktree) == "third, the checkout"


def test_a_node_modules_with_full_path_links_is_a_trap_even_as_a_copy(place: Place, node: str) -> None:
    _make_node_project(place, str(place.root / "packages" / "lib"))
    placed = UntrackedFiles(root=place.root, copy=("node_modules",)).place(place.worktree)
    assert placed.paths == ()
    assert "@own/lib" in placed.notes[0]
    shutil.copytree(place.root / "node_modules", place.worktree / "node_modules", symlinks=True)
    assert _run(node, "main.js", cwd=place.worktree) == "third, the checkout"


def test_a_linked_node_modules_without_workspace_links_works(place: Place, node: str) -> None:
    _make_node_project(place, None)
    placed = UntrackedFiles(root=place.root, link=("node_modules",))(place.worktree, True)
    assert placed == ("node_modules",)
    assert _run(node, "-p", "require('third')", cwd=place.worktree) == "third"


def _make_node_project(place: Place, link: str | None) -> None:
    place.write("package.json", '{"workspaces": ["packages/*"]}')
    place.write("package-lock.json", "{}")
    place.write("main.js", "console.log([require('third'), require('@own/lib')].join(', '))")
    place.write("packages/lib/index.js", "module.exports = 'the commit'")
    place.commit()
    place.add_worktree()
    place.write("packages/lib/index.js", "module.exports = 'the checkout'")
    place.write("node_modules/third/index.js", "module.exports = 'third'")
    if link:
        own = place.root / "node_modules" / "@own"
        own.mkdir()
        (own / "lib").symlink_to(link)


def _make_venv(place: Place) -> Path:
    place.write("pyproject.toml", "[project]\nname = 'project'\n")
    _run(sys.executable, "-m", "venv", "--without-pip", ".venv", cwd=place.root)
    return place.root / ".venv"


def _site_packages(venv: Path) -> Path:
    (found,) = venv.glob("lib/python*/site-packages")
    return found


def _run(*argv: str, cwd: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout.strip()
