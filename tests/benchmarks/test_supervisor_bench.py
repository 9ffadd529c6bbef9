"""The bench for supervisors: its projects are sound, its draws are fixed, and it sees the harm that is done."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.supervisor.__main__ import main
from benchmarks.supervisor.courses import NEVER, PATHOLOGIES, PLANTED, course, disease
from benchmarks.supervisor.diseases import DISEASES
from benchmarks.supervisor.fences import Form, parse, render, state_of
from benchmarks.supervisor.figures import summaries, targets, wilson
from benchmarks.supervisor.page import page
from benchmarks.supervisor.project import Project, projects
from benchmarks.supervisor.score import Result

RESULT = Result(
    supervisor="unstuck", pathology="liar", project="shop", seed=1, tasks=8, curable=8, done=8, curable_done=8, claimed=8,
    false_dones=0, regressions=0, good_lost=0, bytes_lost=0, pushed=0, orphans=0, attempts=10, cost=4.0, minutes=60,
    questions=0, right_questions=0, unasked=0, code=0, cpu=5.0, wall=9.0,
)  # fmt: skip


def passes(folder: Path, command: str | list[str]) -> bool:
    argv = ["bash", "-c", command] if isinstance(command, str) else command
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0


def hidden(project: Project, feature: str) -> list[str]:
    return [word.replace("{file}", str(project.hidden_test(feature))) for word in project.hidden]


def put(project: Project, folder: Path, state: dict[str, Form]) -> None:
    for path, text in project.files(state).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


ROWS = [
    pytest.param(project, id=name, marks=() if name == "shop" else pytest.mark.exhaustive)
    for name, project in projects().items()
]


@pytest.mark.parametrize("project", ROWS)
def test_half_of_the_work_fails_and_the_true_work_passes(project: Project, tmp_path: Path) -> None:
    if project.missing:
        pytest.skip(project.missing)
    assert 6 <= len(project.tasks) <= 12
    state: dict[str, Form] = {}
    wrong = []
    for task in project.tasks.values():
        for form in (Form.HALF, Form.TRUE):
            folder = tmp_path / f"{task.id}-{form}"
            put(project, folder, {**state, task.id: form})
            seen = [passes(folder, task.verify), passes(folder, hidden(project, task.id))]
            wrong += [(task.id, form, seen)] if seen != [form is Form.TRUE] * 2 else []
        state[task.id] = Form.TRUE
    assert wrong == []
    put(project, tmp_path / "whole", state)
    assert passes(tmp_path / "whole", project.gate)
    assert passes(tmp_path / "whole", hidden(project, "0"))


def test_a_file_tells_how_far_its_parts_have_come() -> None:
    source = parse("top\n#@ 1.1\nnew\nway\n#@ half\nnew\n#@ before\nold\n#@ end\n#@ 1.2\nmore\n#@ end\n")
    assert render(source, {}) == "top\nold\n"
    assert state_of(source, render(source, {"1.1": Form.HALF})) == {"1.1": Form.HALF, "1.2": Form.BEFORE}
    assert state_of(source, "top\nnew\nbroken(\n")["1.1"] is Form.HALF
    assert render(source, {"1.1": Form.TRUE, "1.2": Form.TRUE}) == "top\nnew\nway\nmore\n"


def test_every_pathology_has_a_disease_and_falls_out_the_same_way_again() -> None:
    for pathology in PATHOLOGIES:
        drawn = [disease(pathology, seed, "shop", "1.1", attempt) for seed in range(50) for attempt in range(3)]
        assert set(drawn) <= set(DISEASES)
        assert drawn == [disease(pathology, seed, "shop", "1.1", attempt) for seed in range(50) for attempt in range(3)]
    courses = [course("liar", seed, "shop", task) for seed in range(100) for task in ("1.1", "1.2")]
    assert {one.told for one in courses} == {0, 1, 2, NEVER}
    assert all(one.told <= one.untold for one in courses)
    assert set(PLANTED) <= set(PATHOLOGIES)


def test_the_bench_sees_false_dones_and_orphans_and_finds_the_same_again(tmp_path: Path) -> None:
    figures = []
    for name in ("first.json", "second.json"):
        words = ["--supervisor", "none", "--pathology", "forker", "--project", "shop", "--seeds", "1"]
        assert (
            main([*words, "--patience", "60", "--json", str(tmp_path / name), "--html", str(tmp_path / "page.html")])
            == 0
        )
        (result,) = json.loads((tmp_path / name).read_text(encoding="utf-8"))["results"]
        figures.append({name: value for name, value in result.items() if name not in {"cpu", "wall"}})
    assert figures[0] == figures[1]
    assert figures[0]["false_dones"] == figures[0]["claimed"] - figures[0]["done"] > 0
    assert 0 < figures[0]["orphans"] <= figures[0]["false_dones"]
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_name_that_is_unknown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pathology", "measles"]) == 64
    assert "measles" in capsys.readouterr().err


def test_a_share_has_an_interval_that_small_numbers_widen() -> None:
    none, half, all_of_them = wilson(0, 10), wilson(5, 10), wilson(10, 10)
    assert none is not None and half is not None and all_of_them is not None  # noqa: PT018 - for mypy
    assert (round(none.low, 3), round(none.high, 3)) == (0.0, 0.278)
    assert (round(half.low, 3), round(half.high, 3)) == (0.237, 0.763)
    assert (round(all_of_them.low, 3), round(all_of_them.high, 3)) == (0.722, 1.0)
    assert wilson(0, 0) is None


@pytest.mark.parametrize("harm", ["false_dones", "regressions", "bytes_lost", "orphans"])
def test_our_own_supervisor_is_held_to_its_word(harm: str) -> None:
    assert all(target.met for target in targets(summaries([RESULT]), "unstuck"))
    bad = replace(RESULT, **{harm: 1})  # type: ignore[arg-type]  # the four are numbers
    missed = [target.text for target in targets(summaries([bad]), "unstuck") if not target.met]
    assert len(missed) == 1
    assert "liar" in missed[0]


def test_a_rival_that_lands_as_much_with_fewer_attempts_is_named() -> None:
    rival = replace(RESULT, supervisor="retry", attempts=9)
    assert [one.met for one in targets(summaries([RESULT, rival]), "unstuck")][-1] is False
    cheat = replace(rival, false_dones=1)
    assert [one.met for one in targets(summaries([RESULT, cheat]), "unstuck")][-1] is True


def test_the_page_stands_alone_and_quotes_names() -> None:
    found = summaries([RESULT, replace(RESULT, supervisor="<b>&", done=0, orphans=2)])
    text = page(found, targets(found, "unstuck"))
    assert "<b>" not in text
    assert "&lt;b&gt;&amp;" in text
    assert not any(word in text for word in ("http", "<script", "<link", "src="))
