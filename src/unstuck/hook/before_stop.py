"""Edge: when an agent wants to stop: hold what it says against what is there, once, and then let it go."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from unstuck.agents.claims import contradictions
from unstuck.hook.guard import ask_git, configured
from unstuck.hook.hook_input import Heard
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
    """Whether it says that something is not right: an honest stop is not refused."""
    return HONEST.search(message[-LONGEST:]) is not None


MOST_REFUSALS = 2
"""Of stops since the person last said something, whatever the agent tells of hooks being active."""
QUICK_FIRST = ("format", "lint", "types", "test", "build")
TAIL_CHARS = 1500


def objection(heard: Heard, memory: Memory) -> str:
    """Say why the agent is not done; nothing if it may stop."""
    if heard.active or memory.refused >= MOST_REFUSALS or admits(heard.message):
        return ""
    root = Path(root_of(str(Path(heard.cwd or ".").absolute())))
    config = configured(root) or Config()
    if not config.hook.stop:
        return ""
    changed = memory.edited or _differs(root, memory.head)
    declared = config.hook.checks or tuple(config.checks[kind] for kind in QUICK_FIRST if kind in config.checks)  # type: ignore[index]  # its own keys
    said = _said(heard, memory, changed=changed, checked=bool(declared))
    return said or (_red(declared, root, config.hook) if changed else "")


def _said(heard: Heard, memory: Memory, *, changed: bool | None, checked: bool) -> str:
    """Point at what its own words and calls contradict."""
    if says_done(heard.message) and (denied := contradictions(heard.message)):
        return f"You say that you are done, and also: {', '.join(denied)}. Do what is left, or say plainly that it is not done."
    if says_changed(heard.message) and changed is False:
        return "You say that you changed something, and no file differs from before. Make the change, or say plainly that there is none."
    if memory.red and not checked and says_done(heard.message):
        check, how = next(reversed(memory.red.items()))
        return f"You say that you are done, and `{check}` failed when it ran last ({how}). Run it again and make it pass, or say plainly that it fails."
    return ""


def _red(checks: tuple[str, ...], root: Path, settings: HookConfig) -> str:
    """Run the declared checks, the quick ones first, as far as the time goes; tell of the first that fails."""
    until = time.monotonic() + settings.seconds
    for command in checks:
        left = until - time.monotonic()
        code, output = run_check(command, root, left) if left > 0 else (None, "")
        if code is None:
            return ""  # no time is no verdict
        if code != 0:
            told = quoted(output, TAIL_CHARS)
            return f"Not done yet: `{one_line(command, 200)}` fails (exit code {code}). The end of its output, a quotation:\n{told}\nMake it pass. If it was red before you came, say so plainly."
    return ""


def run_check(command: str, root: Path, seconds: float) -> tuple[int | None, str]:
    """Run one check to its end or out of time; what it started ends with it."""
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
    """Whether anything differs from when the session began; None outside of git."""
    now = head_of(str(root))
    if not now:
        return None
    if head and now != head:
        return True
    said = ask_git(root, "status", "--porcelain")
    return None if said is None else bool(said)
