"""Edge: A coding agent as its manifest describes it: called without a terminal, and read afterwards."""

import json
import os
from dataclasses import dataclass, replace

from unstuck.agents.command_agent import filled
from unstuck.agents.manifests import how_to_log_in, permission
from unstuck.agents.readers import read_files
from unstuck.agents.streams.stream import gist
from unstuck.agents.transcript import ToolCall
from unstuck.config import AgentConfig
from unstuck.journal import KILLED_BY_US, Ended, Outcome
from unstuck.ports import Assignment, Command, Dialogue

LONGEST_ARGUMENT = 120_000
"""Bytes; the kernel takes a little more in one argument."""
FAILED_CALLS = 3
INPUT_CHARS = 200
OUR_SIGNAL = -9
RESULT = b'"type":"result"'
"""The last word of a session that takes messages; inside of any text its quotes would be escaped."""


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """One known coding agent."""

    name: str
    manifest: AgentConfig

    @property
    def reports_cost(self) -> bool:
        return "cost" in self.manifest.capabilities

    @property
    def login(self) -> str:
        return how_to_log_in(self.manifest)

    def command(self, assignment: Assignment) -> Command:
        """Call it with the brief, in the session to continue if there is one."""
        manifest, brief = self.manifest, assignment.brief
        if manifest.prompt and len(brief.encode(errors="replace")) > LONGEST_ARGUMENT:
            brief = f"Read the file {assignment.brief_file} and do what it says."
        places = {"{brief}": brief, "{session}": assignment.resume, "{worktree}": str(assignment.worktree)}
        parts = [*manifest.arguments, *permission(manifest)]
        parts += manifest.resume if assignment.resume else ()
        parts += manifest.steer or manifest.prompt
        return Command(
            argv=(manifest.program, *(filled(part, places) for part in parts)),
            cwd=assignment.worktree,
            log=assignment.log,
            env={key: value for key, value in manifest.environment.items() if key not in os.environ},
            writes=manifest.writes,
            stdin=phrase(brief) if manifest.steer else b"" if manifest.prompt else brief.encode(errors="replace"),
            dialogue=Dialogue(last_word=RESULT, phrase=phrase) if manifest.steer else None,
            quiet=manifest.quiet,
            gist=gist,
            transcript=assignment.transcript,
        )

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        """Read the session's transcript; how the process ended is only one of the facts."""
        if ended.ending == "not_started":
            return Outcome(ended=ended)
        stderr = assignment.transcript.with_name(f"{assignment.transcript.name}.err")
        found = read_files(
            self.manifest.output, assignment.transcript, stderr, code=_code(ended), meanings=self.manifest.exit_codes
        )
        return Outcome(
            ended=ended,
            claim=found.claim,
            approach=found.approach,
            end=found.end,
            session=(found.session or assignment.resume) if self.manifest.resume and not found.lost else "",
            cost_usd=found.cost_usd,
            usage=found.usage,
            resets_at=found.resets_at,
            message=found.message,
            failed=tuple(_short(call) for call in found.tools if call.ok is False)[-FAILED_CALLS:],
            lost=found.lost,
            denied=found.denied,
        )

    @property
    def permission(self) -> tuple[str, ...]:
        """The flags with which it works without asking: a person should know them."""
        return permission(self.manifest)


def phrase(text: str) -> bytes:
    """Write a message as Claude Code reads it on stdin."""
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "user", "message": message}).encode() + b"\n"


def _code(ended: Ended) -> int | None:
    if ended.ending in KILLED_BY_US or ended.ending == "supervisor_died":
        return OUR_SIGNAL
    return -ended.signal if ended.signal else ended.exit_code


def _short(call: ToolCall) -> ToolCall:
    return replace(call, input=call.input[:INPUT_CHARS])
