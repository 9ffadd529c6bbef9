"""Edge: find peers that are installed: on PATH, or in the folder `.peers` beside the benchmarks."""

import os
import re
import shutil
import subprocess
from functools import cache

from benchmarks.supervisor.arena import ROOT, Trial

FOLDERS = (".peers/node_modules/.bin", ".peers/ralph/bin")
TICKED = re.compile(r"^- \[[xX]\] (\d+\.\d+)", re.MULTILINE)


@cache
def find(program: str, says: str) -> str:
    """Return where a program is whose help says a word: several peers share a name."""
    for folder in (*(str(ROOT / name) for name in FOLDERS), *os.environ.get("PATH", "").split(os.pathsep)):
        path = shutil.which(program, path=folder)
        if path and says in _help(path):
            return path
    return ""


def ticked(trial: Trial) -> frozenset[str]:
    """Return the tasks that are ticked off in the plan, which is how loops say that they are done."""
    plan = trial.repository / "tasks.md"
    return frozenset(TICKED.findall(plan.read_text(encoding="utf-8"))) if plan.exists() else frozenset()


def _help(path: str) -> str:
    try:
        told = subprocess.run((path, "--help"), capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout + told.stderr
