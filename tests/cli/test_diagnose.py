"""`unstuck diagnose` and `unstuck.diagnosis`, as people and programs call them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.classify import classifiers as all_classifiers
from benchmarks.classify import judge, macro_f1, read_cases, scores

import unstuck
from unstuck.model.failure import Kind

SOURCE = Path(__file__).parents[2] / "src"


def run(*arguments: str, text: str | bytes = "", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "unstuck", "diagnose", *arguments],
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        cwd=cwd or SOURCE.parent,
        check=False,
    )


def answer(*arguments: str, text: str | bytes = "") -> dict[str, Any]:
    done = run("--json", *arguments, text=text)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_contracts_example_holds() -> None:
    found = answer("--exit-code", "127", text="bash: git: command not found\n")
    assert found.items() >= {
        "schema": 1, "failed": True, "kind": "command_not_found", "type": "UNKNOWN", "category": "command_not_found",
        "phase_type": "dependency_missing", "blame": "environment", "retryable": False,
        "message": "bash: git: command not found", "line": 1, "resets_at": None,
    }.items()  # fmt: skip
    assert found["confidence"] >= 0.9
    assert found["signature"]
    assert set(found) >= {"where", "tests", "alternatives"}


def test_success_is_told_as_success() -> None:
    assert answer("--exit-code", "0", text="0 errors, test_error_handling PASSED") == {"schema": 1, "failed": False}
    assert b"nothing failed" in run("--exit-code", "0", text="all fine").stdout


def test_places_and_tests_are_named() -> None:
    found = answer(
        "--exit-code", "1", "--command", "pytest", text="FAILED tests/test_a.py::test_x - assert 1 == 2\n1 failed in 1s"
    )
    assert found["tests"] == ["tests/test_a.py::test_x"]
    found = answer("--exit-code", "2", "--command", "make", text="src/a.c:12:3: error: unknown type name 'foo'")
    assert found["where"] == [{"file": "src/a.c", "line": 12}]


def test_records_are_answered_in_order_and_a_bad_one_stops_nothing() -> None:
    deep = "[" * 100_000
    records = [
        '{"id": 1, "stderr": "bash: x: command not found", "exit_code": 127}',
        "not json",
        '{"id": "two", "stdout": 5}',
        deep,
        '{"id": 3, "stdout": "fine", "exit_code": 0}',
        '{"id": 4, "signal": "SIGKILL"}',
        '{"id": 5, "timed_out": true}',
    ]
    done = run("--jsonl", text="\n".join(records))
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in found] == [1, None, "two", None, 3, 4, 5]
    assert [one.get("kind", "error" if "error" in one else "success") for one in found] == [
        "command_not_found", "error", "error", "error", "success", "killed", "timeout",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("classifier", "key", "expected"),
    [
        ("seed-002", "type", "VERIFICATION_FAILED"),
        ("seed-001", "category", "unknown"),
        ("unstuck", "type", "BROKEN_BUILD"),
    ],
)
def test_a_seeds_own_classifier_can_be_asked_for(classifier: str, key: str, expected: str) -> None:
    found = answer("--exit-code", "1", "--classifier", classifier, text="IndentationError: unexpected indent")
    assert found[key] == expected


@pytest.mark.parametrize("signal", ["9", "KILL", "SIGKILL", "sigkill"])
def test_a_signal_may_be_a_name_or_a_number(signal: str) -> None:
    assert answer("--signal", signal)["kind"] == "killed"


def test_bad_usage_is_told_with_a_way_on(tmp_path: Path) -> None:
    for arguments in (("--signal", "999"), (str(tmp_path / "missing.txt"),), ("--exit-code", "x")):
        done = run(*arguments)
        assert done.returncode == 64
        assert b"Traceback" not in done.stderr


def test_a_closed_standard_input_is_bad_usage() -> None:
    closed = ["sh", "-c", 'exec "$0" -P -m unstuck diagnose <&-', sys.executable]
    done = subprocess.run(closed, capture_output=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (64, b"unstuck: Standard input is closed.")


def test_a_bad_rule_of_the_users_is_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "unstuck.rules.toml").write_text(
        "[[rule]]\nid = 'a'\npattern = '(x'\nkind = 'timeout'\n", encoding="utf-8"
    )
    done = run(text="x", cwd=tmp_path)
    assert done.returncode == 64
    assert b"unstuck.rules.toml:3:" in done.stderr


def test_neither_pydantic_nor_rich_is_loaded() -> None:
    code = (
        "import sys; from unstuck.cli import run_cli; run_cli(['diagnose', '--exit-code', '1', '--json']);"
        "print(sorted({'pydantic', 'rich', 'sqlite3', 'tomllib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b"error",
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=True,
    )
    assert done.stdout.splitlines()[-1] == b"[]"


def test_a_huge_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    block = b"[info] compiling module one of very many modules in this project\n" * 16_000
    with path.open("wb") as stream:
        for _ in range(200):
            stream.write(block)
        stream.write(b"bash: line 9: protoc: command not found\n")
    code = f"import resource,sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); from unstuck.cli import run_cli; sys.exit(run_cli(['diagnose', {str(path)!r}, '--json', '--exit-code', '1']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "command_not_found"
    assert b"left out" in done.stderr


def test_one_endless_line_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "line.txt"
    path.write_bytes(b"\x00x\xff" * (50_000_000 // 3) + b" error: No space left on device")
    assert answer("--exit-code", "1", str(path))["kind"] == "disk_full"


def test_the_library_gives_the_same_answer() -> None:
    found = unstuck.diagnose("bash: git: command not found", exit_code=127, tool="run_bash", command="git clone x")
    assert found is not None
    assert found.kind is Kind.COMMAND_NOT_FOUND
    assert unstuck.diagnose("fine", exit_code=0) is None


def test_scores_count_accepted_labels_and_false_alarms(tmp_path: Path) -> None:
    rows = [
        {"stderr": "bash: x: command not found", "exit_code": 127, "outcome": "failure",
         "labels": {"A": "UNKNOWN", "B": "command_not_found", "C": "dependency_missing"}, "accept": {}},
        {"stderr": "bash: x: command not found", "exit_code": 127, "outcome": "failure",
         "labels": {"A": "BROKEN_BUILD", "B": None, "C": "unknown"}, "accept": {"A": ["UNKNOWN"]}},
        {"stdout": "fine", "exit_code": 0, "outcome": "success", "labels": {"A": None, "B": None, "C": None}, "accept": {}},
    ]  # fmt: skip
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    ours = judge(read_cases(path), all_classifiers()["ours"])
    by_view = {view: scores([one for one in ours if one.view == view]) for view in ("type", "category")}
    assert by_view["type"]["strict"] == pytest.approx(2 / 3, abs=0.001)
    assert by_view["type"]["lenient"] == 1
    assert by_view["category"]["lenient"] == pytest.approx(2 / 3, abs=0.001)
    assert by_view["type"]["false_alarms"] == 0


def test_macro_f1_is_the_mean_over_labels() -> None:
    assert macro_f1([("a", "a"), ("a", "b"), ("b", "b")]) == pytest.approx((2 / 3 + 2 / 3) / 2, abs=0.001)
