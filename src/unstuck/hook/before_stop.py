"""The check of an agent's last message before it may stop."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from unstuck.agents.claims import contradictions
from unstuck.hook.guard import ask_git, configured
from unstuck.hook.hook_input import HookEvent
from unstuck.hook.memory import Memory
from unstuck.hook.workspace_head import head_of, root_of
from unstuck.model.config import Config, HookConfig
from unstuck.model.text import one_line, quoted

DONE = re.compile(
    r"(?i)\b(?:done|completed?|finished|implemented|fixed|resolved|works now|is ready|all (?:the )?(?:tests|checks) pass\w*"
    r"|TASK_COMPLETE)\b"
)
CHANGED = re.compile(
    r"(?i)\b(?:I|I['\u2019]ve|I have|we|we have) (?:\w+ ){0,2}(?:added|implemented|fixed|created|updated|wrote|written|changed"
    r"|refactored|removed|renamed|edited|modified|replaced|moved)\b"
)
HONEST = re.compile(
    r"(?i)\b(?:tests?|checks?|builds?|it|which|that) (?:still |now )?(?:fails?|is red|are red)\b|\bstill (?:fail\w*|red|broken)\b"
    r"|\b(?:could not|couldn['\u2019]t|cannot|can['\u2019]t|unable to|not able to|did not manage to)\b"
    r"|\bnot (?:yet )?(?:done|complete|finished|fixed|working|implemented)\b|\b(?:give|gave|giving) up\b|\bblocked\b|\bI stop here\b"
)
LONGEST = 20_000


def says_done(message: str) -> bool:
    return DONE.search(message[-LONGEST:]) is not None and not admits(message)


def says_changed(message: str) -> bool:
    return CHANGED.search(message[-LONGEST:]) is not None and not admits(message)


def admits(message: str) -> bool:
    """Return whether the message reports a problem. Such a stop is not refused."""
    return HONEST.search(message[-LONGEST:]) is not None


MAX_REFUSALS = 2
"""The largest number of refused stops between two messages of the user."""
QUICK_FIRST = ("format", "lint", "types", "test", "build")
TAIL_CHARS = 1500


def objection_to_stop(event: HookEvent, memory: Memory) -> str:
    """Return why the agent must not stop yet, or an empty string."""
    if event.active or memory.refused >= MAX_REFUSALS or admits(event.message):
        return ""
    root = Path(root_of(str(Path(event.cwd or ".").absolute())))
    config = configured(root) or Config()
    if not config.hook.stop:
        return ""
    changed = memory.edited or _differs(root, memory.head)
    declared = config.hook.checks or tuple(config.checks[kind] for kind in QUICK_FIRST if kind in config.checks)  # type: ignore[index]  # its own keys
    contradiction = _contradiction(event, memory, changed=changed, checked=bool(declared))
    return contradiction or (_red(declared, root, config.hook) if changed else "")


def _contradiction(event: HookEvent, memory: Memory, *, changed: bool | None, checked: bool) -> str:
    """Return how the agent's message contradicts itself, its changes or its checks."""
    if says_done(event.message) and (denied := contradictions(event.message)):
        return f"You say that you are done, and also: {', '.join(denied)}. Do what is left, or say plainly that it is not done."
    if says_changed(event.message) and changed is False:
        return "You say that you changed something, and no file differs from before. Make the change, or say plainly that there is none."
    if memory.red and not checked and says_done(event.message):
        check, how = next(reversed(memory.red.items()))
        return f"You say that you are done, and `{check}` failed when it ran last ({how}). Run it again and make it pass, or say plainly that it fails."
    return ""


def _red(checks: tuple[str, ...], root: Path, settings: HookConfig) -> str:
    """Run the declared checks within the time limit, and return a report on the first that fails."""
    until = time.monotonic() + settings.seconds
    for command in checks:
        left = until - time.monotonic()
        code, output = run_check(command, root, left) if left > 0 else (None, "")
        if code is None:
            return ""  # no time is no verdict
        if code != 0:
            tail = quoted(output, TAIL_CHARS)
            return f"Not done yet: `{one_line(command, 200)}` fails (exit code {code}). The end of its output, a quotation:\n{tail}\nMake it pass. If it was red before you came, say so plainly."
    return ""


def run_check(command: str, root: Path, seconds: float) -> tuple[int | None, str]:
    """Run a check and return its exit code and output, or None after the time limit.

    Its child processes end with it.
    """
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
    from unstuck.model.text import shown  # noqa: PLC0415  # only for a red check
    from unstuck.redaction.redactor import redactor  # noqa: PLC0415  # as above

    return process.returncode, redactor(os.environ).text(shown(output[-100_000:].decode(errors="replace")))


def _differs(root: Path, head: str) -> bool | None:
    """Return whether anything changed since the session began, or None outside of git."""
    now = head_of(str(root))
    if not now:
        return None
    if head and now != head:
        return True
    status = ask_git(root, "status", "--porcelain")
    return None if status is None else bool(status)
