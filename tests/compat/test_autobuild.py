"""The state files of autobuild: before a retry, after it succeeded, after it failed."""

import json
from typing import Any

import pytest

from unstuck.compat.autobuild import config, phase
from unstuck.diagnosis.captured import failure_details, headline
from unstuck.journal.run_state import RunState, fold
from unstuck.model.action import Accept, Action, Decision, Halt, Retry
from unstuck.model.changes import Changes
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    Entry,
    Event,
    Options,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.failure import Failure, Kind
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Task
from unstuck.model.verdict import Verdict
from unstuck.policy.schedule import startable, waits_for_siblings

SIBLINGS = ("2a", "2b", "2c")
TESTS = ("auth.test.ts::validateToken", "auth.test.ts::refreshToken", "auth.test.ts::handleExpired")
RED = Failure(kind=Kind.TEST_FAILED, summary="The tests fail", tests=TESTS)


def started(**options: Any) -> RunStarted:
    tasks = [Task(id="1", title="Setup", done=True)]
    tasks += [
        Task(
            id=name,
            label=name.upper(),
            title="Backend API",
            depends_on=("1",),
            parallel_with=tuple(one for one in SIBLINGS if one != name),
        )
        for name in SIBLINGS
    ]
    tasks.append(Task(id="3", title="Integration", depends_on=SIBLINGS))
    chosen = Options(agents=("a",), max_attempts=2, siblings_first=True, profile="single-retry", **options)
    return RunStarted(
        run="r", plan="plan.md", format="superplan", base="0", branch=None, options=chosen, tasks=tuple(tasks)
    )


def tried(name: str, number: int, failure: Failure | None, action: Action) -> list[Event]:
    """Return the events of one attempt that ended so."""
    ended = Ended(ending="exited", exit_code=0)
    verdict = Verdict(status="fail" if failure else "pass", tree="t", base="0")
    return [
        AttemptStarted(task=name, attempt=number, agent="a", base="0", slot=0),
        SessionStarted(task=name, session=1),
        SessionEnded(task=name, outcome=Outcome(ended=ended, claim="done")),
        Verified(task=name, verdict=verdict),
        Classified(task=name, failure=failure),
        Decided(task=name, decision=Decision(action=action, reason="", rung="")),
        Acted(
            task=name,
            action=action,
            commit=None if failure else "c1",
            changes=None if failure else Changes(created=("a.ts",)),
        ),
    ]


def folded(*events: Event) -> RunState:
    return fold(Entry(seq, float(seq), event) for seq, event in enumerate(events, 1))


def shown(state: RunState, name: str = "2a") -> dict[str, Any]:
    content = phase(state, name)
    return {key: content[key] for key in ("phase_id", "status", "attempt", "error")}


FIRST = tried("2a", 1, RED, Retry())


def test_before_the_retry_the_file_has_the_first_error() -> None:
    state = folded(started(), *FIRST, AttemptStarted(task="2a", attempt=2, agent="a", base="0", slot=0))
    assert shown(state) == {
        "phase_id": "2a",
        "status": "running",
        "attempt": 2,
        "error": {"attempt_1": {"type": "test_failure", "message": "3 tests failing"}},
    }
    assert phase(state, "2a")["max_attempts"] == 2


def test_after_a_retry_that_succeeded_the_error_is_resolved() -> None:
    state = folded(started(), *FIRST, *tried("2a", 2, None, Accept()))
    assert shown(state) == {
        "phase_id": "2a",
        "status": "complete",
        "attempt": 2,
        "error": {"attempt_1": {"type": "test_failure", "message": "3 tests failing"}, "resolved_on_retry": True},
    }
    assert phase(state, "2a")["commit"]["files_created"] == ["a.ts"]


def test_after_a_retry_that_failed_both_errors_and_the_end_are_there() -> None:
    state = folded(started(), *FIRST, *tried("2a", 2, RED, Halt(question="q")))
    assert shown(state) == {
        "phase_id": "2a",
        "status": "failed",
        "attempt": 2,
        "error": {
            "attempt_1": {"type": "test_failure", "message": "3 tests failing"},
            "attempt_2": {"type": "test_failure", "message": "3 tests still failing"},
            "final": "Failed after maximum retries",
        },
    }
    blocked = phase(state, "3")
    assert (blocked["status"], blocked["error"]["blocking_phase"]) == ("blocked", "2a")
    assert phase(state, "1")["dependencies"]["blocks"] == ["2a", "2b", "2c"]
    assert config(state)["phases"] == {"total": 5, "completed": 1, "failed": 1, "pending": 3}
    assert json.dumps(blocked)


def test_a_failed_phase_waits_for_first_tries_and_no_longer() -> None:
    state = folded(
        started(),
        *FIRST,
        AttemptStarted(task="2b", attempt=1, agent="a", base="0", slot=1),
        *tried("2c", 1, None, Accept()),
    )
    assert waits_for_siblings(state, "2a")
    assert startable(state, {"2b"}, 3) == []
    state = folded(started(), *FIRST, *tried("2b", 1, RED, Retry()), *tried("2c", 1, None, Accept()))
    assert startable(state, (), 4) == ["2a", "2b"], "both retries run side by side"


def test_a_phase_starts_as_soon_as_there_is_room_beside_those_that_run() -> None:
    state = folded(started(), *tried("1", 1, None, Accept()))
    assert startable(state, (), 2) == ["2a", "2b"]
    assert startable(state, {"2a", "2b"}, 1) == ["2c"]


def test_after_a_halt_the_retries_of_the_batch_are_finished_and_nothing_else_starts() -> None:
    final = tried("2b", 2, RED, Halt(question="q"))
    state = folded(started(), *FIRST, *tried("2b", 1, RED, Retry()), *tried("2c", 1, None, Accept()), *final)
    assert state.halted
    assert startable(state, (), 4) == ["2a"]
    state = folded(started(), *tried("2a", 1, RED, Halt(question="not retryable")))
    assert startable(state, (), 4) == []


# --- what is captured, by type -------------------------------------------------------------------------

LINT = (
    "src/a.ts:3:5  error  'x' is unused  no-unused-vars\nsrc/b.py:7:1: F401 `os` imported but unused\nFound 2 errors."
)
TYPES = "src/a.ts(12,3): error TS2322: Type 'string' is not assignable to type 'number'.\nFound 1 error."


@pytest.mark.parametrize(
    ("failure", "captured"),
    [
        pytest.param(
            Failure(kind=Kind.TEST_FAILED, summary="s", tests=TESTS, detail="E   AssertionError: null is not a user"),
            {"count": 3, "files": ["auth.test.ts"], "tests": list(TESTS), "messages": ["AssertionError: null is not a user"]},
            id="test_failure",
        ),
        pytest.param(
            Failure(kind=Kind.LINT_FAILED, summary="s", detail=LINT),
            {"count": 2, "files": ["src/a.ts", "src/b.py"], "rules": ["no-unused-vars", "F401"], "lines": ["src/a.ts:3", "src/b.py:7"]},
            id="lint_error",
        ),
        pytest.param(
            Failure(kind=Kind.TYPES_FAILED, summary="s", detail=TYPES),
            {
                "count": 1,
                "files": ["src/a.ts"],
                "messages": ["error TS2322: Type 'string' is not assignable to type 'number'."],
                "lines": ["src/a.ts:12"],
            },
            id="typecheck_error",
        ),
        pytest.param(
            Failure(kind=Kind.TIMEOUT, summary="s"),
            {"after_seconds": 600.0, "last_activity": "npm test"},
            id="timeout",
        ),
        pytest.param(
            Failure(kind=Kind.CLAIM_REFUTED, summary="s"),
            {"claimed": "done", "found": "fail", "discrepancy": []},
            id="verification_mismatch",
        ),
        pytest.param(
            Failure(kind=Kind.FORMAT_FAILED, summary="s", detail="would reformat src/a.py\nsrc/b.go\n[warn] src/c.ts\n1 file would be reformatted."),
            {"count": 3, "files": ["src/a.py", "src/b.go", "src/c.ts"]},
            id="format_error",
        ),
        pytest.param(
            Failure(kind=Kind.AGENT_CRASHED, summary="s"), {"claimed": "done", "last_activity": "npm test"}, id="task_incomplete"
        ),
        pytest.param(
            Failure(kind=Kind.RESULT_UNREADABLE, summary="Not to be read"),
            {"reason": "Not to be read", "last_activity": "npm test"},
            id="parse_error",
        ),
        pytest.param(Failure(kind=Kind.UNKNOWN, summary="s"), {}, id="unknown"),
    ],
)  # fmt: skip
def test_each_type_has_its_own_facts(failure: Failure, captured: dict[str, Any]) -> None:
    outcome = Outcome(ended=Ended(ending="wall_clock", seconds=600.0, tail="starting\nnpm test\n"), claim="done")
    assert failure_details(failure, Verdict(status="fail", tree="t", base="b"), outcome) == captured


@pytest.mark.parametrize(
    ("failure", "before", "said"),
    [
        (RED, None, "3 tests failing"),
        (RED, RED, "3 tests still failing"),
        (Failure(kind=Kind.LINT_FAILED, summary="s", detail=LINT), None, "2 lint errors"),
        (Failure(kind=Kind.TIMEOUT, summary="It took too long"), None, "It took too long"),
    ],
)
def test_a_failure_is_said_in_a_few_words(failure: Failure, before: Failure | None, said: str) -> None:
    assert headline(failure, before) == said
