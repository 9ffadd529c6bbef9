"""Every way in which a session ends, as a table: what the model does, and what must come of the task."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.conformance.turns import FOR_EVER, Cut, Fault, Refuse, Run, Say, Stall, Turn

WRITE, DONE = Run("echo hello > greeting.txt"), Say("I wrote greeting.txt. The task is done.")
DRAFT = Run("echo a first thought > draft.txt")
WORK = (WRITE, DONE)
GIVE_UP = Say("nosuchtool is not installed. I stop here.")
LEAVE_AND_DIE = Run("setsid tail -f /dev/null > /dev/null 2>&1 & kill -KILL $PPID")
WAIT_FOR_EVER = Run("setsid tail -f /dev/null")
QUOTA = {"retry-after": "3600", "anthropic-ratelimit-unified-reset": "{reset}"}
RESETS = "Claude AI usage limit reached|{reset}"

TWO_TURNS = """
[agents.claude]
arguments = ["-p", "--output-format", "stream-json", "--verbose", "--max-turns", "2"]
"""

PATIENCE = 90
"""Seconds that an agent may be silent: nobody waits for them where all goes well, and machines can be busy."""

LANDED, STUCK = 0, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must come of the task."""

    kinds: tuple[str, ...] = ()
    """How its sessions failed, in order; the same again is named once, since a fault that lasts is met until it ends."""
    attempts: int = 1
    """The faults of providers and machines open no new one."""
    exit: int = LANDED
    heard: str = ""
    """What the conversation held when the model was asked last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    turns: tuple[Turn, ...]
    window: int | None = None
    """Tool results that the model's context can hold."""
    silence: int = PATIENCE
    settings: str = ""
    """Lines of unstuck.toml."""
    only: tuple[str, ...] = ()
    """The agents that have such a thing; none named is all."""
    expected: Expected
    unlike: Mapping[str, Expected] = field(default_factory=dict)
    """Agents that deal with it by themselves, or in another way."""

    def of(self, agent: str) -> Expected:
        return self.unlike.get(agent, self.expected)


AT_ONCE = Expected()
AGAIN = Expected(kinds=("check_failed",), attempts=2)

SCENARIOS: Mapping[str, Scenario] = {
    "success": Scenario(turns=WORK, expected=AT_ONCE),
    "false done": Scenario(turns=(DONE, *WORK), expected=AGAIN),
    "failing tools": Scenario(
        turns=(Run("nosuchtool --version"), Run("exit 3"), *WORK),
        expected=Expected(heard="nosuchtool: command not found"),
    ),
    "failing tool, gives up": Scenario(turns=(Run("nosuchtool --version"), GIVE_UP, *WORK), expected=AGAIN),
    "429 short": Scenario(
        turns=(DRAFT, Fault(trouble="rate_limit", lasts=3, headers={"retry-after": "1"}), *WORK),
        expected=Expected(kinds=("rate_limited",), heard="draft.txt"),
    ),
    "429 long": Scenario(
        turns=(DRAFT, Fault(trouble="quota", lasts=6, headers=QUOTA, message=RESETS), *WORK),
        expected=Expected(kinds=("rate_limited",), heard="draft.txt"),
    ),
    "529": Scenario(
        turns=(DRAFT, Fault(trouble="overloaded", lasts=3), *WORK),
        expected=Expected(kinds=("provider_overloaded",), heard="draft.txt"),
    ),
    "500": Scenario(
        turns=(Fault(trouble="server_error", lasts=3), *WORK), expected=Expected(kinds=("provider_overloaded",))
    ),
    "401": Scenario(
        turns=(Fault(trouble="auth", lasts=FOR_EVER),), expected=Expected(kinds=("auth_failed",), exit=STUCK)
    ),
    "overflow": Scenario(
        turns=(DRAFT, DRAFT, *WORK),
        window=1,
        expected=Expected(kinds=("context_exhausted",), heard="ran out of context"),
    ),
    "max turns": Scenario(
        turns=(DRAFT, DRAFT, *WORK),
        settings=TWO_TURNS,
        only=("claude",),
        expected=Expected(kinds=("task_incomplete",), attempts=2),
    ),
    "refusal": Scenario(
        turns=(Refuse(), Refuse(), *WORK),
        expected=Expected(kinds=("agent_failed",), attempts=2),
        unlike={"codex": Expected(kinds=("no_change",), attempts=3)},
    ),
    "connection reset": Scenario(
        turns=(Cut(), *WORK), expected=Expected(kinds=("network_error",)), unlike={"claude": AT_ONCE}
    ),
    "killed": Scenario(turns=(LEAVE_AND_DIE, *WORK), expected=Expected(kinds=("killed",))),
    "hang": Scenario(turns=(DRAFT, Stall(), *WORK), silence=12, expected=Expected(kinds=("hang",), attempts=2)),
    "tool hangs": Scenario(
        turns=(WAIT_FOR_EVER, *WORK),
        silence=12,
        expected=Expected(kinds=("hang",), attempts=2),
        unlike={"codex": AT_ONCE},
    ),
}
