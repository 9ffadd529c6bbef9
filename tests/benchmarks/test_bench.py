"""The benchmarks run, print what they promise, and compare like with like. How fast the machine is, is not tested."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.by_hand import ByHand, Step
from benchmarks.overhead import Size, record_task, summed_up
from benchmarks.report import BenchBroken, Report, Target


def unstuck(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "unstuck", *arguments], capture_output=True, text=True, check=False)


def test_overhead_has_the_commands_of_a_task_and_every_figure() -> None:
    done = unstuck("bench", "overhead", "--tasks", "2", "--files", "5", "--runs", "1", "--json")
    said = json.loads(done.stdout)
    assert said["schema"] == 1
    assert said["bench"] == "overhead"
    commands = [one["command"] for one in said["commands"] if one["ms"] > 0]
    for part in (
        "git read-tree --reset -u",
        "shim.py, and under it: tee work.txt",
        "git write-tree",
        "git commit-tree",
        "git update-ref",
    ):
        assert any(part in command for command in commands), part
    assert [size["tasks"] for size in said["sizes"]] == [2]
    assert all(size["ours_ms"] > 0 < size["by_hand_ms"] for size in said["sizes"])
    assert all(size["peak_mb"] > 1 for size in said["sizes"])
    assert [target["at_most"] for target in said["targets"]] == [1.2, 14.0, 1.5, 150.0]
    assert said["met"] is all(target["met"] for target in said["targets"])
    assert done.returncode == (0 if said["met"] else 1)


def test_overhead_prints_a_row_for_each_plan_length_below_the_commands() -> None:
    step = Step(
        at=0.0, argv=("git", "-c", "a=b", "version"), cwd="/", env={}, stdin="", stdout="", exit_code=0, shimmed=False
    )
    by_hand = ByHand([step], "bench2", "")
    by_hand.run(1)
    sizes = [Size(tasks=n, runs=1, ours_ms=12.5, by_hand_ms=10.0, ratio=1.15, peak_mb=40.0) for n in (10, 100)]
    report = summed_up(sizes, by_hand, files=7)
    assert any(line.endswith("  git version") for line in report.lines)
    assert [line.split() for line in report.lines[-2:]] == [
        ["10", "1", "12.5", "ms", "10.0", "ms", "1.15", "40.0", "MB"],
        ["100", "1", "12.5", "ms", "10.0", "ms", "1.15", "40.0", "MB"],
    ]
    assert report.met


@pytest.mark.parametrize("arguments", [("bench", "startup", "--json"), ("bench", "--json", "startup")], ids=" ".join)
def test_startup_compares_the_command_line_with_a_bare_interpreter(arguments: tuple[str, ...]) -> None:
    said = json.loads(unstuck(*arguments, "--repeats", "1").stdout)
    assert said["schema"] == 1
    assert said["commands"].keys() == {"python -c pass", "unstuck --version", "unstuck --help"}
    assert all(command["ms"] > 0 for command in said["commands"].values())
    assert any(one["module"] == "click" for one in said["imports"])


def test_a_benchmark_prints_its_lines_and_how_it_stands_to_its_targets() -> None:
    done = unstuck("bench", "startup", "--repeats", "1")
    assert "unstuck --version" in done.stdout
    assert "(at most 8)" in done.stdout
    assert ("✘" in done.stdout) == (done.returncode == 1)


def test_parallel_compares_the_wall_clock_with_the_ideal() -> None:
    said = json.loads(
        unstuck("bench", "parallel", "--phases", "3", "--seconds", "0.5", "--parallel", "2", "--json").stdout
    )
    assert (said["schema"], said["phases"], said["ideal_s"]) == (1, 3, 1.0)
    assert said["taken_s"] > 1.0
    assert [target["at_most"] for target in said["targets"]] == [1.25]


def test_kills_counts_what_landed_after_a_supervisor_died() -> None:
    told = json.loads(unstuck("bench", "kills", "--tasks", "2", "--kills", "1", "--seconds", "1", "--json").stdout)
    assert (told["kills"], told["landed"], told["twice"], told["asked"], told["met"]) == (1, 2, 0, 0, True)


def test_an_unknown_benchmark_is_bad_usage() -> None:
    done = unstuck("bench", "nonsense")
    assert done.returncode == 64
    assert "nonsense" in done.stderr


def test_a_missed_target_misses_the_report() -> None:
    targets = (Target(name="a", value=1.0, at_most=1.0), Target(name="b", value=1.1, at_most=1.0))
    assert Report(figures={}, lines=(), targets=targets[:1]).met
    assert not Report(figures={}, lines=(), targets=targets).met


def test_a_task_by_hand_lands_a_commit_like_ours(tmp_path: Path) -> None:
    by_hand = record_task(tmp_path, files=5)
    root = tmp_path / "by-hand"
    branch = git(root, "for-each-ref", "--format=%(refname)", "refs/heads/unstuck").strip()
    before = git(root, "rev-parse", branch).strip()
    by_hand.run(2)
    landed = git(root, "log", "--format=%(trailers:key=Unstuck-Task,valueonly)%H", "--name-only", f"{before}..{branch}")
    assert landed.split().count("work.txt") == 2
    assert {"bench2x1", "bench2x2"} <= set(landed.split())
    assert len(by_hand.spent) == len(by_hand.steps)
    assert all(seconds > 0 for seconds in by_hand.spent)


def test_a_command_that_ends_in_another_way_by_hand_breaks_the_benchmark(tmp_path: Path) -> None:
    step = Step(at=0.0, argv=("false",), cwd=str(tmp_path), env={}, stdin="", stdout="", exit_code=0, shimmed=False)
    with pytest.raises(BenchBroken, match="false"):
        ByHand([step], "bench1", "").run(1)


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def test_tasks_tells_what_reading_and_editing_a_plan_take() -> None:
    said = json.loads(unstuck("bench", "tasks", "--tasks", "60", "--repeats", "1", "--json").stdout)
    assert said["tasks"] == 60
    assert all(said[f"{name}_ms"] > 0 for name in ("start", "read", "reread", "tick", "insert"))
    assert [target["at_most"] for target in said["targets"]] == [1.0, 1.0, 1.0]
