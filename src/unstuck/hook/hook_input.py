"""What an agent tells its hook, read from its own words, and how it wants to be answered.

Named tuples and no regular expressions: this is loaded in a fresh process for every call of a tool.
"""

from typing import Any, Literal, NamedTuple

Moment = Literal["before", "after", "failed", "stop", "prompt", ""]

MOMENTS: dict[str, dict[str, Moment]] = {
    "claude": {
        "PreToolUse": "before",
        "PostToolUse": "after",
        "PostToolUseFailure": "failed",
        "Stop": "stop",
        "SubagentStop": "stop",
        "UserPromptSubmit": "prompt",
    },
    "codex": {"PreToolUse": "before", "PostToolUse": "after", "Stop": "stop", "UserPromptSubmit": "prompt"},
    "opencode": {"PreToolUse": "before", "PostToolUse": "after"},
    "gemini": {"BeforeTool": "before", "AfterTool": "after", "AfterAgent": "stop", "BeforeAgent": "prompt"},
}
"""Agent → the events that we listen to."""
SHELLS = frozenset({"Bash", "bash", "shell", "exec_command", "shell_command", "run_shell_command"})
EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "replace", "write_file", "edit", "write"})
PATH_KEYS = ("file_path", "notebook_path", "filePath", "path")
COMMAND_KEYS = ("command", "cmd", "script")
EXIT = ("Exit code ", "Exit Code: ")
LONGEST = 400_000
"""Characters of an output that are looked at: its two ends."""


class Heard(NamedTuple):
    """One event."""

    agent: str
    moment: Moment = ""
    name: str = ""
    """The event's own name, which the answer repeats."""
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    """The turn of the conversation: another one is a new request of the person's."""
    tool: str = ""
    args: dict[str, Any] = {}  # noqa: RUF012  # never changed
    output: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    interrupted: bool = False
    """A person stopped the call."""
    original: str | None = None
    """A file's text before an edit, where the agent tells."""
    active: bool = False
    """It goes on only because a hook made it: it must be let go now."""
    message: str = ""
    """What it said last."""

    @property
    def command(self) -> str:
        """The command line, where the tool is a shell."""
        if self.tool not in SHELLS:
            return ""
        return next((value for key in COMMAND_KEYS if isinstance(value := self.args.get(key), str)), "")

    @property
    def path(self) -> str:
        """The file that is edited, where the tool edits one."""
        if self.tool not in EDITORS:
            return ""
        return next((value for key in PATH_KEYS if isinstance(value := self.args.get(key), str)), "")


def hear(agent: str, content: Any) -> Heard:
    """Read an event; one that we do not know has no moment."""
    if not isinstance(content, dict):
        return Heard(agent)
    name = _text(content.get("hook_event_name"))
    moment = MOMENTS[agent].get(name, "")
    inner = _text(content.get("agent_id"))
    response, failed = content.get("tool_response"), content.get("error")
    output = _output(response) if failed is None else _text(failed)
    code, output = _exit_code(output) if moment == "failed" or agent == "gemini" else (None, output)
    if code is None:
        code = given if isinstance(given := content.get("exit_code"), int) else 1 if moment == "failed" else None
    args, told = content.get("tool_input"), response if isinstance(response, dict) else {}
    return Heard(
        agent=agent,
        moment=moment,
        name=name,
        session=f"{_text(content.get('session_id'))}/{inner}",
        cwd=_text(content.get("cwd")),
        prompt=_text(content.get("prompt_id") or content.get("turn_id")),
        tool=_text(content.get("tool_name")),
        args=args if isinstance(args, dict) else {},
        output=output if len(output) <= LONGEST else f"{output[: LONGEST // 2]}\n{output[-LONGEST // 2 :]}",
        exit_code=code,
        timed_out="Command timed out after" in output[:200] if moment == "failed" else False,
        interrupted=content.get("is_interrupt") is True or told.get("interrupted") is True,
        original=told["originalFile"] if isinstance(told.get("originalFile"), str) else None,
        active=content.get("stop_hook_active") is True,
        message=_text(content.get("last_assistant_message") or content.get("prompt_response")),
    )


def context(heard: Heard, text: str) -> dict[str, Any]:
    """Return the answer that tells the agent something beside its tool's result."""
    return {"hookSpecificOutput": {"hookEventName": heard.name, "additionalContext": text}}


def refusal(heard: Heard, text: str) -> dict[str, Any]:
    """Return the answer that forbids what the agent is about to do: a call, or to stop."""
    if heard.agent == "gemini":
        return {"decision": "deny", "reason": text}
    if heard.moment == "stop":
        return {"decision": "block", "reason": text}
    decision = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return {"hookSpecificOutput": {"hookEventName": heard.name, **decision}}


def _output(response: Any) -> str:
    """Return what a tool printed, in whichever shape the agent keeps it."""
    if isinstance(response, str):
        return response
    if not isinstance(response, dict):
        return ""
    parts = [response.get("stdout"), response.get("stderr")]
    if not any(parts):
        parts = [response.get("llmContent"), response.get("error")]
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _exit_code(output: str) -> tuple[int | None, str]:
    """Take the exit code off the top of a failed call's output, or find it where Gemini puts it."""
    for mark in EXIT:
        at = 0 if output.startswith(mark) else output.find(f"\n{mark}") + 1
        if at or output.startswith(mark):
            digits, _, rest = output[at + len(mark) :].partition("\n")
            if digits.strip().isdecimal():
                return int(digits), rest if at == 0 else output
    return None, output


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
