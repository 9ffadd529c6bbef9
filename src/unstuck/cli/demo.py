"""The demo: a scratch repository, a real plan, and a scripted agent that fails in the ways that real agents do."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unstuck.errors import BadUsage, Unavailable

STORY = Path(__file__).parents[1] / "catalog" / "demo"
GIT_IDENTITY = ("-c", "user.name=You", "-c", "user.email=you@example.invalid", "-c", "commit.gpgSign=false")


@dataclass(frozen=True, slots=True)
class Place:
    root: Path

    @property
    def plan(self) -> Path:
        return self.root / "tasks.md"


@contextmanager
def scratch(keep: Path | None) -> Iterator[Place]:
    """Make the scratch repository; remove it afterwards unless it is to be kept."""
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise BadUsage(f"{keep} is not empty.", hint="Name a folder that does not exist yet.")
        yield _made(keep)
        return
    with tempfile.TemporaryDirectory(prefix="unstuck-demo-") as folder:
        yield _made(Path(folder) / "cart")


def opening(place: Place) -> str:
    return (
        f"A scratch repository at {place.root}: a small Python project and a plan of five tasks.\n"
        "The agent is a script. It will lie, crash, break the build and hang; every claim is checked.\n"
    )


def closing(place: Place, *, kept: bool) -> str:
    log = subprocess.run(
        ["git", "log", "--oneline", "--graph"], cwd=place.root, capture_output=True, text=True, check=False
    ).stdout
    look = (
        f"It is all in {place.root}: try `unstuck show 1.1` and `unstuck log` there.\n"
        if kept
        else "Keep it to look around: unstuck demo --keep DIR\n"
    )
    return f"\nWhat is on your branch now:\n{log}\n{look}"


def _made(root: Path) -> Place:
    if shutil.which("git") is None:
        raise Unavailable("git is not on PATH.", hint="Install git 2.38 or newer.")
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadUsage(
            f"{root} cannot be made: {error.strerror}.", hint="Name a folder that you may write to."
        ) from error
    shutil.copytree(STORY / "project", root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "A cart that can be filled"]):
        subprocess.run(["git", *GIT_IDENTITY, *arguments], cwd=root, check=True)
    return Place(root)
