"""Edge: one event in, one answer out, in a fresh process. A fault of ours never stops the agent: exit 0 and a log line."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from unstuck.hook.hook_input import MOMENTS, Heard, context, hear, refusal

LARGEST = 1 << 26
USAGE = 64
RISKY = ("git", "rm", "find", "ch", "dd", "mkfs", "shred", "wipefs", "eval", "sh ")
"""One of these is in every command line that `guard` could refuse."""


def answer_event(arguments: Sequence[str]) -> int:
    """Read an agent's event from stdin and answer it on stdout."""
    if len(arguments) != 1 or arguments[0] not in MOMENTS:
        sys.stderr.write(f"unstuck: name the agent whose hook this is: {', '.join(MOMENTS)}.\n")
        return USAGE
    try:
        heard = hear(arguments[0], json.loads(sys.stdin.buffer.read(LARGEST)))
        if heard.moment and (answer := respond(heard)):
            sys.stdout.write(json.dumps(answer))
            sys.stdout.flush()
    except Exception as error:  # noqa: BLE001  # the agent's work is worth more than ours
        _note(error)
    return 0


def respond(heard: Heard) -> dict[str, Any]:
    """Answer one event; most need no answer."""
    if heard.cwd and not os.path.isdir(heard.cwd):  # noqa: PTH112  # pathlib is not loaded, and cannot say it of every text
        heard = heard._replace(cwd=os.getcwd())  # noqa: PTH109  # as above
    if heard.moment == "before":
        return _before(heard)
    from unstuck.hook.memory import remembered  # noqa: PLC0415  # a refused call needs none

    with remembered(heard.agent, heard.session) as memory:
        if not memory.head:
            from unstuck.hook.workspace_head import head_of  # noqa: PLC0415  # once in a session

            memory.head = head_of(heard.cwd)
        if heard.moment == "prompt" or (heard.prompt and heard.prompt != memory.prompt):
            memory.refused, memory.prompt = 0, heard.prompt
        if heard.moment == "prompt":
            return {}
        if heard.moment == "stop":
            from unstuck.hook.before_stop import objection  # noqa: PLC0415  # only at the end

            if words := objection(heard, memory):
                memory.refused += 1
                return refusal(heard, f"unstuck: {words}")
            return {}
        from unstuck.hook.after_call import tell  # noqa: PLC0415  # only after a call

        words = tell(heard, memory)
        return context(heard, words) if words else {}


def _before(heard: Heard) -> dict[str, Any]:
    if not any(word in heard.command for word in RISKY):
        from unstuck.hook.workspace_head import concerned, root_of  # noqa: PLC0415  # only for edits and commands

        if not ((heard.path or heard.command) and concerned(root_of(heard.cwd))):
            return {}
    from unstuck.hook.guard import objection  # noqa: PLC0415  # most calls need no closer look

    words = objection(heard)
    return refusal(heard, f"unstuck: {words}") if words else {}


def _note(error: Exception) -> None:
    try:
        from unstuck.hook.memory import log  # noqa: PLC0415  # as above
        from unstuck.redaction.redactor import redactor  # noqa: PLC0415  # only for a fault of ours

        trace, where = error.__traceback__, ""
        while trace is not None:
            where, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
        log(redactor(os.environ).text(f"{type(error).__name__}: {error} at {where}".replace("\n", " ")))
    except Exception:  # noqa: BLE001, S110  # no place for a log is no reason to stop the agent either
        pass
