"""A plain `while` loop: try, check, and let the advice decide."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from unstuck import Advice, Recovery


def solve(task: str, prompt: str, check: str, agent: Callable[[str], str], folder: Path) -> Advice:
    """Let `agent` work until the check passes or a person is needed; it returns one line on how it went about it."""
    recovery = Recovery(path=folder / ".recovery.jsonl")
    while True:
        approach = agent(f"{prompt}\n\n{recovery.hints(task)}".strip())
        attempt = recovery.attempt(task, approach)
        done = subprocess.run(["bash", "-c", check], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return attempt.passed()
        advice = attempt.failed(done.stdout, stderr=done.stderr, exit_code=done.returncode, command=check)
        if not advice.goes_on:
            (folder / "report.md").write_text(recovery.report(task), encoding="utf-8")
            return advice
        time.sleep(advice.wait)
