"""What is known while a session's output is read, and what it comes to at the end.

Law: whatever the lines hold, reading never fails and always ends in one of the contract's end reasons.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from unstuck.agents.claims import asks, statement
from unstuck.agents.faults import later
from unstuck.agents.transcript import Claim, End, Fault, ToolCall, Transcript, Usage
from unstuck.tell import one_line

SAID_CHARS = 64_000
MESSAGE_CHARS = 4_000
INPUT_CHARS = 1_000
MOST_TOOLS = 10_000
MOST_DENIED, DENIED_CHARS = 10, 120
BY_SIGNAL = {124, 130, 137, 143}
"""Exit codes of programs that were ended by a signal, or by `timeout`."""


@dataclass(slots=True)
class Reading:
    """The facts so far. Readers call its verbs in the order of the lines."""

    session: str = ""
    cost_usd: float | None = None
    usage: Usage | None = None
    message: str = ""
    said: str = ""
    tools: dict[str, ToolCall] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)
    """What it was not allowed to do, by the call."""
    refused: bool = False
    fault: Fault | None = None
    retrying: bool = False
    """The agent tries again, and has not said why."""
    finished: Literal["", "ok", "error"] = ""
    reason: End | None = None
    """The typed reason that the agent gave for its end."""
    events: int = 0
    """Lines that were understood."""
    in_words: bool = False
    """The last thing that happened were words, and more of the same message may follow."""
    at: float | None = None
    """The time of the last line, where lines have one."""

    def say(self, text: str) -> None:
        """Take in what the agent said: it got an answer, so an error before it is over."""
        if not text.strip():
            return
        self.message = text[-MESSAGE_CHARS:]
        self.said = f"{self.said}\n{text}"[-SAID_CHARS:]
        self.in_words = True
        self.retrying = self.refused = False
        if self.fault is not None and self.fault.end != "context_exhausted":
            self.fault = None  # words after an overflow may be the summary that did not help

    def call(self, name: str, given: str = "", key: str = "") -> None:
        """Take in a tool call: whatever went wrong before it is over."""
        self.fault, self.retrying, self.refused, self.finished, self.reason = None, False, False, "", None
        self.in_words = False
        if len(self.tools) < MOST_TOOLS:
            self.tools[key or f"#{len(self.tools)}"] = ToolCall(name=name, input=one_line(given, INPUT_CHARS))

    def returned(self, key: str, *, ok: bool | None, exit_code: int | None = None) -> None:
        """Take in how a tool call came out."""
        call = self.tools.get(key)
        if call is not None:
            well = exit_code == 0 if exit_code is not None and ok is not False else bool(ok)
            self.tools[key] = ToolCall(name=call.name, input=call.input, exit_code=exit_code, ok=well)

    def deny(self, key: str, name: str = "", given: str = "") -> None:
        """Take in that a tool call was not allowed."""
        call = self.tools.get(key)
        words = f"{call.name} {call.input}" if call is not None else f"{name} {given}"
        self.denied[key] = one_line(words, DENIED_CHARS) or "a tool"

    def fail(self, found: Fault | None) -> None:
        """Take in an error; it is over as soon as the agent goes on."""
        if found is not None:
            self.fault = later(self.fault, found)

    def finish(self, *, ok: bool, reason: End | None = None) -> None:
        """Take in the agent's own last word."""
        self.finished, self.reason = ("ok" if ok else "error"), reason
        if ok:
            self.fault, self.retrying = None, False

    def count(self, given: object, received: object) -> None:
        """Take in the tokens of the whole session."""
        if isinstance(given, int) and isinstance(received, int):
            self.usage = Usage(input_tokens=given, output_tokens=received)

    def add(self, given: object, received: object, cost: object = None) -> None:
        """Take in the tokens, and the cost, of one more call of the model."""
        if isinstance(given, int) and isinstance(received, int):
            before = self.usage or Usage(input_tokens=0, output_tokens=0)
            self.count(before.input_tokens + given, before.output_tokens + received)
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self.cost_usd = (self.cost_usd or 0.0) + cost

    @property
    def hanging(self) -> bool:
        """Whether the last tool call never returned."""
        return bool(self.tools) and next(reversed(self.tools.values())).ok is None


def conclude(
    reading: Reading, code: int | None, aside: Fault | None, meanings: Mapping[int, End], *, noise: bool
) -> Transcript:
    """Say why the session ended. `code`: its exit code, negative for a signal. `aside`: the last error on stderr."""
    said = statement(reading.said)
    end = _end(reading, code, aside, meanings, noise=noise)
    claim: Claim = "none"
    if said.claim == "failed":
        claim = "failed"
        end = "failed_claimed" if end in ("done_claimed", "no_work") else end
    elif end == "done_claimed" or (end == "permission_denied" and reading.finished == "ok"):
        claim = "none" if said.denied else "done"
    if end in ("done_claimed", "permission_denied") and (asks(reading.message) or _asked_by_tool(reading)):
        end = "asks"
    told = next((one for one in (reading.fault, aside) if one is not None and one.end == end), None)
    resets = max(
        (one.resets_at for one in (reading.fault, aside) if one and one.end == end and one.resets_at), default=None
    )
    return Transcript(
        end=end,
        claim=claim,
        session=reading.session,
        message=told.message if told is not None else reading.message,
        approach=said.approach,
        cost_usd=reading.cost_usd,
        usage=reading.usage,
        resets_at=resets,
        tools=tuple(reading.tools.values()),
        denied=tuple(dict.fromkeys(reading.denied.values()))[:MOST_DENIED],
        lost=end == "bad_request" and told is not None and _lost(told.message),
    )


def _end(reading: Reading, code: int | None, aside: Fault | None, meanings: Mapping[int, End], *, noise: bool) -> End:
    killed = code is not None and (code < 0 or code in BY_SIGNAL)
    if reading.finished == "ok" and reading.fault is None and (killed or not code):
        return reading.reason or _well(reading)
    if reading.finished == "error" and reading.reason is not None:
        return reading.reason
    if reading.fault is not None:
        return reading.fault.end
    if aside is not None and (code or reading.retrying or not reading.events) and not (killed and reading.hanging):
        return aside.end
    if reading.retrying:
        return "network"
    if killed:
        return "tool_hang" if reading.hanging else "killed"
    if code is not None and code in meanings:
        return meanings[code]
    if code or reading.finished == "error":
        return "crashed"
    if reading.events:
        return "crashed"  # it began and never said that it ended
    return "unreadable" if noise else "no_work"


def _well(reading: Reading) -> End:
    if reading.denied:
        return "permission_denied"
    if reading.refused:
        return "refused"
    return "done_claimed" if reading.message or reading.tools else "no_work"


ASKING = frozenset({"AskUserQuestion", "ask_user", "ask_followup_question", "ask_question", "request_user_input"})
"""Tools by which an agent asks a person."""


def _asked_by_tool(reading: Reading) -> bool:
    return bool(reading.tools) and next(reversed(reading.tools.values())).name in ASKING


def _lost(message: str) -> bool:
    text = message.lower()
    return any(words in text for words in ("no conversation found", "no rollout found", "session not found")) or (
        "session" in text and "not found" in text
    )
