"""Weigh what was found in a change: what the policy makes of it, and what all of it together says about landing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from unstuck.journal import CheckResult, Remark, Severity, Status

Weight = Literal["reject", "ask", "warn", "off"]

OWN_RULES: Mapping[str, tuple[Severity, str]] = {
    "old-test-fails": ("reject", "With the base's tests and settings, the new code fails."),
    "judge-added": ("warn", "A check of the base cannot do without a new file that the task does not name."),
    "fewer-tests": ("ask", "Fewer tests are run than on the base."),
    "own-check-wavers": ("ask", "The task's own check fails and passes on the same tree."),
    "red-before": ("ask", "A gate was red before and is red now, and shows nothing that could be compared."),
    "undoes": ("reject", "A check of a task that landed in this run held, and fails now."),
    "takes-back": ("warn", "Lines that another task of this run added are gone."),
    "proves-nothing": ("warn", "A new test passes on the old code as well."),
    "not-red": ("reject", "A [RED] task must leave a test that fails for want of the work, and none does."),
    "unfinished-claim": ("reject", "The agent's own result names files that do not exist."),
    "secret": ("reject", "A secret of this machine stands in the change."),
}
"""What verification itself can find, besides the rules of the audit."""

NOT_WEIGHED = frozenset({"scope", "not-red", "unfinished-claim", "secret"})
"""Rules that have a setting of their own, or that no policy can do without."""
NOT_OF_THE_JUDGE = NOT_WEIGHED | {"claimed-file-missing", "own-settings-changed"}
"""What is not settled by running the base's judge."""


def weigh(remarks: Iterable[Remark], policy: Mapping[Severity, Weight]) -> tuple[Remark, ...]:
    """Give every remark the weight that the user's policy gives to its kind; drop what is switched off."""
    weighed = []
    for remark in remarks:
        weight = policy.get(remark.severity, remark.severity)
        if remark.rule in NOT_WEIGHED:
            weighed.append(remark)
        elif weight != "off":
            weighed.append(replace(remark, severity=weight))
    return tuple(weighed)


def judge_all(results: Sequence[CheckResult], remarks: Sequence[Remark]) -> tuple[Status, str]:
    """Say what checks and remarks come to, and why nobody can tell where that is so."""
    if any(remark.severity == "reject" for remark in remarks) or any(one.status == "fail" for one in results):
        return "fail", ""
    asked = [str(remark) for remark in remarks if remark.severity == "ask"]
    if asked:
        return "inconclusive", "; ".join(asked[:3]) + (f"; and {len(asked) - 3} more" if len(asked) > 3 else "")  # noqa: PLR2004
    if any(_proves_something(one) for one in results):
        return "pass", ""
    idle = [one.idle or one.although for one in results]
    return "inconclusive", idle[0] if idle else NO_CHECK


def own(rule: str, path: str = "", line: int = 1, says: str = "", severity: Severity | None = None) -> Remark:
    """Make a remark of one of our own rules."""
    weight, means = OWN_RULES[rule]
    return Remark(rule=rule, severity=severity or weight, path=path, line=line, says=says or means)


NO_CHECK = "the task has no command that could be run"
AS_ASKED = "this [RED] task is meant to make it fail"


def _proves_something(result: CheckResult) -> bool:
    """Whether it passed; a red check that is excused still counts where other tests in it pass."""
    if result.although in ("", AS_ASKED):
        return result.status == "pass"
    return bool(result.counts and result.counts.passed)
