"""A scratch repository with one small task: what an agent must be able to do before it is trusted with a plan."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unstuck.errors import Unavailable

PLAN = """# Trial

- [ ] 1.1 Write the file hello.txt
  - Its only line is the word `hello`. Change nothing else.
  - **Files**: `hello.txt`
  - **Verify**: `grep -qx hello hello.txt`
"""
IDENTITY = ("-c", "user.name=unstuck", "-c", "user.email=unstuck@example.invalid", "-c", "commit.gpgSign=false")


@contextmanager
def trial_ground() -> Iterator[Path]:
    """Make the repository; yield its plan, and remove everything afterwards."""
    if shutil.which("git") is None:
        raise Unavailable("git is not on PATH.", hint="Install git 2.38 or newer.")
    with tempfile.TemporaryDirectory(prefix="unstuck-check-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "trial"
        root.mkdir()
        plan = root / "tasks.md"
        plan.write_text(PLAN, encoding="utf-8")
        (root / "readme.txt").write_text("A scratch repository for one trial.\n", encoding="utf-8")
        for arguments in (["init", "--quiet", "-b", "main"], ["add", "-A"], ["commit", "--quiet", "-m", "Begin"]):
            subprocess.run(["git", *IDENTITY, *arguments], cwd=root, check=True, capture_output=True)
        for key, value in (("user.name", "unstuck"), ("user.email", "unstuck@example.invalid")):
            subprocess.run(["git", "config", key, value], cwd=root, check=True, capture_output=True)
        yield plan
