"""The look that is taken at a plan before it is run."""

import pytest

from unstuck.model.plan import Plan, Task, conventional_subject, subject_parts
from unstuck.model.verdict import Check
from unstuck.plans.review import with_review_concerns


def told(*tasks: Task, gates: int = 0) -> str:
    return "\n".join(
        one.message
        for one in with_review_concerns(Plan(path="p", format="superplan", tasks=tasks), gates=gates).concerns
    )


SOUND = Task(id="1", title="Add a parser", items=("Parse dates",), checks=(Check(command="pytest"),))


def test_a_sound_plan_raises_no_concern() -> None:
    assert told(SOUND) == ""


@pytest.mark.parametrize("item", ["Handle errors etc.", "TBD", "Tidy up as needed", "Support various formats"])
def test_an_ambiguous_item_is_asked_about(item: str) -> None:
    assert "is ambiguous" in told(Task(id="1", title="A", items=(item,)), gates=1)


@pytest.mark.parametrize(
    "step",
    ["rm -rf build", "git push origin main --force", "git reset --hard HEAD~3", "DROP TABLE users;", "DELETE FROM users;", "terraform destroy", "TRUNCATE TABLE logs"],
)  # fmt: skip
def test_a_destructive_step_is_pointed_out(step: str) -> None:
    assert "something destructive" in told(Task(id="1", title="A", body=f"First run\n{step}\nthen go on"), gates=1)


def test_what_nothing_checks_is_named_unless_the_repository_has_checks() -> None:
    bare = Task(id="2", title="B")
    assert "Nothing checks phase 2" in told(SOUND, bare)
    assert told(SOUND, bare, gates=1) == ""


def test_what_is_done_already_is_not_reviewed() -> None:
    assert told(Task(id="1", title="TBD", body="rm -rf /", done=True)) == ""


@pytest.mark.parametrize(
    ("title", "text", "subject"),
    [
        ("Bootstrap (if needed)", "Add quality tools", "chore(bootstrap): add quality tools"),
        ("Backend API", "Implement API endpoint(s)", "feat(backend-api): implement API endpoint(s)"),
        ("Tests", "Add edge cases.", "test(tests): add edge cases"),
        ("feat(db): add user schema", "", "feat(db): add user schema"),
        ("Setup", "API keys", "chore(setup): API keys"),
    ],
)
def test_a_subject_is_made_in_the_conventional_form(title: str, text: str, subject: str) -> None:
    assert conventional_subject(title, text) == subject
    assert all(subject_parts(subject))
