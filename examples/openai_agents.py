"""OpenAI Agents SDK: recovery around the runner, and ways out in the tool itself."""

import subprocess
from pathlib import Path

import unstuck
from agents import Agent, Model, RunConfig, Runner, function_tool
from unstuck import Advice, Recovery


def solve(model: Model, task: str, prompt: str, check: str, folder: Path) -> Advice:
    """Let an agent with a shell work until the check passes or a person is needed."""
    recovery = Recovery()

    @function_tool
    def run(command: str) -> str:
        """Run a shell command."""
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
        failure = unstuck.diagnose(done.stdout, stderr=done.stderr, exit_code=done.returncode, command=command)
        ways = [way.steps[0].step.action for way in recovery.remedy(failure, tools=["run"]).plans]
        return f"{done.stdout}{done.stderr}" + "".join(f"\nWay out: {way}" for way in ways)

    agent = Agent(name="worker", instructions="Do the task with your shell.", tools=[run], model=model)
    while True:
        asked = f"{prompt}\n\n{recovery.hints(task)}".strip()
        answer = Runner.run_sync(agent, asked, run_config=RunConfig(tracing_disabled=True)).final_output
        attempt = recovery.attempt(task, str(answer))
        done = subprocess.run(["bash", "-c", check], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return attempt.passed()
        advice = attempt.failed(done.stdout, stderr=done.stderr, exit_code=done.returncode, command=check)
        if not advice.goes_on:
            return advice
