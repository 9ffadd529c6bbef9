"""Write the page of policies from the catalogue: `python -m scripts.write_policies`."""

from collections.abc import Iterable
from pathlib import Path

from unstuck.model.failure import Kind
from unstuck.policy.profiles import UNLIMITED_TIMES, Policy, Rung, profiles, rungs_of

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "policies.md"
INTRODUCTION = """# Policies

A profile says which view of a failure decides, what is charged, and for each way to fail a ladder: the moves to make, in
order. Past the last rung a person is asked. This page is generated from `catalog/policies.toml`; a test compares them.

Whatever the profile: what nobody repairs by trying again (a command, package, variable or credential that is missing, a
set-up that fails) is asked at once, unless the work itself brought the need for it; if every task would meet it, once for
all. Trouble that a check meets on its way (network, disk, memory, port, lock) is waited out by that check alone, without a
session, while the other tasks go on. After a person's repair its checks are run again on the work that is there, before
anybody is called.
"""


def page(policies: Iterable[Policy]) -> str:
    """Write the page."""
    return "\n".join([INTRODUCTION, *(_section(policy) for policy in policies)])


def _section(policy: Policy) -> str:
    charges = "the agent's own failures" if policy.charges == "blame" else "every finished attempt"
    limits = policy.limits
    lines = [
        f"## `{policy.name}`",
        "",
        policy.about,
        "",
        f"Decides by {policy.view}; charges {charges}; `on_stuck` is {policy.on_stuck}. At most {limits.attempts} charged attempts, {limits.sessions} sessions an attempt, {limits.rollbacks} rollbacks.",
        f"However a task fails, a person is asked after {most_decisions(policy)} decisions at the latest.",
        "",
        f"| {policy.view} | ladder |",
        "|---|---|",
    ]
    by_ladder: dict[str, list[str]] = {}
    for value, ladder in policy.ladders.items():
        by_ladder.setdefault(rungs_of(ladder), []).append("anything" if value == "*" else f"`{value}`")
    lines += [f"| {', '.join(values)} | {ladder} |" for ladder, values in by_ladder.items()]
    return "\n".join([*lines, ""])


def most_decisions(policy: Policy) -> int:
    """Return how many decisions a task can cause, however it fails, before a person is asked.

    Every decision that is not final takes a rung; a rung can be taken `times` times, or while attempts are few.
    """
    ladders = {policy.ladder_of(kind) for kind in Kind}
    return 1 + policy.limits.check_waits + sum(_most(rung, policy) for _, ladder in ladders for rung in ladder)


def most_decisions_of_lineage(policy: Policy) -> int:
    """Return how many decisions a task and all the fix tasks that follow from it can cause."""
    fixes = any(rung.move == "fix" for ladder in policy.ladders.values() for rung in ladder)
    return most_decisions(policy) * (1 + policy.limits.fixes_per_root * fixes)


def _most(rung: Rung, policy: Policy) -> int:
    return min(
        rung.times, rung.below or UNLIMITED_TIMES, policy.limits.fixes if rung.move == "fix" else UNLIMITED_TIMES
    )


if __name__ == "__main__":
    PAGE.write_text(page(profiles().values()), encoding="utf-8")
