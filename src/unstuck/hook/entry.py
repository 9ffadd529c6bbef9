"""The hook that an agent starts as a new process for each event.

An error of the hook never stops the agent: the exit code is 0, and a line goes to the log.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from unstuck.hook.hook_input import MOMENTS, HookEvent, context_answer, read_event, refusal_answer

MAX_INPUT_BYTES = 1 << 26
USAGE = 64
RISKY_PARTS = ("git", "rm", "find", "ch", "dd", "mkfs", "shred", "wipefs", "eval", "sh ")
"""Every command line that the guard could refuse holds one of these."""


def answer_event(arguments: Sequence[str]) -> int:
    """Answer the agent's event on stdin, and return the exit code."""
    if len(arguments) != 1 or arguments[0] not in MOMENTS:
        sys.stderr.write(f"unstuck: name the agent whose hook this is: {', '.join(MOMENTS)}.\n")
        return USAGE
    try:
        event = read_event(arguments[0], json.loads(sys.stdin.buffer.read(MAX_INPUT_BYTES)))
        if event.moment and (answer := respond(event)):
            sys.stdout.write(json.dumps(answer))
            sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  # a bug of the hook must not stop the agent
        _note(error)
    return 0


def respond(event: HookEvent) -> dict[str, Any]:
    """Return the answer to an event, which is empty for most."""
    if event.cwd and not os.path.isdir(event.cwd):  # noqa: PTH112  # pathlib is not loaded, and cannot say it of every text
        event = event._replace(cwd=os.getcwd())  # noqa: PTH109  # as above
    if event.moment == "before":
        return _before(event)
    from unstuck.hook.memory import remembered  # noqa: PLC0415  # a refused call needs none

    with remembered(event.agent, event.session) as memory:
        if not memory.head:
            from unstuck.hook.workspace_head import head_of  # noqa: PLC0415  # once in a session

            memory.head = head_of(event.cwd)
        if event.moment == "prompt" or (event.prompt and event.prompt != memory.prompt):
            memory.refused, memory.prompt = 0, event.prompt
        if event.moment == "prompt":
            return {}
        if event.moment == "stop":
            from unstuck.hook.before_stop import objection_to_stop  # noqa: PLC0415  # only at the end

            if words := objection_to_stop(event, memory):
                memory.refused += 1
                return refusal_answer(event, f"unstuck: {words}")
            return {}
        from unstuck.hook.after_call import advice_after_call  # noqa: PLC0415  # only after a call

        words = advice_after_call(event, memory)
        return context_answer(event, words) if words else {}


def _before(event: HookEvent) -> dict[str, Any]:
    if not any(word in event.command for word in RISKY_PARTS):
        from unstuck.hook.workspace_head import has_hook_settings, root_of  # noqa: PLC0415  # only for edits and commands

        if not ((event.path or event.command) and has_hook_settings(root_of(event.cwd))):
            return {}
    from unstuck.hook.guard import objection_to_call  # noqa: PLC0415  # most calls need no closer look

    words = objection_to_call(event)
    return refusal_answer(event, f"unstuck: {words}") if words else {}


def _note(error: Exception) -> None:
    try:
        from unstuck.hook.memory import log  # noqa: PLC0415  # as above
        from unstuck.redaction.redactor import redactor  # noqa: PLC0415  # only for a bug

        trace, where = error.__traceback__, ""
        while trace is not None:
            where, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
        log(redactor(os.environ).text(f"{type(error).__name__}: {error} at {where}".replace("\n", " ")))
    except Exception:  # noqa: BLE001, S110  # no place for a log is no reason to stop the agent either
        pass
