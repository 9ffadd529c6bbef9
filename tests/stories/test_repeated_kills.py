"""A supervisor that is killed again and again: nobody is asked about it, and every task is done once."""

import random
from typing import TYPE_CHECKING

import pytest

from unstuck.app.inspect import look
from unstuck.model.action import Escalate, Halt
from unstuck.model.event import Acted

if TYPE_CHECKING:
    from tests.project import Project


@pytest.mark.parametrize(
    ("tasks", "kills"),
    [(4, 6), pytest.param(60, 100, marks=(pytest.mark.exhaustive, pytest.mark.timeout(1200)))],
    ids=["some", "many"],
)
def test_a_run_that_is_killed_again_and_again_halts_nowhere_and_does_every_task_once(
    project: "Project", tasks: int, kills: int
) -> None:
    numbers = range(1, tasks + 1)
    project.plan(*((f"1.{number} [P]", f"Make {number}", f"test -f {number}.txt") for number in numbers))
    project.script(**{f"_1_{number}": [[{"print": "at work"}, {"write": f"{number}.txt"}]] for number in numbers})
    lines = random.Random(18)  # where it dies is to be the same every time
    killed = 0
    while killed < kills:
        with project.start("run", "tasks.md", "--agent", project.agent, "--parallel", "2") as run:
            assert run.stderr is not None
            said = [run.stderr.readline() for _ in range(lines.randint(1, 5))]
            run.kill()
        if not all(said):
            break  # it was done before
        killed += 1
    result = project.run("--parallel", "2")
    assert result.code == 0, result
    view = look(project.root)
    assert sum("which died" in note for note in view.state.notes) >= min(killed, kills) // 2 > 1, "it was at work"
    acts = [entry.event.action for entry in view.entries if isinstance(entry.event, Acted)]
    assert not [action for action in acts if isinstance(action, Halt | Escalate)]
    assert sorted(subject for subject in project.commits() if subject.startswith("Make ")) == sorted(
        f"Make {number}" for number in numbers
    )
