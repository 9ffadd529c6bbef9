"""What is remembered of one session of an agent, bounded for ever, and the circles that it goes in; each is told once per streak. Pure."""

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

from unstuck.hook.hook_input import Heard
from unstuck.model.text import one_line

CALLS, FAILURES, FILES, STATES, TOLD, OPEN = 12, 8, 20, 8, 50, 10
"""How many of each are remembered: enough for every streak that is looked for, and never more."""
ROW = 3
"""Identical calls in a row that are too many."""
BEATS = 5
"""Calls that bring the same result before standing still is called so."""
NAMED = 5
"""Failing tests that are remembered by name."""
WAITING = frozenset(
    {"BashOutput", "TaskOutput", "KillShell", "ScheduleWakeup", "write_stdin", "TodoWrite", "update_plan"}
)
"""Tools that are meant to be called again and again."""
FIRM = "Stop and think: say what you know for certain, what you only assume, and take a different way. If nothing is left to try, tell the person what stands in the way."


class Failed(NamedTuple):
    """A call that failed."""

    kind: str
    message: str
    """Its decisive line: what names the failure is worked out when there are several to compare."""
    tests: list[str]
    failing: int
    """How many tests fail; -1 is unknown."""
    what: str
    """The call, in a line."""


class Proposed(TypedDict):
    """Ways out that the agent was told, to see whether they work."""

    chain: str
    context: str
    tool: str
    """The program or tool that was called, for which experience counts."""
    strategies: list[list[Any]]
    """Each with its name, and its steps as command lines."""
    left: int
    """How many calls more they are waited for."""


class Memory:
    """One session; its lists are cut when it is saved."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.head: str = content.get("head", "")
        """The commit that the session began with."""
        self.prompt: str = content.get("prompt", "")
        self.edited: bool = content.get("edited", False)
        self.refused: int = content.get("refused", 0)
        """Stops that were refused since the person last said something."""
        self.nudged: str = content.get("nudged", "")
        """The streak that the agent was warned of."""
        self.calls: list[list[Any]] = content.get("calls", [])
        """Tool, digest of its arguments, digest of its result, whether it failed."""
        self.failures: list[Failed] = [Failed(*row) for row in content.get("failures", [])]
        self.states: dict[str, list[list[str]]] = content.get("states", {})
        """File → the states before and after each edit."""
        self.told: list[str] = content.get("told", [])
        """Signatures of failures about which the agent was told something."""
        self.red: dict[str, str] = content.get("red", {})
        """Check → how it failed when it ran last."""
        self.proposed: Proposed | None = content.get("proposed")

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "calls": self.calls[-CALLS:],
            "failures": self.failures[-FAILURES:],
            "states": {path: states[-STATES:] for path, states in list(self.states.items())[-FILES:]},
            "told": self.told[-TOLD:],
            "red": dict(list(self.red.items())[-OPEN:]),
        }


def digest(text: str) -> str:
    """Return a short name of a text, to compare it with the few before it."""
    raw = text.encode(errors="replace")
    return f"{zlib.crc32(raw):08x}{len(raw):x}"


def repeated(memory: Memory, heard: Heard) -> tuple[str, str] | None:
    """Say that the same call comes again and again; `memory` holds it already. Returns the streak and the words."""
    if heard.tool in WAITING or len(memory.calls) < ROW or memory.calls[-1][:2] != memory.calls[-2][:2]:
        return _no_progress(memory)
    from unstuck.policy.loops import repetition  # noqa: PLC0415  # only where there may be one

    *done, last = [(str(tool), str(arguments)) for tool, arguments, _, _ in memory.calls]
    if repetition(done, last, same=0, tool=0, row=ROW) is None:
        return _no_progress(memory)
    times = next((count for count, call in enumerate(reversed(done), 1) if call != last), len(done) + 1)
    results = {row[2] for row in memory.calls[-times:]}
    same = "with the same result every time" if len(results) == 1 else "without any change of yours in between"
    what = one_line(heard.command or heard.path or heard.tool, 120)
    words = f"This is the same {heard.tool} call (`{what}`) for the {_ordinal(times)} time in a row, {same}. Calling it again will not help."
    return f"row {last}", words


def _no_progress(memory: Memory) -> tuple[str, str] | None:
    results = [str(row[2]) for row in memory.calls if row[3]]
    failing = [row[3] for row in memory.calls[-BEATS:]]
    if len(failing) < BEATS or not all(failing) or len(set(results[-BEATS:])) > 1:
        return None
    from unstuck.policy.loops import stalled  # noqa: PLC0415  # as above

    if not stalled(results, BEATS):
        return None
    return f"still {results[-1]}", f"The last {BEATS} calls all failed with the very same output, though they differ."


def same_failure(memory: Memory) -> tuple[str, str] | None:
    """Say that the last failures are one, or do not become fewer, whatever was tried between them."""
    if len({one.kind for one in memory.failures[-ROW:]}) != 1 or len(memory.failures) < ROW:
        return None
    from unstuck.diagnosis.evidence import Evidence  # noqa: PLC0415  # as above
    from unstuck.diagnosis.judging import Diagnosis  # noqa: PLC0415  # as above
    from unstuck.model.failure import Kind  # noqa: PLC0415  # as above
    from unstuck.policy.loops import Footprint, Strength, signals  # noqa: PLC0415  # only where failures may be one

    prints = [
        Footprint(
            attempt=number,
            signature=Diagnosis(
                kind=Kind(one.kind), confidence=1.0, tests=tuple(one.tests), evidence=Evidence(stdout=one.message)
            ).signature,
            failing=one.failing if one.failing >= 0 else None,
        )
        for number, one in enumerate(memory.failures, 1)
    ]
    told = ("same_failure", "not_converging")
    strong = [one for one in signals(prints[-1], prints[:-1]) if one.strength >= Strength.STRONG and one.sort in told]
    if not strong:
        return None
    signal = strong[0]
    tried = dict.fromkeys(one.what for one in memory.failures[-len(signal.attempts) - 1 :])
    listed = "; ".join(f"`{what}`" for what in tried)
    how = "in exactly the same way" if signal.sort == "same_failure" else "with no fewer failing tests"
    words = f"It failed {how} {len(signal.attempts) + 1} times in a row. Tried: {listed}. What you change between them does not touch the cause."
    return f"{signal.sort} {prints[-1].signature}", words


def undone(memory: Memory, path: str) -> tuple[str, str] | None:
    """Say that an edit brought a file back to what it was before an earlier edit; `memory` holds it already."""
    states = memory.states.get(path, [])
    if len(states) < 2:  # noqa: PLR2004  # there and back
        return None
    from unstuck.policy.loops import Footprint, signals  # noqa: PLC0415  # only after a second edit of a file

    prints = [Footprint(attempt=number, start=start, tree=tree) for number, (start, tree) in enumerate(states, 1)]
    found = [one for one in signals(prints[-1], prints[:-1]) if one.sort in ("reverted", "same_tree")]
    if not found:
        return None
    words = (
        f"This edit brings {one_line(path, 200)} back to what it was before an earlier edit of yours (A → B → A). "
        "Both ways were tried now: neither is the answer by itself."
    )
    return f"undone {path} {states[-1][1]}", words


def failure_of(kind: str, message: str, tests: Sequence[str], heard: Heard) -> Failed:
    what = one_line(heard.command or f"{heard.tool} {heard.path}", 100)
    named = [one_line(test, 120) for test in tests[:NAMED]]
    return Failed(kind, one_line(message, 200), named, len(tests) or -1, what)


def nudge(memory: Memory, found: tuple[str, str] | None) -> str:
    """Return the words if this streak was not told of yet; a streak that ended may be told of again."""
    if found is None:
        return ""
    streak, words = found
    if streak == memory.nudged:
        return ""
    memory.nudged = streak
    return f"{words} {FIRM}"


def _ordinal(number: int) -> str:
    return {3: "third", 4: "fourth", 5: "fifth"}.get(number, f"{number}th")
