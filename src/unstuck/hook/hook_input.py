"""The events that an agent sends to its hook, with the forms of an answer.

Named tuples and no regular expressions, because every tool call loads this module in a new process.
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
"""The events that the hook handles, by agent."""
SHELLS = frozenset({"Bash", "bash", "shell", "exec_command", "shell_command", "run_shell_command"})
EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "replace", "write_file", "edit", "write"})
PATH_KEYS = ("file_path", "notebook_path", "filePath", "path")
COMMAND_KEYS = ("command", "cmd", "script")
EXIT = ("Exit code ", "Exit Code: ")
LONGEST = 400_000
"""Characters of an output that are read, half of them from its end."""


class HookEvent(NamedTuple):
    """An event of an agent, such as a tool call."""

    agent: str
    moment: Moment = ""
    name: str = ""
    """The event's own name, which the answer repeats."""
    session: str = ""
    cwd: str = ""
    prompt: str = ""
    """The id of the turn. A new id is a new request of the user."""
    tool: str = ""
    args: dict[str, Any] = {}  # noqa: RUF012  # never changed
    output: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    interrupted: bool = False
    """The user stopped the call."""
    original: str | None = None
    """The text of a file before an edit, if the agent sends it."""
    active: bool = False
    """The agent continues only because of a hook, so its next stop must be allowed."""
    message: str = ""
    """The last message of the agent."""

    @property
    def command(self) -> str:
        """The command line, if the tool is a shell."""
        if self.tool not in SHELLS:
            return ""
        return next((value for key in COMMAND_KEYS if isinstance(value := self.args.get(key), str)), "")

    @property
    def path(self) -> str:
        """The edited file, if the tool is an editor."""
        if self.tool not in EDITORS:
            return ""
        return next((value for key in PATH_KEYS if isinstance(value := self.args.get(key), str)), "")


def read_event(agent: str, content: Any) -> HookEvent:
    """Return an agent's event. An unknown one has no moment."""
    if not isinstance(content, dict):
        return HookEvent(agent)
    name = _text(content.get("hook_event_name"))
    moment = MOMENTS[agent].get(name, "")
    inner = _text(content.get("agent_id"))
    response, failed = content.get("tool_response"), content.get("error")
    output = _output(response) if failed is None else _text(failed)
    code, output = _exit_code(output) if moment == "failed" or agent == "gemini" else (None, output)
    if code is None:
        code = given if isinstance(given := content.get("exit_code"), int) else 1 if moment == "failed" else None
    args, fields = content.get("tool_input"), response if isinstance(response, dict) else {}
    return HookEvent(
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
        interrupted=content.get("is_interrupt") is True or fields.get("interrupted") is True,
        original=fields["originalFile"] if isinstance(fields.get("originalFile"), str) else None,
        active=content.get("stop_hook_active") is True,
        message=_text(content.get("last_assistant_message") or content.get("prompt_response")),
    )


def context_answer(event: HookEvent, text: str) -> dict[str, Any]:
    """Return the answer that adds a text to the result of a tool call."""
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def refusal_answer(event: HookEvent, text: str) -> dict[str, Any]:
    """Return the answer that refuses a tool call or a stop."""
    if event.agent == "gemini":
        return {"decision": "deny", "reason": text}
    if event.moment == "stop":
        return {"decision": "block", "reason": text}
    decision = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return {"hookSpecificOutput": {"hookEventName": event.name, **decision}}


def _output(response: Any) -> str:
    """Return the output of a tool from any agent's form of a response."""
    if isinstance(response, str):
        return response
    if not isinstance(response, dict):
        return ""
    parts = [response.get("stdout"), response.get("stderr")]
    if not any(parts):
        parts = [response.get("llmContent"), response.get("error")]
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _exit_code(output: str) -> tuple[int | None, str]:
    """Return the exit code in an output with the output, which loses the code if that was its first line."""
    for mark in EXIT:
        at = 0 if output.startswith(mark) else output.find(f"\n{mark}") + 1
        if at or output.startswith(mark):
            digits, _, rest = output[at + len(mark) :].partition("\n")
            if digits.strip().isdecimal():
                return int(digits), rest if at == 0 else output
    return None, output


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
