"""The predecessor's layers before a task counts as done: no contradiction, a signal, and work that stands up to a look."""

import pytest

from unstuck.agents.claims import read_statement, session_claim
from unstuck.model.outcome import Ended
from unstuck.model.plan import Task
from unstuck.model.verdict import Check
from unstuck.policy.profiles import profile
from unstuck.testing import Part, World

PHRASES = ("requires manual", "cannot be automated", "could not complete", "needs human", "manual intervention")


def ended(tail: str) -> Ended:
    return Ended(ending="exited", exit_code=0, tail=tail)


@pytest.mark.parametrize("signal", ["TASK_COMPLETE", "VERIFICATION_PASS", "ALL_TASKS_COMPLETE"])
@pytest.mark.parametrize("phrase", PHRASES)
def test_layer_one_a_claim_beside_a_contradiction_is_not_accepted(phrase: str, signal: str) -> None:
    for text in (f"This {phrase} by the user.\n{signal}", f"{signal}\nThis {phrase.upper()} by the user.\n"):
        said = read_statement(text)
        assert (said.denied, said.contradictions) == (True, (phrase,))
        assert session_claim(ended(text)) == "none"


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("Everything is done.", False),
        ("I will print TASK_COMPLETE when I am done.", False),
        ("```\nTASK_COMPLETE\n```", False),
        ("VERIFICATION_FAIL", False),
        ("TASK_COMPLETE\nstatus: pass\ncommit: abc1234\nverify: ok", True),
        ("**TASK_COMPLETE**", True),
        ("VERIFICATION_PASS", True),
        ("ALL_TASKS_COMPLETE", True),
    ],
)
def test_layer_two_only_a_signal_on_a_line_of_its_own_is_accepted(text: str, accepted: bool) -> None:
    said = read_statement(text)
    assert (said.claim == "done" and not said.denied) is accepted


@pytest.mark.parametrize(
    ("check", "tail", "status"),
    [
        ("right", "TASK_COMPLETE", "complete"),
        ("absent", "TASK_COMPLETE", "stuck"),
        ("base", "TASK_COMPLETE", "complete"),
        ("base", "This needs human by the user.\nTASK_COMPLETE", "stuck"),
        ("right", "This needs human by the user.\nTASK_COMPLETE", "complete"),
    ],
    ids=["green", "red", "green-before", "contradicted-and-green-before", "contradicted-and-turned-green"],
)
def test_layer_three_the_checks_decide_and_a_denied_claim_is_none(check: str, tail: str, status: str) -> None:
    task = Task(id="1.1", title="A", checks=(Check(command=check),))
    state = World({"1.1": [Part(work="right", ended=ended(tail))]}).run([task], policy=profile("max-retries"))
    assert state.tasks["1.1"].status == status
