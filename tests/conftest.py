"""Scratch repositories on real git, away from the configuration of whoever runs the tests."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from tests.copies import Files, copied, taken

pytest_plugins = ["tests.project"]
settings.register_profile("any_machine", deadline=None)
settings.load_profile("any_machine")
# A shell that puts us in the background has the keyboard's signals ignored, and `nohup` that of a closed terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

GLOBAL_CONFIG = """\
[user]
    name = Ada
    email = ada@example.org
[init]
    defaultBranch = main
[protocol "file"]
    allow = user
[maintenance]
    auto = false
"""


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return folders that are not there yet: pytest's own way to number them reads the names of all before."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(scope="session", autouse=True)
def own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let slots be made among the tests' own files; whatever was made in a module is found by all of its tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let `python3` be started by one shell: a version manager's shim takes thirty for each start, to find the same Python."""
    folder = tmp_path_factory.mktemp("python")
    asked = ["python3", "-c", "import sys; print(sys.executable)"]
    found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    (folder / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(found)} "$@"\n')
    (folder / "python3").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(autouse=True)
def own_git_configuration(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give git a home with a user called Ada and nothing else."""
    home = next(homes)
    home.mkdir()
    (home / ".gitconfig").write_text(GLOBAL_CONFIG)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in [name for name in os.environ if name.startswith("GIT_") and not name.startswith("GIT_CONFIG")]:
        monkeypatch.delenv(name)
    return home


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Make a repository with two commits on `main`."""
    copied(_two_commits(), tmp_path / "repo")
    return tmp_path / "repo"


@pytest.fixture
def large_scratch(tmp_path: Path) -> Path:
    """Make a repository of 2,000 files, of which the user has deleted all: writing them takes longest."""
    copied(_two_thousand_files(), tmp_path / "large", refreshed=False)
    return tmp_path / "large"


@pytest.fixture
def fingerprint() -> Callable[[Path], Mapping[str, object]]:
    """Return a function that reads everything of the user's that a run must not touch."""
    return take_fingerprint


@cache
def _two_commits() -> Files:
    files = {"a.txt": "a\n", "src/b.py": "b = 1\n", ".gitignore": "*.log\nnode_modules/\n"}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _git(root, "init", "--quiet")
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        _git(root, "add", "-A")
        _git(root, "commit", "--quiet", "-m", "first")
        _git(root, "commit", "--quiet", "--allow-empty", "-m", "second")
        return taken(root)


@cache
def _two_thousand_files() -> Files:
    lines = ["commit refs/heads/main", "committer Ada <ada@example.org> 0 +0000", "data 0"]
    for number in range(2000):
        lines += [f"M 644 inline d{number % 50}/f{number}.txt", f"data {len(f'{number} ') * 20}", f"{number} " * 20]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _git(root, "init", "--quiet")
        _git(root, "fast-import", "--quiet", stdin="\n".join([*lines, ""]).encode())
        _git(root, "read-tree", "HEAD")
        return taken(root)


def take_fingerprint(root: Path) -> Mapping[str, object]:
    git_dir = Path(_git(root, "rev-parse", "--absolute-git-dir").decode().strip())
    common = Path(_git(root, "rev-parse", "--path-format=absolute", "--git-common-dir").decode().strip())
    refs = _git(root, "for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
    return {
        "status": _git(root, "--no-optional-locks", "status", "--porcelain", "-z"),
        "index": (git_dir / "index").read_bytes(),
        "HEAD": (git_dir / "HEAD").read_bytes(),
        "config": (common / "config").read_bytes(),
        "stash": _git(root, "stash", "list"),
        "refs": [line for line in refs if not line.startswith(("refs/heads/unstuck/", "refs/unstuck/"))],
        "files": {
            os.fsencode(path): _content(path) for path in root.rglob("*") if not _is_git_or_ours(path.relative_to(root))
        },
    }


def _content(path: Path) -> tuple[int, bytes]:
    mode = path.lstat().st_mode
    if path.is_symlink():
        return mode, os.fsencode(path.readlink())
    return mode, path.read_bytes() if path.is_file() else b""


def _is_git_or_ours(path: Path) -> bool:
    return path.parts[0] in {".git", ".unstuck"}


def _git(root: Path, *args: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, input=stdin).stdout
