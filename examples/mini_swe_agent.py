"""mini-swe-agent: its environment tells ways out behind a failing command's output, and learns which of them worked."""

from typing import Any

from minisweagent.environments.local import LocalEnvironment

import unstuck
from unstuck import Recovery


class RecoveringEnvironment(LocalEnvironment):
    """A local environment that knows a way out: give it to any agent of mini-swe-agent's."""

    def __init__(self, recovery: Recovery | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.recovery = recovery or Recovery()

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run a command; behind the output of one that failed stand the likeliest ways out."""
        result: dict[str, Any] = super().execute(action, cwd, timeout=timeout)
        command, code = action.get("command", ""), result["returncode"]
        failure = unstuck.diagnose(result["output"], exit_code=code, command=command)
        if failure is not None:
            told = []
            for way in self.recovery.remedy(failure, tools=["bash"])["plans"][:2]:
                lines = "; then ".join(step["args"].get("command", step["action"]) for step in way["steps"])
                told.append(f"[way out: {way['strategy']}] {lines}")
            result["output"] = "\n".join([result["output"].rstrip("\n"), *told, ""])
        return result
