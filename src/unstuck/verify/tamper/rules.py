"""The rules of the tamper audit as a table: what each means, how grave it is, and which nobody can declare."""

from dataclasses import dataclass

from unstuck.verify.tamper.change import Finding, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    severity: Severity
    means: str
    blatant: bool = False
    """Not excused by a task that names the path: too plain, or a fault in product code, which every task names."""
    declared: Severity = "warn"
    """How grave it still is where the task names the path."""


RULES: dict[str, Rule] = {
    "test-deleted": Rule("reject", "A test is gone, and nothing else asserts what it did."),
    "test-hidden": Rule("reject", "A test is still there, but no runner finds it any more.", blatant=True),
    "test-emptied": Rule("reject", "A test no longer asserts anything.", blatant=True),
    "test-skipped": Rule("reject", "A test that ran is skipped or expected to fail.", blatant=True),
    "tests-all-skipped": Rule("reject", "Every test of a file that ran is skipped.", blatant=True),
    "test-focused": Rule("reject", "One test is singled out, so that the others do not run.", blatant=True),
    "test-retried": Rule("ask", "A test is repeated until it passes."),
    "cases-removed": Rule("reject", "A parametrised test goes through fewer cases."),
    "assertion-removed": Rule("reject", "An assertion is gone, and nothing else asserts the same."),
    "assertion-loosened": Rule("reject", "An assertion accepts more than before.", declared="ask"),
    "assertion-vacuous": Rule("reject", "An assertion can no longer fail.", blatant=True),
    "assertion-unreachable": Rule("reject", "An assertion is never reached, or its failure is dropped.", blatant=True),
    "expected-changed": Rule("ask", "A test expects something else than before."),
    "subject-mocked": Rule("reject", "A test replaces the very thing that it tests.", blatant=True),
    "snapshots-regenerated": Rule("reject", "Most snapshots of a file are written anew."),
    "snapshot-changed": Rule("ask", "A snapshot holds something else than before."),
    "golden-changed": Rule("ask", "A file with expected output holds something else than before."),
    "testdata-changed": Rule("ask", "A file that tests read holds something else than before."),
    "assertions-overridden": Rule("reject", "The functions that assert are replaced.", blatant=True),
    "collection-hooked": Rule("reject", "A hook of the test runner changes what runs or how it counts.", blatant=True),
    "early-exit": Rule("reject", "The process ends with success before the tests can say anything.", blatant=True),
    "possible-early-exit": Rule("ask", "Tested code ends the process with success.", blatant=True),
    "equality-overridden": Rule("reject", "Objects are made equal to anything.", blatant=True),
    "tool-shadowed": Rule("reject", "A file takes the place of a tool that the checks use.", blatant=True),
    "test-detected": Rule("ask", "Product code behaves differently when it is tested.", blatant=True),
    "answers-hard-coded": Rule("ask", "Product code answers the inputs of the tests with constants.", blatant=True),
    "threshold-lowered": Rule("reject", "A gate asks for less than before."),
    "gate-loosened": Rule("reject", "A linter, type checker or coverage tool looks at less than before."),
    "suppressions-added": Rule("ask", "Complaints of a tool are silenced in bulk.", blatant=True),
    "test-settings-narrowed": Rule("reject", "The test runner's settings make it run less than before."),
    "ci-changed": Rule("ask", "Steps of the build server are changed or gone."),
    "check-changed": Rule("reject", "What a check runs is changed."),
    "always-green": Rule("reject", "A failing command is made to look like a success.", blatant=True),
    "own-settings-changed": Rule("reject", "The supervisor's own settings are changed."),
    "secret": Rule("reject", "A secret stands in the change.", blatant=True),
    "scope": Rule("warn", "A file outside the task's Files is touched."),
    "claimed-file-missing": Rule("ask", "The agent claims a file that does not exist."),
    "empty-claim": Rule("reject", "The agent claims work, but nothing changed."),
}


def found(rule: str, path: str, line: int, says: str, evidence: str = "", severity: Severity | None = None) -> Finding:
    """Make a finding, as grave as its rule says unless told otherwise."""
    return Finding(
        rule=rule,
        severity=severity or RULES[rule].severity,
        path=path,
        line=max(1, line),
        says=says,
        evidence=evidence[:300],
    )
