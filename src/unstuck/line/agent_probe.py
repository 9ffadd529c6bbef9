"""Edge: Find out whether an agent works at all, when a session of it ended at once and without work.

An unknown flag or a broken installation meets every task alike: it is one fault, and it is found before a second task
pays for it.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from unstuck.diagnosis import Failure, Kind
from unstuck.journal import Outcome
from unstuck.orders import SessionDone
from unstuck.ports import Command, TimeLimits
from unstuck.tell import one_line

AT_ONCE_SECONDS = 15.0
"""A model that was asked anything has not answered by then."""
SILENT_ENDS = frozenset({"", "crashed", "no_work", "unreadable", "bad_request"})
"""Ends that are no word of a provider."""
PROBE_LIMITS = TimeLimits(wall_clock=120.0)
VERSION_SECONDS = 20.0
PROBE = "probe"
"""The task that a trivial session is given."""
BRIEF = "This only tries whether you can be started. Change nothing, run nothing, and answer with the one word: ready\n"
ERROR = re.compile(
    r"(?i)error|unknown|unrecogni[sz]ed|unexpected|invalid|not found|no such|cannot|can't|denied|failed|usage"
)
REFUSED = re.compile(
    r"(?im)^\W{0,4}(?:usage: \S+ [\[<-]|(?:\S{1,40}: )?error: option\b|"
    r"(?:\S{1,40}: )?(?:error: )?(?:unknown|unrecogni[sz]ed|invalid|unexpected|missing) (?:option|flag|argument|(?:sub)?command))"
)
"""How a program says that it was called wrongly; some end well after it."""
WORDS_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a lifeless session turned out to mean: the agent's fault, one that another task met first, or nothing."""

    failure: Failure | None = None
    elsewhere: bool = False


@dataclass(slots=True)
class Probes:
    """What was found out about the agents of one run; one task at a time finds out, and the others learn from it."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _broken: dict[str, str] = field(default_factory=dict)
    """Who found out that an agent is broken."""
    _sound: set[tuple[str, str]] = field(default_factory=set)

    def found(self, task: str, agent: str, stands: Callable[[str], bool], look: Callable[[], Failure | None]) -> Found:
        """Look whether the agent is broken, unless that is known. `stands`: what that task found out still holds."""
        with self._lock:
            finder = self._broken.get(agent)
            if finder is not None and finder != task and stands(finder):
                return Found(elsewhere=True)
            if (agent, task) in self._sound:
                return Found()
            failure = look()
            if failure is None:
                self._sound.add((agent, task))
            else:
                self._broken[agent] = task
            return Found(failure=failure)


def lifeless(outcome: Outcome) -> bool:
    """Whether a session failed at once, and nothing in it shows that a model was reached."""
    ended = outcome.ended
    refused = REFUSED.search((outcome.message or ended.tail)[-4_000:]) is not None
    failed = (ended.ending == "exited" and (refused or not ended.ok)) or outcome.end == "no_work"
    reached = bool(outcome.cost_usd or outcome.failed or (outcome.usage and outcome.usage.output_tokens))
    silent = outcome.end in SILENT_ENDS and not outcome.lost and not reached
    return failed and silent and ended.seconds < AT_ONCE_SECONDS


def own_words(outcome: Outcome) -> str:
    """Return what the agent says about its end: the lines that speak of an error, else the last ones."""
    lines = [line.strip() for line in (outcome.message or outcome.ended.tail).splitlines() if line.strip()]
    telling = [line for line in lines if ERROR.search(line)] or lines[-2:]
    return one_line(" ".join(telling[:2]), WORDS_CHARS)


def asks_version(command: Command) -> Command:
    """Return the command that asks an agent's program for its version."""
    return replace(
        command,
        argv=(command.argv[0], "--version"),
        stdin=b"",
        dialogue=None,
        transcript=None,
        limits=TimeLimits(wall_clock=VERSION_SECONDS),
    )


def cannot_work(agent: str, outcome: Outcome, probed: SessionDone) -> Failure | None:
    """Return the fault if the agent could not even say one word."""
    answer = probed.outcome
    if answer.ended.ending != "not_started" and not lifeless(answer):
        return None
    told = own_words(outcome) or own_words(answer) or "nothing"
    starts = (
        "its program starts (`--version` works)" if probed.version else "its program does not answer `--version` either"
    )
    return Failure(
        kind=Kind.AGENT_MISSING,
        summary=(
            f"The agent {one_line(agent, 80)} cannot work: it ended at once with exit code {outcome.ended.exit_code}, "
            f"and so did a session that only asks for one word; {starts}. It says: {told}"
        ),
        detail=outcome.ended.tail,
    )
