"""The tamper bench weakens tests in every language, and the audit meets its targets on them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.mutations import mutations
from benchmarks.rounds import cases, judge_rounds
from benchmarks.tamper import MISSED, MISSED_NAMED, SAMPLES, Judged, committed, mutated, released, watched

from unstuck.verify.audit.grammars import grammars


def test_weakened_samples_are_caught() -> None:
    results = list(mutated([SAMPLES], every=5))
    missed = [one.title for one in results if not one.stopped[1]]
    silent = [one.title for one in results if not one.told]
    assert len(results) >= 50
    assert len(missed) * 100 <= MISSED * len(results), missed
    assert len(silent) * 100 <= MISSED_NAMED * len(results), silent


def test_every_language_has_a_sample_that_can_be_weakened_in_many_ways() -> None:
    kinds: dict[str, set[str]] = {}
    for path in (one for one in SAMPLES.rglob("*.*") if one.is_file() and one.parent.name != "__pycache__"):
        text = path.read_text(encoding="utf-8")
        kinds[path.suffix[1:]] = {kind for kind, _ in mutations(path.name, text)}
    assert sum(len(found) >= 9 for found in kinds.values()) == len({grammar.language for grammar in grammars()})


def test_most_adversarial_diffs_are_caught() -> None:
    report = judge_rounds(every=12)
    assert len(list(cases())) >= 800
    assert report.figures["caught"] >= report.figures["tampering"] * 0.6, report.lines


def test_commits_of_a_repository_and_releases_are_judged(tmp_path: Path) -> None:
    old, new = "def test_a():\n    assert f(1) == 2\n", "def test_a():\n    pass\n"
    for step, (code, test) in enumerate((("A = 1\n", old), ("A = 2\n", new))):
        folder = tmp_path / str(step)
        for place in (tmp_path / "repo", folder):
            (place / "tests").mkdir(parents=True, exist_ok=True)
            (place / "a.py").write_text(code)
            (place / "tests" / "test_a.py").write_text(test)
        for command in (
            ("init", "-q"),
            ("add", "."),
            ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", f"step {step}"),
        ):
            subprocess.run(["git", "-C", str(tmp_path / "repo"), *command], check=True, capture_output=True)
    both = [*committed(tmp_path / "repo", 5), *released(tmp_path / "0", tmp_path / "1")]
    assert [one.stopped for one in both] == [(True, True), (True, True)]


def test_an_interrupted_bench_shows_what_it_saw() -> None:
    def results() -> Iterator[Judged]:
        yield Judged(title="one", language="Python", kind="commit", named=(), unnamed=())
        raise KeyboardInterrupt

    said: list[str] = []
    assert [one.title for one in watched(results(), said.append)] == ["one"]
    assert said[-1].startswith("Interrupted")
