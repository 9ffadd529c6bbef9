"""pydantic-ai: recovery around the agent, hints in the prompt of the next attempt."""

import subprocess
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models import Model

from unstuck import Advice, Recovery


def solve(model: Model, task: str, prompt: str, check: str, folder: Path) -> Advice:
    """Let an agent that can write files work until the check passes or a person is needed."""
    recovery = Recovery()
    agent = Agent(model)

    @agent.tool_plain
    def write_file(path: str, text: str) -> str:
        """Write a file in the workspace."""
        place = (folder / path).resolve()
        if not place.is_relative_to(folder.resolve()):
            return "That path lies outside of the workspace."
        place.write_text(text, encoding="utf-8")
        return "written"

    while True:
        answer = agent.run_sync(f"{prompt}\n\n{recovery.hints(task)}".strip()).output
        attempt = recovery.attempt(task, str(answer))
        done = subprocess.run(["bash", "-c", check], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return attempt.passed()
        advice = attempt.failed(done.stdout, stderr=done.stderr, exit_code=done.returncode, command=check)
        if not advice.goes_on:
            return advice
