"""The reader of `tasks.md`: which lines are tasks, what they ask for, and ticks that change one byte."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from unstuck.model.plan import Plan, Task, execution_batches, plan_problems, waves_of
from unstuck.plans import tasks_md
from unstuck.plans.blocks import Reading
from unstuck.plans.review import with_review_concerns
from unstuck.plans.tasks_md import read_tasks_md

KNOWN_WORDS = frozenset({"node", "pytest", "make", "!", "echo", "true"})

SPEC = """\
---
spec: greeter
phase: tasks
---

# Tasks: Greeter

## Phase 1: Make it work

Focus: one greeting.

- [x] 1.1 Add the greeting module
  - **Do**:
    1. Create `src/greet.py`
    2. Export `greet()`
  - **Files**: `src/greet.py`, setup.cfg
  - **Done when**: `greet()` returns a string
  - **Verify**: `pytest -q tests/test_greet.py && echo PASS`
  - **Commit**: `feat(greet): add the module`
  - _Requirements: FR-1_

- [ ] 1.2 [P] Read the name from the command line
  - **Files**: src/cli.py
  - **Verify**: node cli.js --help | grep -q Usage
  - **Commit**: feat(cli): read the name

- [ ] 1.3 [P] [RED] A failing test: no name given
  - **Files**: tests/test_cli.py
  - **Verify**: `pytest -q 2>&1 | grep -q failed && echo RED`

- [ ] 1.4 [VERIFY] Checkpoint
  - **Verify**: All of these must pass:
    - **Types**: `make types` or the like
    - Lint: `make lint`
  - **Commit**: `chore: pass the checkpoint` (only if something was fixed)

- [ ] 1.2.1 [FIX 1.2] Fix: no such option
  - **Verify**: `pytest -q`

## Phase 2: Ship it

> Never push to the default branch.

- [ ] 2.1 Open a pull request
  - **Do**:
    1. Run `gh pr create --body "$(cat <<'BODY'
## What is done
- [x] 9.9 Nothing broke
BODY
)"`
  - **Verify**: `gh pr view` shows the address
  - **Commit**: None

- [ ] V4 [VERIFY] Everything at once
  - **Verify**: All commands pass

- [ ] VE3 Stop the server
  - **Verify**: `! lsof -ti :3000 && echo PASS`

- [ ] VF [VERIFY] The issue is gone

## Notes

- **Shortcuts**: none
"""


def ticked(content: bytes, changes: Mapping[str, bool], known: Mapping[str, str] | None = None) -> bytes:
    return tasks_md.encode(tasks_md.locate(tasks_md.decode(content), known).tick(changes))


def read(text: str) -> Plan:
    return read_tasks_md(text, "tasks.md", runnable=KNOWN_WORDS.__contains__)


def only_task(text: str) -> Task:
    (task,) = read(text).tasks
    return task


def commands(*verify: str) -> list[str]:
    return [check.command for check in only_task("\n".join(("- [ ] 1.1 A task", *verify, ""))).checks]


# --- the whole of a file ----------------------------------------------------------------------------


def test_a_spec_is_read_with_its_ids_markers_and_ticks() -> None:
    plan = read(SPEC)
    assert plan.title == "Tasks: Greeter"
    assert [(task.id, task.markers, task.fixes, task.done) for task in plan.tasks] == [
        ("1.1", (), None, True),
        ("1.2", ("P",), None, False),
        ("1.3", ("P", "RED"), None, False),
        ("1.4", ("VERIFY",), None, False),
        ("1.2.1", (), "1.2", False),
        ("2.1", (), None, False),
        ("V4", ("VERIFY",), None, False),
        ("VE3", (), None, False),
        ("VF", ("VERIFY",), None, False),
    ]
    assert plan.tasks[0].title == "Add the greeting module"
    assert plan.tasks[0].line == SPEC.split("\n").index("- [x] 1.1 Add the greeting module") + 1
    assert plan_problems(plan) == ()


def test_a_spec_is_read_with_what_its_fields_ask_for() -> None:
    tasks = {task.id: task for task in read(SPEC).tasks}
    assert tasks["1.1"].files == ("src/greet.py", "setup.cfg")
    assert {name: [check.command for check in task.checks] for name, task in tasks.items()} == {
        "1.1": ["pytest -q tests/test_greet.py && echo PASS"],
        "1.2": ["node cli.js --help | grep -q Usage"],
        "1.3": ["pytest -q 2>&1 | grep -q failed && echo RED"],
        "1.4": ["make types", "make lint"],
        "1.2.1": ["pytest -q"],
        "2.1": ["gh pr view"],
        "V4": [],
        "VE3": ["! lsof -ti :3000 && echo PASS"],
        "VF": [],
    }
    assert {name: task.commit for name, task in tasks.items()} == {
        "1.1": "feat(greet): add the module",
        "1.2": "feat(cli): read the name",
        "1.3": None,
        "1.4": "chore: pass the checkpoint",
        "1.2.1": None,
        "2.1": "",
        "V4": None,
        "VE3": None,
        "VF": None,
    }


def test_tasks_that_nothing_verifies_are_concerns_and_do_not_stop_a_run() -> None:
    plan = read(SPEC)
    assert plan.problems == ()
    assert [concern.message for concern in plan.concerns] == [
        'Task V4 has nothing to verify it: "All commands pass" is not a command.',
    ]


def test_checkpoints_wait_for_every_earlier_task_of_their_section() -> None:
    plan = read(SPEC)
    assert {task.id: task.depends_on for task in plan.tasks if task.depends_on} == {
        "1.4": ("1.1", "1.2", "1.3"),
        "V4": ("2.1",),
        "VE3": ("V4",),
        "VF": ("V4", "VE3"),
    }
    assert waves_of(plan.tasks)[1:] == (("1.4", "V4"), ("VE3",), ("VF",))


def test_top_level_boxes_are_counted_and_nested_ones_are_not() -> None:
    plan = read("- [x] 1.1\n- [ ] 1.2\n- [x] 1.3\n- [ ] 1.4\n- [ ] 1.4.1\n- [ ] 2.1\n    - [ ] nested\n")
    ticks = [task.done for task in plan.tasks]
    assert (len(ticks), ticks.count(True), ticks.index(False)) == (6, 2, 1)
    assert plan.problems == ()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("last", [True, False], ids=["final-newline", "no-final-newline"])
def test_line_ends_do_not_matter(end: str, bom: str, last: bool) -> None:
    text = bom + (SPEC if last else SPEC.removesuffix("\n")).replace("\n", end)
    plan, usual = read(text), read(SPEC)
    for task, same in zip(plan.tasks, usual.tasks, strict=True):
        assert task.body.replace(end, "\n") == same.body
        assert (task.id, task.title, task.line, task.checks, task.files, task.commit, task.depends_on) == (
            *(same.id, same.title, same.line, same.checks, same.files, same.commit, same.depends_on),
        )
    assert plan.concerns == usual.concerns


def test_mixed_line_ends_are_kept_in_a_tasks_body() -> None:
    text = "- [ ] 1.1 A\r\n  one\r  two\n\r\n- [ ] 1.2 B"
    assert [(task.line, task.body) for task in read(text).tasks] == [
        (1, "- [ ] 1.1 A\r\n  one\r  two\n"),
        (5, "- [ ] 1.2 B"),
    ]


def test_ten_thousand_tasks_are_read() -> None:
    text = "## All\n" + "".join(
        f"- [ ] {n}.1{' [VERIFY]' if n % 3 == 0 else ''} Do it\n  - **Verify**: `make t{n}`\n" for n in range(10_000)
    )
    plan = read(text)
    assert len(plan.tasks) == 10_000
    assert plan.tasks[-1].line == 20_000
    assert sum(len(task.depends_on) for task in plan.tasks) < 20_000
    assert plan_problems(plan) == ()


# --- task lines -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name", "markers", "fixes", "title"),
    [
        ("- [ ] 1.2 [P] Parse", "1.2", ("P",), None, "Parse"),
        ("- [ ] 1.2 [RED] [P] Parse", "1.2", ("RED", "P"), None, "Parse"),
        ("- [ ] 1.2 Parse [P]", "1.2", ("P",), None, "Parse"),
        ("- [ ] 1.2 [P] Look [VERIFY] ", "1.2", ("P", "VERIFY"), None, "Look"),
        ("- [ ] 1.2 Paint it [red]", "1.2", (), None, "Paint it [red]"),
        ("- [ ] [P] 1.2 Parse", "1.2", ("P",), None, "Parse"),
        ("- [ ] 1.2 [P][GREEN] Parse [x]", "1.2", ("P", "GREEN"), None, "Parse [x]"),
        ("- [ ] 1.2 [verify] Parse", "1.2", ("VERIFY",), None, "Parse"),
        ("- [ ] 1.2: Parse", "1.2", (), None, "Parse"),
        ("- [ ] 1. Parse", "1", (), None, "Parse"),
        ("- [ ] 1.3.1.1 [FIX 1.3.1] Fix: x", "1.3.1.1", (), "1.3.1", "Fix: x"),
        ("- [ ] V4.1 [FIX V4] Fix: x", "V4.1", (), "V4", "Fix: x"),
        ("- [ ] VF.1 [FIX VF] [P] Fix: x", "VF.1", ("P",), "VF", "Fix: x"),
        ("- [ ] T001 [US1] Set up", "T001", (), None, "[US1] Set up"),
        ("- [ ] Write the docs", "t1", (), None, "Write the docs"),
        ("- [ ] ../../x leave", "t1", (), None, "../../x leave"),
        ("- [ ] 1.2x is odd", "t1", (), None, "1.2x is odd"),
        ("- [ ] VFX is odd", "t1", (), None, "VFX is odd"),
        ("- [ ]\t1.2\tParse", "1.2", (), None, "Parse"),
        ("- [X] 1.2 Straße 🚀 ", "1.2", (), None, "Straße 🚀"),
    ],
)
def test_a_task_line_is_taken_apart(
    line: str, name: str, markers: Sequence[str], fixes: str | None, title: str
) -> None:
    task = only_task(line)
    assert (task.id, task.markers, task.fixes, task.title) == (name, markers, fixes, title)


def test_tasks_without_an_id_are_numbered_around_the_ids_in_the_text() -> None:
    plan = read("- [ ] First\n- [ ] T2 Given\n- [ ] Second\n- [ ] 1.1 Third\n- [ ] Fourth\n")
    assert [task.id for task in plan.tasks] == ["t1", "T2", "t3", "1.1", "t4"]
    assert plan_problems(plan) == ()


def test_a_task_without_an_id_keeps_its_number_when_the_text_is_edited() -> None:
    text = "- [ ] New\n- [ ] Same\n- [ ] Same\n- [ ] Second\n"
    plan = read_tasks_md(text, "p", runnable=bool, titles={"t1": "First", "t2": "Second", "t3": "Same", "1.1": "New"})
    assert [(task.id, task.title) for task in plan.tasks] == [
        ("t4", "New"),
        ("t3", "Same"),
        ("t5", "Same"),
        ("t2", "Second"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "- [y] 1.2 x",
        "-[ ] 1.2 x",
        "- [ ]1.2 x",
        "- [] 1.2 x",
        "* [ ] 1.2 x",
        "- [ x ] VE2 x",
        "1. [ ] 1.2 x",
        " - [ ] 1.2 x",
    ],
)
def test_a_line_that_is_clearly_meant_as_a_task_is_a_problem(line: str) -> None:
    (problem,) = read(f"- [ ] 1.1 A\n{line}\n").problems
    assert problem.line == 2
    assert line.strip() in problem.message
    assert problem.hint


@pytest.mark.parametrize("line", ["- [  ] x", "-[ ] x", "* [x] x", "- [ ]x"])
def test_a_line_that_may_be_meant_as_a_task_is_a_concern(line: str) -> None:
    plan = read(f"- [ ] 1.1 A\n  - **Verify**: `make`\n{line}\n")
    assert plan.problems == ()
    assert [concern.line for concern in plan.concerns] == [3]


@pytest.mark.parametrize(
    "line", ["- [x](https://a.b)", "- [1] A book", "- [x]: https://a.b", "- [P] marker", "- plain"]
)
def test_other_brackets_are_nobodys_concern(line: str) -> None:
    plan = read(f"- [ ] 1.1 A\n  - **Verify**: `make`\n{line}\n")
    assert (plan.problems, plan.concerns) == ((), ())


def test_every_problem_is_told_at_once_with_its_line_and_a_hint() -> None:
    problems = read("- [ ]\n- [y] 1.1 x\n- [ ] 1.2 fine\n```\n- [ ] 1.3 hidden\n").problems
    assert [problem.line for problem in problems] == [1, 2, 4]
    assert all(problem.hint for problem in problems)


def test_a_task_without_a_title_is_a_problem_unless_it_has_an_id() -> None:
    assert [problem.message for problem in read("- [ ]  \n").problems] == ["A task has no title."]
    plan = read("- [x] 1.1\n")
    assert plan.problems == ()
    assert [concern.message for concern in plan.concerns] == ["Task 1.1 has no title."]


def test_a_fix_of_an_unknown_task_is_a_concern() -> None:
    concerns = read("- [ ] 1.2.1 [FIX 1.2] Fix\n  - **Verify**: `make`\n").concerns
    assert [concern.message for concern in concerns] == ["Task 1.2.1 fixes task 1.2, which is not in the plan."]


# --- blocks and literal text ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "after",
    ["## Notes\n", "# Part\n", "### Detail\n", "Some text.\n", "- a list\n", "> quoted\n", "- [ ] 1.2 B\n"],
)
def test_a_block_ends_with_the_next_line_at_column_0(after: str) -> None:
    block = "- [ ] 1.1 A\n  - [ ] nested\n\n  ## indented\n\tmore\n"
    assert read(f"{block}\n\n{after}  - **Verify**: `make`\n").tasks[0].body == block


LITERALS = {
    "fence": "```\n{}\n```",
    "tilde fence with info": "~~~~ md\n```\n{}\n~~~\n~~~~",
    "fence in a task": "  ```\n  code\n  {}\n  ```".replace("{}", "- [ ] 9.9 hidden\n## Hidden\n# x"),
    "heredoc in a task": "  1. Run `cat <<'END'\n{}\nEND\n)`",
    "heredoc with a dash": "  1. Run cat <<-END\n{}\n\tEND",
    "heredoc in a fence in a task": '  ```bash\n  x "$(cat <<BODY\n{}\n\n# x\nBODY\n)"\n  ```',
    "two heredocs": "  run a <<A b <<B\n{}\nA\n{}\nB",
    "comment": "<!--\n{}\n-->",
    "comment in a task": "  <!-- off\n{}\n  -->",
}


@pytest.mark.parametrize("literal", LITERALS.values(), ids=LITERALS.keys())
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_literal_text_holds_no_tasks_headings_or_fields(literal: str, end: str) -> None:
    hidden = "- [ ] 9.9 hidden\n## Hidden\n  - **Verify**: `hidden`"
    text = f"- [ ] 1.1 A\n{literal.replace('{}', hidden)}\n  - **Verify**: `make a`\n- [ ] 1.2 B\n  - **Verify**: `make b`\n"
    plan = read(text.replace("\n", end))
    assert [(task.id, [check.command for check in task.checks]) for task in plan.tasks] == [
        ("1.1", ["make a"]),
        ("1.2", ["make b"]),
    ]
    assert (plan.problems, plan.concerns) == ((), ())


@pytest.mark.parametrize(
    ("opener", "message"),
    [
        ("```sh", "The code block that begins on line 3 never ends and hides a line that looks like a task."),
        ("<!-- off", "The comment that begins on line 3 never ends and hides a line that looks like a task."),
    ],
)
def test_what_never_ends_and_hides_a_task_is_a_problem(opener: str, message: str) -> None:
    plan = read(f"- [ ] 1.1 A\n  - **Verify**: `make`\n{opener}\n- [ ] 1.2 B\n")
    assert [(problem.message, problem.line) for problem in plan.problems] == [(message, 3)]


@pytest.mark.parametrize(
    ("opener", "message"),
    [
        ("  ```sh", "The code block that begins on line 3 is not closed before line 4."),
        ("  <!-- off", "The comment that begins on line 3 does not end; it is read as text."),
        ("  cat <<EOF", "The here-document <<EOF on line 3 does not end; it is read as text."),
    ],
)
def test_what_does_not_end_inside_a_task_hides_nothing_and_is_a_concern(opener: str, message: str) -> None:
    plan = read(f"- [ ] 1.1 A\n  - **Verify**: `make`\n{opener}\n- [ ] 1.2 B\n  - **Verify**: `make`\n")
    assert [task.id for task in plan.tasks] == ["1.1", "1.2"]
    assert plan.problems == ()
    assert [(concern.message, concern.line) for concern in plan.concerns] == [(message, 3)]


def test_a_heredoc_that_is_only_mentioned_does_not_reach_to_the_next_real_one() -> None:
    text = "- [ ] 1.1 Use cat <<EOF\n- [ ] 1.2 B\n- [ ] 1.3 C\n  cat <<EOF\n- [ ] 9.9 text\nEOF\n- [ ] 1.4 D\n"
    assert [task.id for task in read(text).tasks] == ["1.1", "1.2", "1.3", "1.4"]


def test_a_rule_at_the_top_is_not_front_matter_when_tasks_follow_it() -> None:
    assert [task.id for task in read("---\n- [ ] 1.1 A\n---\n- [ ] 1.2 B\n").tasks] == ["1.1", "1.2"]


def test_a_comment_between_tasks_belongs_to_neither() -> None:
    plan = read("- [ ] 1.1 A\n  x\n\n<!-- off\n- [ ] 9.9 B\n-->\n\n- [ ] 1.2 C\n")
    assert [task.body for task in plan.tasks] == ["- [ ] 1.1 A\n  x\n", "- [ ] 1.2 C\n"]


INDENTS = st.sampled_from(["", "  ", "    "])
WORDS = ["- [ ] 9.1 x", "- [x] y", "## h", "text", "", "- **Do**: z", "  - [ ] n", "~~", "``"]


@st.composite
def fences(draw: st.DrawFn, indent: str) -> list[str]:
    mark = draw(st.sampled_from(["`", "~"])) * draw(st.integers(3, 5))
    inside = [indent + line for line in draw(st.lists(st.sampled_from([*WORDS, mark[0] * 3 + " no"]), max_size=4))]
    closed = draw(st.sampled_from([True, True, False]))
    return [indent + mark + draw(st.sampled_from(["", "sh"])), *inside, *([indent + mark] if closed else [])]


@st.composite
def pieces(draw: st.DrawFn) -> list[str]:
    match draw(st.integers(0, 5)):
        case 0:
            return draw(fences(""))
        case 1:
            lines = draw(st.lists(st.sampled_from(WORDS), max_size=3))
            return ["<!-- off", *lines, *draw(st.sampled_from([["-->"], ["x --> y"], []]))]
        case 2:
            return [
                "",
                draw(st.sampled_from(["plain text", "# Title", "## Section", "> quote", "- item", "1. item"])),
                "",
            ]
        case _:
            below = draw(
                st.sampled_from([[], ["  - **Do**: x"], ["", "  more"], ["  - [ ] nested"], ["  <!-- a", "  -->"]])
            )
            fence = draw(st.one_of(st.just([]), fences("  "), fences("    ")))
            return [draw(st.sampled_from(["- [ ] 1.1 A", "- [x] 1.2 [P] B", "- [X] C"])), *below, *fence]


@settings(max_examples=150, deadline=None)
@given(st.lists(pieces(), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_our_tasks_are_the_top_level_list_items_that_commonmark_sees(parts: list[list[str]], end: str) -> None:
    """Here-documents, HTML blocks and lazy text at column 0 are left out: there we differ on purpose."""
    lines = [line for part in parts for line in part]
    tokens = MarkdownIt("commonmark").parse("\n".join(lines))
    items = [token.map[0] for token in tokens if token.type == "list_item_open" and token.level == 1 and token.map]
    expected = [place + 1 for place in items if re.match(r"- \[[ xX]\] ", lines[place])]
    assert [block.line for block in Reading(end.join(lines)).blocks()] == expected


# --- fields -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verify", "expected"),
    [
        (["  - **Verify**: `make a && make b`"], ["make a && make b"]),
        (["  - **Verify:** `make a`"], ["make a"]),
        (["  - **verify** : ``echo `date` | grep 2``"], ["echo `date` | grep 2"]),
        (["  - **Verify**: make a"], ["make a"]),
        (["  - **Verify**: make a (all green)"], ["make a"]),
        (["  - **Verify**: CI=1 X='a b' pytest -q"], ["CI=1 X='a b' pytest -q"]),
        (["  - **Verify**: ! pytest -q"], ["! pytest -q"]),
        (["  - **Verify**: (make a)"], ["(make a)"]),
        (["  - **Verify**: make a && (make b)"], ["make a && (make b)"]),
        (["  - **Verify**: make a \\", "      b", "    and look at it"], ["make a \\\n  b"]),
        (["  - **Verify**: `pytest a \\", "    b`"], ["pytest a \\\nb"]),
        (["  - **Verify**: Look at it", "    - run `make a`", "    - and `make b`, `make b`"], ["make a", "make b"]),
        (["  - **Verify**:", "    1. make a", "    2. then look"], ["make a"]),
        (
            ["  - **Verify**:", "    ```bash", "    if x; then", "      make", "    fi", "    ```"],
            ["if x; then\n  make\nfi"],
        ),
        (["  - **Verify**:", "    - ```", "      make a", "      ```"], ["make a"]),
        (["  - **Verify**:", "```", "make a", "```"], ["make a"]),
        (["  - **Verify**: `curl x` answers `200`"], ["curl x"]),
        (["  - **Verify**: `make a` passes, and `total()` is in `cart.py`, told in `docs/cart.md`"], ["make a"]),
        (["  - **Verify**: `b.txt` exists"], []),
        (["  - **Verify**: `./b.sh`, `c.sh`, `bin/d.py`, `python3.11`"], ["./b.sh", "c.sh", "bin/d.py", "python3.11"]),
        (["  - **Verify**: `make a`", "  - **Verify**: `make b`"], ["make a", "make b"]),
        (["  - **Verify**: `echo go | grep go`"], ["echo go | grep go"]),
        (["  - **Verify**: Look at it"], []),
        (["  - **Verify**: unknown-tool --check"], []),
        (["  - **Verify**: `echo 'Verify manually'`"], []),
        (["  - **Verify**: echo 'Verify manually'"], []),
        (["  - **Verify**: `true && echo ok; exit 0`"], []),
        (["  - **Verify**: `:`"], []),
        (["  - **Verify**: `# later`"], []),
        (["  - **Verify**: `echo 'a; b' \"c && d\" 2>&1`"], []),
        (["  - **Verify**: `echo a; make b`"], ["echo a; make b"]),
        (["  - **Verify**: `echo 'a; make b`"], ["echo 'a; make b"]),
        (["  - **Verify**: `echo a || exit 1`"], []),  # echo does not fail
        (["  - **Verify**: `grep -q a b || true`"], []),
        (["  - **Verify**: `make test; echo done`"], []),
        (["  - **Verify**: `test -f a && echo yes`"], ["test -f a && echo yes"]),
        (["  - **Verify**: `truest`"], ["truest"]),
        (["  - **Verify**:", "    ```", "    # look", "    echo ok", "    ```"], []),
        (["  - **Verify**: `", "  - **Commit**: `x`"], []),
        (["  - **Verify**:"], []),
        (["  - Verify: `make a`"], ["make a"]),
    ],
)
def test_checks_are_the_commands_in_verify_that_can_fail(verify: list[str], expected: list[str]) -> None:
    assert commands(*verify) == expected


@pytest.mark.parametrize(
    ("verify", "reason"),
    [
        ("  - **Verify**: Look at it", '"Look at it" is not a command'),
        ("  - **Verify**: `echo 'Verify manually'`", "`echo 'Verify manually'` always passes"),
        ("  - **Verify**:", "its **Verify** is empty"),
    ],
)
def test_a_task_that_nothing_verifies_says_why(verify: str, reason: str) -> None:
    (concern,) = read(f"\n- [ ] 1.1 A\n{verify}\n").concerns
    assert (concern.message, concern.line) == (f"Task 1.1 has nothing to verify it: {reason}.", 2)
    assert read(f"- [x] 1.1 A\n{verify}\n").concerns == ()


FIELD_LINES = (
    "  - **Verify**: `pytest -q`",
    "  - **verify:** `true`",
    "  - **Verify**: `200`",
    "  - **Verify**: ` `",
    "  - **Verify**: `make` or `pytest`",
    "  - **Files**: `./a.py`  ",
    "  - **FILES**: `a.py`, b.py",
    "  - **Files**: `a.py `, `./b.py`, `a.py`",
    "\t**Files**: `c.py`",
    "  - **Commit**: `fix: it`",
    "  - **Commit**: `None`",
    "  - **Agent**: `codex`",
    "    - `below.py`",
    "    goes on",
    "",
)


@given(st.lists(st.sampled_from(FIELD_LINES), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_fields_say_the_same_whether_the_task_holds_a_code_block_or_not(lines: list[str], end: str) -> None:
    code = ["  ```", "  **Files**: `not/one.py`", "  ```"]
    short, long = (only_task(end.join(["- [ ] 1.1 A", *above, *lines, ""])) for above in ([], code))
    assert replace(short, body="") == replace(long, body="")


HEADS = (
    "1.1 A",
    "1.1  A b ",
    "2 [P] A",
    "1.1. A",
    "1.1",
    "1.1 \u00a0",
    "V1 A",
    "A",
    "1.1 A [VERIFY] b",
    "1.1 2.2 A\tb",
)
OTHER_LINES = (
    "  - **Do**: Write `a.py`",
    "    1. Write it",
    "  - **Done when**: it works",
    "  plain",
    "   - odd",
    " - [ ] 9 x",
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(HEADS),
            st.lists(st.sampled_from((*OTHER_LINES, *FIELD_LINES)), max_size=6),
            st.sampled_from("x "),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_task_says_the_same_whatever_blanks_stand_behind_it(
    tasks: list[tuple[str, list[str], str]], end: str
) -> None:
    blocks = [[f"- [{tick}] {head}", *lines] for head, lines, tick in tasks]
    whole, by_line = (
        read("# T" + end + "".join(end.join([*lines, blank, ""]) for lines in blocks) + "# End" + end)
        for blank in ("", "  ")  # blanks behind a task are no part of it
    )
    assert (whole.tasks, whole.concerns, whole.problems) == (by_line.tasks, by_line.concerns, by_line.problems)


def test_many_tasks_without_a_verify_are_one_concern() -> None:
    (concern,) = with_review_concerns(read("".join(f"- [ ] {n}.1 A\n" for n in range(1, 9))), gates=0).concerns
    assert concern.message.startswith("Nothing checks tasks 1.1, 2.1, 3.1, 4.1, 5.1 and 3 more: ")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["`a.py`, `b c.py`"], ("a.py", "b c.py")),
        (["a.py, ./b.py and c.py"], ("a.py", "b.py", "c.py")),
        (["`a.py` (new), b.py - changed, `src/{a,b}.ts` created"], ("a.py", "src/{a,b}.ts", "b.py")),
        (["", "    - `a.py` (new)", "    - b.py: x", "    - c.py"], ("a.py", "c.py")),
        (["None"], ()),
        (["all the source files"], ()),
    ],
)
def test_files_are_listed_without_remarks(files: list[str], expected: tuple[str, ...]) -> None:
    assert only_task("\n".join(("- [ ] 1.1 A", f"  - **Files**: {files[0]}", *files[1:]))).files == expected


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        ("`feat(x): y`", "feat(x): y"),
        ("feat(x): y", "feat(x): y"),
        ("feat(x): y (only if needed)", "feat(x): y"),
        ("`feat: y (z)` (only if needed)", "feat: y (z)"),
        ("None", ""),
        ("none (nothing changes)", ""),
        ("`None`", ""),
        ("", None),
        ("\n    feat: below", "feat: below"),
    ],
)
def test_the_commit_is_a_subject_or_none_asked_for_or_ours_to_choose(commit: str, expected: str | None) -> None:
    assert only_task(f"- [ ] 1.1 A\n  - **Commit**: {commit}\n").commit == expected


# --- groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (["[P]", "[P]", ""], ["P1", "P1", None]),
        (["[P]", "", "[P]"], [None, None, None]),
        (["[P]", "[P] [VERIFY]", "[P]", "[P]"], [None, None, "P3", "P3"]),
        (["[P]"] * 7, ["P1"] * 5 + ["P6"] * 2),
        (["[P]"] * 6, ["P1"] * 5 + [None]),
        (["[P]", "[P]", "\n## Next", "[P]"], ["P1", "P1", None]),
    ],
)
def test_adjacent_parallel_tasks_are_a_group(tasks: list[str], expected: list[str | None]) -> None:
    text = "\n".join(task if "#" in task else f"- [ ] 1.{n} {task} Do" for n, task in enumerate(tasks))
    assert [task.group for task in read(text).tasks] == expected


def test_tasks_that_share_a_file_are_not_in_one_group() -> None:
    files = ["a.py", "b.py", "./a.py", "c.py"]
    text = "\n".join(f"- [ ] 1.{n} [P] Do\n  - **Files**: {name}" for n, name in enumerate(files))
    assert [task.group for task in read(text).tasks] == ["P1", "P1", "P5", "P5"]


# --- not text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"\x7fELF\x02\x00\x00- [ ] 1.1 A\n", "- [ ] 1.1 A\n".encode("utf-16"), bytes(range(128, 256)) * 4],
    ids=["binary", "utf-16", "no UTF-8 at all"],
)
def test_a_file_that_is_not_text_is_a_problem(content: bytes) -> None:
    plan = read(tasks_md.decode(content))
    assert plan.tasks == ()
    assert [problem.message.partition(":")[0] for problem in plan.problems] == ["The file is not text"]
    assert ticked(content, {"1.1": True}) == content


def test_a_few_damaged_bytes_are_a_concern_and_can_be_stored() -> None:
    content = "- [ ] 1.1 Caf\xe9\n  - **Verify**: `make`\n".encode("latin-1")
    plan = read(tasks_md.decode(content))
    assert plan.tasks[0].title == "Caf\ufffd"
    plan.tasks[0].body.encode()
    assert [concern.line for concern in plan.concerns] == [1]
    assert ticked(content, {"1.1": True}) == content.replace(b"[ ]", b"[x]")


# --- ticking ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_a_tick_changes_one_byte_and_nothing_else(end: str) -> None:
    before = ("\ufeff" + SPEC.replace("\n", end) + "no final newline\t ").encode()
    after = ticked(before, {"2.1": True})
    changed = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert changed == [before.index(b"- [ ] 2.1") + 3]
    assert ticked(after, {"2.1": False}) == before


def test_ticks_are_idempotent_and_a_capital_x_stays() -> None:
    content = b"- [X] 1.1 A\n- [ ] 1.2 B\n- [x] 1.3 C\n"
    assert ticked(content, {"1.1": True, "1.2": False, "1.3": True, "9.9": True}) == content
    assert ticked(content, {"1.1": False, "1.3": False}) == b"- [ ] 1.1 A\n- [ ] 1.2 B\n- [ ] 1.3 C\n"


def test_a_box_inside_a_heredoc_is_never_ticked() -> None:
    assert ticked(SPEC.encode(), {"9.9": False}) == SPEC.encode()


def test_a_task_without_an_id_is_ticked_by_the_title_it_had() -> None:
    content = b"- [ ] New\n- [ ] First\n"
    assert ticked(content, {"t1": True}, known={"t1": "First"}) == b"- [ ] New\n- [x] First\n"
    assert ticked(content, {"t1": True}, known={"t1": "Gone"}) == content


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([b"- [ ] 1.1 A", b"- [x] 1.2 B", b"- [X] C", b"```", b"  cat <<E", b"E", b"<!--", b"-->"]),
            st.binary(max_size=6).filter(lambda line: b"\0" not in line),
        ),
        max_size=12,
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.dictionaries(st.sampled_from(["1.1", "1.2", "t1", "t2"]), st.booleans()),
)
def test_whatever_the_bytes_ticks_touch_only_boxes(lines: list[bytes], end: bytes, changes: dict[str, bool]) -> None:
    before = end.join(lines)
    after = ticked(before, changes)
    boxes = {name: at.box for name, at in tasks_md.locate(tasks_md.decode(before)).places.items()}
    assert len(after) == len(before)
    differing = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert len(differing) <= len(boxes.keys() & changes.keys())
    assert all(before[place - 3 : place] == b"- [" and after[place] in b" x" for place in differing)
    plan = read(tasks_md.decode(after))
    seen: dict[str, bool] = {}
    for task in plan.tasks:
        seen.setdefault(task.id, task.done)
    assert all(seen[name] is ticked for name, ticked in changes.items() if name in boxes)


# --- dependencies -----------------------------------------------------------------------------------

ONE_OF_EACH = "# P\n\n- [ ] 1.1 A\n- [ ] 1.2 B\n- [ ] 1.3 C\n"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("**Depends**: 1.1, 1.2", ("1.1", "1.2")),
        ("**Depends on**: `1.1` (the parser) and task 1.2", ("1.1", "1.2")),
        ("**Requires:** 1.2", ("1.2",)),
        ("**Blocked by**: 1.1", ("1.1",)),
        ("**depends_on**: [1.1, 1.2]", ("1.1", "1.2")),
        ("**Blocked-by**: 1.1-1.2", ("1.1", "1.2")),
        ("**Depends**: tasks 1.1 to 1.2", ("1.1", "1.2")),
        ("**Depends**:\n    - 1.1\n    - task 1.2 (the parser)", ("1.1", "1.2")),
        ("Depends on: `1.2`", ("1.2",)),
        ("**Requires**: Python 3.11, Node 20", ()),
        ("**Depends**: none", ()),
    ],
)
def test_a_task_may_name_those_that_must_be_done_before(field: str, expected: tuple[str, ...]) -> None:
    plan = read(f"{ONE_OF_EACH}  - {field}\n  - **Verify**: `make`\n")
    assert plan.tasks[2].depends_on == expected


def test_a_dependency_on_a_task_that_is_not_there_makes_the_plan_invalid() -> None:
    (problem,) = plan_problems(read(f"{ONE_OF_EACH}  - **Depends**: 4.1\n"))
    assert problem.message == "Task 1.3 depends on an unknown task '4.1'."


@pytest.mark.parametrize("field", ["**Needs**: 1.1", "*Depends*: 1.1", "__Waits for__: 1.1", "**After**: 1.1, 1.2"])
def test_a_field_that_names_tasks_and_is_not_read_is_told(field: str) -> None:
    told = [concern.message for concern in read(f"{ONE_OF_EACH}  - {field}\n").concerns]
    assert f"Task 1.3: the field {field.partition(':')[0].strip('*_')!r} names tasks and is not read." in told


def test_the_steps_that_are_shown_are_those_that_a_run_takes() -> None:
    lines = ("1.1 A", "1.2 B [P]", "1.3 [P] C", "1.4 D", "1.5 E")
    text = "# Plan\n\n" + "".join(f"- [ ] {line}\n  - **Verify**: `true`\n" for line in lines)
    text = text.replace("1.4 D\n", "1.4 D\n  - **Depends**: 1.1, 1.2\n")
    steps = [(one.tasks, one.parallel) for one in execution_batches(read(text))]
    assert steps == [(("1.1",), False), (("1.2", "1.3"), True), (("1.4", "1.5"), False)]
