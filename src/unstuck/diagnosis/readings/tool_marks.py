"""Read an output: find the tools that speak in it by their marks, load their readers, and put together what they say."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module

from unstuck.diagnosis.cleaning import clean
from unstuck.diagnosis.readings.values import Reading, merged

HEAD, TAIL = 1 << 16, 3 << 16
"""More than this of an output is not read: the beginning names the tool, the end sums up."""

Reader = Callable[[Sequence[str]], Reading | None]
MARKS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("jest_like", "jest", ("Tests:", "● ", "FAIL ", "No tests found")),
    ("jest_like", "vitest", ("Test Files", "⎯⎯⎯", "No test files found")),
    ("mocha_like", "mocha", (" passing", " failing", "Exception during run")),
    ("mocha_like", "node_spec", ("ℹ fail", "failing tests:", "Failed tests:")),  # noqa: RUF001  # as the tool prints it
    ("mocha_like", "jasmine", (" spec, ", " specs, ")),
    ("mocha_like", "ava", ("✘ ", " test passed", " tests passed", " test failed", " tests failed")),
    ("tap_tests", "tap", ("ok 1", "# pass")),
    ("tap_tests", "prove", ("Files=",)),
    ("pytest_tests", "pytest", ("= FAILURES =", "= ERRORS =", "summary info", "ed in ", " error in ", " errors in ", " warning in ", " warnings in ", "no tests ran in ", "%]", "FAILED ")),
    ("unittest_tests", "unittest", (" tests in ", " test in ")),
    ("compiled_tests", "go", ("--- FAIL:", "--- PASS:", "FAIL\t", "ok  \t", "?   \t", '"Action":')),
    ("compiled_tests", "cargo", ("test result:", "stdout ----")),
    ("compiled_tests", "nextest", ("Summary [",)),
    ("compiled_tests", "ctest", ("% tests passed", "No tests were found!!!")),
    ("compiled_tests", "swift", ("Executed ", "Test run with ")),
    ("compiled_tests", "gtest", ("[==========]",)),
    ("scripted_tests", "rspec", (" example",)),
    ("scripted_tests", "minitest", (" assertions, ",)),
    ("scripted_tests", "phpunit", ("Assertions: ", "OK (", "No tests executed")),
    ("scripted_tests", "mix", (" failure", "** (CompileError)")),
    ("managed_tests", "surefire", ("Tests run: ",)),
    ("managed_tests", "gradle", (" FAILED\n", " tests completed, ", " test completed, ")),
    ("managed_tests", "dotnet", ("Failed! ", "Passed! ", "Total tests: ", "Test summary: ")),
    ("tool_findings", "findings", ("",)),
    ("figures", "figures", ("%", "error", "warning", "violation", "problem", "offense", "issue")),
)  # fmt: skip
"""Which reader in which module speaks for a text that holds one of these words; each reader looks more closely itself."""

FOUND = re.compile(
    r"^(?:vet: |:\w+)?\s{0,4}[^\s:()]+[:(]\d|^ +\d+:\d+ |^ *--> |reformat|^\[|^Diff in |: line \d|^::|undefined ref|^ERROR: |^error: cannot |^  \* |━━",
    re.MULTILINE,
)
"""Whether anything looks like a finding: their reader knows many forms, and takes a while to load."""


def read(text: str, *, formatter: bool = False) -> Reading:
    """Say what an output says. `formatter`: it is one's, and a line with nothing but a file names what it would change."""
    whole = len(text) <= HEAD + TAIL
    lines = clean(text if whole else f"{text[:HEAD]}\n{text[-TAIL:]}")
    joined = "\n".join([*lines, ""])
    found: list[Reading] = []
    for module, name, marks in MARKS:
        if any(mark in joined for mark in marks) and (name != "findings" or formatter or FOUND.search(joined)):
            asked = "unformatted" if formatter and name == "findings" else name
            reader: Reader = getattr(import_module(f"unstuck.diagnosis.readings.{module}"), asked)
            if (reading := reader(lines)) is not None:
                found.append(reading)
    reading = merged(found) if found else Reading()
    return reading if whole else _cut(reading)


def _cut(reading: Reading) -> Reading:
    from dataclasses import replace  # noqa: PLC0415  # only for what is very long

    return replace(reading, whole=False)
