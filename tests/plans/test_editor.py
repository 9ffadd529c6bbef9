"""Writing tasks into a plan: where they go, and that nothing else moves."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.model.errors import CannotWrite
from unstuck.model.plan import Insertion
from unstuck.plans import tasks_md
from unstuck.plans.plan_file import open_plan
from unstuck.plans.tasks_md import read_tasks_md

FIX = "- [ ] {id} [FIX {of}] Fix: it\n  - **Do**: Address the error: it\n  - **Verify**: grep pattern\n"
SEED = """\
- [ ] 1.3 Add failure parser
  - **Do**: Add parsing logic
  - **Files**: implement.md
  - **Verify**: grep pattern
  - **Commit**: feat: add parser

- [ ] 1.4 Next task
"""
SEED_FIX = """\
- [ ] 1.3.1 [FIX 1.3] Fix: File not found error
  - **Do**: Address the error: File not found
    1. Analyze the failure: Checked alternate paths
    2. Review related code in Files list
    3. Implement fix for: File not found
  - **Files**: implement.md
  - **Done when**: Error "File not found" no longer occurs
  - **Verify**: grep pattern
  - **Commit**: `fix(recovery): address missing file from task 1.3`
"""


def fixing(new: str, of: str) -> Insertion:
    return Insertion(blocks={new: FIX.format(id=new, of=of)}, beside=of)


def inserted(text: str, new: str, of: str) -> str:
    return tasks_md.locate(text).insert(fixing(new, of), tasks_md.locate).text


def ids(text: str) -> list[str]:
    return [task.id for task in read_tasks_md(text, "", runnable=lambda _: True).tasks]


def test_the_seeds_insertion_comes_out_to_the_letter() -> None:
    after = tasks_md.locate(SEED).insert(Insertion(blocks={"1.3.1": SEED_FIX}, beside="1.3"), tasks_md.locate).text
    head, tail = SEED.split("- [ ] 1.4")
    assert after == f"{head}{SEED_FIX}\n- [ ] 1.4{tail}"


def test_the_second_fix_goes_behind_the_first_and_its_own_fixes() -> None:
    text = SEED
    for new, of in (("1.3.1", "1.3"), ("1.3.1.1", "1.3.1"), ("1.3.2", "1.3"), ("1.3.1.2", "1.3.1"), ("1.3.10", "1.3")):
        text = inserted(text, new, of)
    assert ids(text) == ["1.3", "1.3.1", "1.3.1.1", "1.3.1.2", "1.3.2", "1.3.10", "1.4"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- [ ] 1.3 A\n- [ ] 1.4 B\n", "- [ ] 1.3 A\n{fix}- [ ] 1.4 B\n"),
        ("- [ ] 1.3 A\n\n- [ ] 1.4 B\n", "- [ ] 1.3 A\n\n{fix}\n- [ ] 1.4 B\n"),
        ("- [ ] 1.3 A", "- [ ] 1.3 A\n{fix-}"),
        ("# T\n\n- [ ] 1.3 A\n", "# T\n\n- [ ] 1.3 A\n\n{fix}"),
        ("# T\n\n- [ ] 1.3 A\n  text  \t\n\n\n", "# T\n\n- [ ] 1.3 A\n  text  \t\n\n{fix}\n\n"),
        ("- [ ] 1.3 A\n## Notes\n", "- [ ] 1.3 A\n{fix}## Notes\n"),
        ("- [x] 1.3 A\n\n<!-- next -->\n- [ ] 1.4 B\n", "- [x] 1.3 A\n\n{fix}\n<!-- next -->\n- [ ] 1.4 B\n"),
        ("---\na: b\n---\n- [ ] 1.3 A\n  ```sh\n- [ ] no\n  ```\nend\n", None),
        ("- [ ] 1.3 A\n  - **Do**: `cat <<'B'\n- [x] no\nB\n`\n\n## X\n", "- [ ] 1.3 A\n  - **Do**: `cat <<'B'\n- [x] no\nB\n`\n\n{fix}\n## X\n"),
    ],
    ids=["tight", "apart", "no-final-newline", "at-the-end", "blank-lines-at-the-end", "heading", "comment", "fence", "heredoc"],
)  # fmt: skip
def test_a_fix_stands_behind_the_block_as_its_neighbours_do(before: str, after: str | None) -> None:
    fix = FIX.format(id="1.3.1", of="1.3")
    text = inserted(before, "1.3.1", "1.3")
    if after is not None:
        assert text == after.replace("{fix}", fix).replace("{fix-}", fix.rstrip("\n"))
    assert ids(text) == [*ids(before)[:1], "1.3.1", *ids(before)[1:]]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"], ids=["crlf", "lf", "cr"])
def test_a_fix_has_the_line_ends_of_its_original(end: str) -> None:
    before = SEED.replace("\n", end)
    after = inserted(before, "1.3.1", "1.3")
    assert after.replace(end, "\n") == inserted(SEED, "1.3.1", "1.3")
    assert after.count("\n") == (0 if end == "\r" else after.count(end))


def test_an_insertion_in_front_stands_before_the_task() -> None:
    block = {"1.3.1": "- [ ] 1.3.1 First this\n"}
    after = tasks_md.locate(SEED).insert(Insertion(blocks=block, beside="1.4", before=True), tasks_md.locate).text
    assert ids(after) == ["1.3", "1.3.1", "1.4"]
    assert after == SEED.replace("- [ ] 1.4", "- [ ] 1.3.1 First this\n\n- [ ] 1.4")


LINES = st.sampled_from(
    [
        "- [ ] 1.1 One", "- [x] 1.2 Two", "- [ ] 2 [P] Three", "- [ ] V4 Four", "- [X] 1.1.1 [FIX 1.1] Five", "  - **Verify**: `x`", "\t- tab", "  ",
        "", "## Phase", "# T", "```sh", "```", "  ```", "<!-- c", "-->", "text", "  - **Do**: cat <<EOF", "EOF", "---", "- [ ] No id", "  - [ ] nested", "é\t ",
    ]
)  # fmt: skip


@given(
    st.lists(LINES, max_size=25),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from(["", "\ufeff"]),
    st.integers(0, 30),
)
def test_whatever_the_plan_insert_then_remove_is_the_identity(
    lines: list[str], end: str, last: bool, bom: str, pick: int
) -> None:
    before = bom + end.join(lines) + (end if last else "")
    located = tasks_md.locate(before)
    assert located.tick({}) == before, "parse and serialise is the identity"
    if not located.places:
        return
    beside = list(located.places)[pick % len(located.places)]
    try:
        after = located.insert(fixing("9.9.9", beside), tasks_md.locate)
    except CannotWrite:
        assert any(opener in before for opener in ("```", "<!--", "<<"))
        return
    added = len(after.text) - len(before)
    spans = [at for at in range(len(before) + 1) if after.text[:at] + after.text[at + added :] == before]
    assert spans, "the file without what was inserted is the file as it was"
    assert set(after.places) == {*located.places, "9.9.9"}
    assert after.insert(fixing("9.9.9", beside), tasks_md.locate) is after, "doing it again changes nothing"


def test_nothing_is_written_where_a_code_block_would_swallow_it() -> None:
    with pytest.raises(CannotWrite, match="would not be read"):
        inserted("- [ ] 1.3 A\n```sh\nls\n", "1.3.1", "1.3")


# --- on disk -----------------------------------------------------------------------------------------


def test_an_inserted_task_reads_as_the_plan_will_be_read(tmp_path: Path) -> None:
    path = tmp_path / "tasks.md"
    path.write_text(SEED)
    plan = open_plan(path)
    plan.read()
    (new,) = plan.insert(fixing("1.3.1", "1.3"))
    assert new == next(task for task in open_plan(path).read().tasks if task.id == "1.3.1")
    assert plan.insert(fixing("1.3.1", "1.3")) == (new,)
    assert plan.mark({"1.3.1": "complete", "1.3": "complete"})
    assert [task.done for task in open_plan(path).read().tasks] == [True, True, False]


def test_a_persons_edit_meanwhile_is_kept_beside_the_insertion(tmp_path: Path) -> None:
    path = tmp_path / "tasks.md"
    path.write_text(SEED)
    plan = open_plan(path)
    plan.read()
    path.write_text("# A title of mine\n\n" + SEED.replace("Next task", "Next task, reworded"))
    plan.insert(fixing("1.3.1", "1.3"))
    text = path.read_text()
    assert text.startswith("# A title of mine\n\n- [ ] 1.3 ")
    assert "Next task, reworded" in text
    assert ids(text) == ["1.3", "1.3.1", "1.4"]


def test_a_task_that_a_person_wrote_under_our_id_is_not_taken_for_ours(tmp_path: Path) -> None:
    path = tmp_path / "tasks.md"
    path.write_text(SEED + "\n- [ ] 1.3.1 My own\n")
    with pytest.raises(CannotWrite, match=r"has a task 1\.3\.1 of its own"):
        open_plan(path).insert(fixing("1.3.1", "1.3"))
    assert path.read_text() == SEED + "\n- [ ] 1.3.1 My own\n"


def test_nothing_is_inserted_beside_a_task_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "tasks.md"
    path.write_text("- [ ] 1.4 Next\n")
    with pytest.raises(CannotWrite, match=r"1\.3 is no longer in the plan"):
        open_plan(path).insert(fixing("1.3.1", "1.3"))
    assert path.read_text() == "- [ ] 1.4 Next\n"
