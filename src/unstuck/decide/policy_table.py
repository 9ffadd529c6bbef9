"""The profiles as a page of documentation: generated from the data, compared with it by a test."""

from collections.abc import Iterable

from unstuck.decide.policy import Policy, most_decisions, rungs_of

INTRODUCTION = """# Policies

A profile says which view of a failure decides, what is charged, and for each way to fail a ladder: the moves to make, in
order. Past the last rung a person is asked. This page is generated from `catalog/policies.toml`; a test compares them.
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
