"""Who lands when several tasks are finished."""

import threading

from tests.waiting import wait_until

from unstuck.engine.landing_lock import Turn


def never() -> bool:
    return False


def test_of_those_that_wait_the_first_in_the_plan_goes_first() -> None:
    turn, order = Turn(), list[str]()
    assert turn.take("holder", 9, given_up=never)

    def land(name: str, place: int) -> None:
        assert turn.take(name, place, given_up=never)
        order.append(name)
        turn.give(name)

    threads = [threading.Thread(target=land, args=(name, place)) for name, place in (("c", 3), ("a", 1), ("b", 2))]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(turn._waiting) == 3, "all to wait: nothing else tells")
    turn.give("holder")
    for thread in threads:
        thread.join(timeout=10)
    assert order == ["a", "b", "c"]


def test_waiting_ends_when_the_run_is_stopped_and_giving_up_leaves_no_trace() -> None:
    turn = Turn()
    assert turn.take("a", 1, given_up=never)
    assert turn.take("a", 1, given_up=never), "taking it twice is harmless"
    assert not turn.take("b", 0, given_up=lambda: True)
    turn.give("b")
    turn.give("a")
    assert turn.take("c", 5, given_up=never)
