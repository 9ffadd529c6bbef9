import pytest

from unstuck.model.plan import Plan, Task, plan_problems, waves_of


def plan(*tasks: Task) -> Plan:
    return Plan(path="plan.md", format="tasks.md", tasks=tasks)


def test_a_sound_plan_has_no_problems() -> None:
    assert plan_problems(plan(Task(id="1.1", title="a"), Task(id="1.2", title="b", depends_on=("1.1",)))) == ()


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        pytest.param([], "no tasks", id="empty"),
        pytest.param([Task(id="1.1", title="a"), Task(id="1.1", title="b", line=7)], "used twice", id="duplicate"),
        pytest.param([Task(id="2A", title="a"), Task(id="2a", title="b")], "used twice", id="same-file-name"),
        pytest.param([Task(id="1.1", title="a", depends_on=("9.9",))], "unknown task", id="unknown-dependency"),
        pytest.param([Task(id="1.1", title="a", depends_on=("1.1",))], "depends on itself", id="self"),
        pytest.param([Task(id="../../x", title="a")], "cannot be used", id="path"),
        pytest.param([Task(id="1\n2", title="a")], "cannot be used", id="newline"),
        pytest.param([Task(id="1.1\n", title="a")], "cannot be used", id="trailing-newline"),
        pytest.param([Task(id="a..b", title="a")], "cannot be used", id="dots"),
        pytest.param([Task(id="x" * 65, title="a")], "cannot be used", id="long"),
        pytest.param([Task(id="", title="a")], "cannot be used", id="nothing"),
    ],
)
def test_an_impossible_plan_says_why(tasks: list[Task], says: str) -> None:
    assert any(says in problem.message and problem.hint for problem in plan_problems(plan(*tasks)))


def test_a_cycle_is_shown_whole() -> None:
    tasks = [Task(id=a, title=a, depends_on=(b,)) for a, b in [("x", "y"), ("y", "z"), ("z", "x")]]
    (problem,) = plan_problems(plan(*tasks))
    assert problem.message == "The tasks depend on each other in a circle: x → y → z → x."


def test_all_problems_are_reported_at_once_in_the_order_of_the_text() -> None:
    tasks = [
        Task(id="!", title="a", line=9),
        Task(id="b", title="b", line=3, depends_on=("q",)),
        Task(id="b", title="c", line=5),
    ]
    assert [problem.line for problem in plan_problems(plan(*tasks))] == [3, 5, 9]


def test_batches_keep_the_order_of_the_text() -> None:
    tasks = [
        Task(id="b", title=""),
        Task(id="a", title=""),
        Task(id="c", title="", depends_on=("a", "b")),
        Task(id="d", title=""),
    ]
    assert waves_of(tasks) == (("b", "a", "d"), ("c",))
