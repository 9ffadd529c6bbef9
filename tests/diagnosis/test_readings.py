"""What an output says, on recorded outputs of real tools: `outputs/<tool>/<case>.txt`, with what a reader sees in them in `expected.toml`.

The folder `documented` holds forms of tools that could not be installed here, written after their public samples.
"""

import tomllib
from pathlib import Path
from typing import Any

from scripts.compile_catalog import compile_table

from unstuck.diagnosis.output.reading import Reading
from unstuck.diagnosis.output.tool_output import error_of, read_output
from unstuck.shipped import shipped

OUTPUTS = Path(__file__).parent / "outputs"
EXPECTED: dict[str, dict[str, dict[str, Any]]] = tomllib.loads((OUTPUTS / "expected.toml").read_text(encoding="utf-8"))


def text_of(tool: str, case: str) -> str:
    return (OUTPUTS / tool / f"{case}.txt").read_text(encoding="utf-8")


def seen(reading: Reading, text: str) -> dict[str, Any]:
    """Say what was read in the words of the table; what is not there is left out."""
    tests = [f"{one.name} | {one.file}:{one.line or 0} | {one.message[:60]}" for one in reading.failures]
    findings = [f"{one.file}:{one.line or 0} {one.rule} {one.severity}" for one in reading.findings]
    counts = {} if reading.ran is None else {"ran": reading.ran, "passed": reading.passed}
    counts |= {"failed": reading.failed, "errors": reading.errors, "skipped": reading.skipped}
    told: dict[str, Any] = {name: number for name, number in counts.items() if number or name == "ran"}
    told |= {name: what for name, what in (("tests", tests), ("findings", findings)) if what}
    if "coverage" in reading.measures:
        told["coverage"] = reading.measures["coverage"]
    return told | ({"error": error_of(reading, text)[:100]} if tests or findings else {})


def test_every_recorded_output_is_read_as_people_read_it() -> None:
    wrong = {}
    for tool, cases in EXPECTED.items():
        for case, expected in cases.items():
            text = text_of(tool, case)
            told = seen(read_output(text, formatter=case == "list"), text)
            if told != expected:
                wrong[f"{tool}/{case}"] = (told, expected)
    assert not wrong


def test_every_recorded_output_has_its_expectation() -> None:
    recorded = {(path.parent.name, path.stem) for path in OUTPUTS.glob("*/*.txt")}
    assert recorded == {(tool, case) for tool, cases in EXPECTED.items() for case in cases}


def test_the_table_of_runners_is_compiled() -> None:
    assert shipped("runners.json") == compile_table("runners"), "run `make rules`"


def test_colour_changes_nothing_but_the_colour() -> None:
    for tool, plain in (("maven", "several"), ("gcc", "errors"), ("eslint", "several"), ("phpunit", "several")):
        coloured, without = read_output(text_of(tool, "colour")), read_output(text_of(tool, plain))
        assert (coloured.failures, coloured.findings) == (without.failures, without.findings), tool


def test_a_file_is_never_counted_as_a_test() -> None:
    for tool, cases in EXPECTED.items():
        for case in cases:
            reading = read_output(text_of(tool, case))
            assert not [one for one in reading.failures if one.name and one.name == one.file], f"{tool}/{case}"
    assert read_output(text_of("jest", "silent")).failed == 3


def test_prose_is_no_reading() -> None:
    assert read_output("3 files changed, 10 insertions\nAll good, 4 passed the exam\n") == Reading()
    assert read_output("") == Reading()


def test_an_endless_output_is_read_at_both_ends() -> None:
    text = "x" * 50 + "\n"
    reading = read_output(text * 40_000 + text_of("jest", "silent"))
    assert (reading.failed, reading.whole) == (3, False)


def test_an_error_is_one_bounded_line_without_control_characters() -> None:
    hostile = "Error: \x1b[31mboom\x07\x1b]0;title\x07 " + "y" * 5000 + "\nmore\n"
    told = error_of(read_output(hostile), hostile)
    assert told.startswith("Error: boom")
    assert len(told) <= 300
    assert told.isprintable()


def test_an_agent_that_died_has_last_words() -> None:
    for text, words in (
        ("starting\nAPI Error: 529 overloaded\n\n", "API Error: 529 overloaded"),
        ("thinking\nError: no such model\nbye\n", "Error: no such model"),
        ("wrote a.py\n-----\n", "wrote a.py"),
        ("ERROR: Exception:\nTraceback\n  File x\npip.Bad: no\nOSError: cut off\n", "OSError: cut off"),
        (
            "  error: subprocess-exited-with-error\n  x no\n      ImportError: x\n      [end of output]\n",
            "ImportError: x",
        ),
        ("", ""),
    ):
        assert error_of(read_output(text), text) == words
