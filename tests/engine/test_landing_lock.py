"""Which task lands first when several are finished."""

import threading

from tests.waiting import wait_until

from unstuck.engine.shared_state import LandingLock


def never() -> bool:
    return False


def test_the_waiting_task_that_comes_first_in_the_plan_lands_first() -> None:
    lock, order = LandingLock(), list[str]()
    assert lock.acquire("holder", 9, is_given_up=never)

    def land(task: str, place: int) -> None:
        assert lock.acquire(task, place, is_given_up=never)
        order.append(task)
        lock.release(task)

    threads = [threading.Thread(target=land, args=(task, place)) for task, place in (("c", 3), ("a", 1), ("b", 2))]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(lock._waiting) == 3, "all three tasks to wait for the lock")
    lock.release("holder")
    for thread in threads:
        thread.join(timeout=10)
    assert order == ["a", "b", "c"]


def test_a_stopped_run_ends_the_wait_for_the_lock_without_a_trace() -> None:
    lock = LandingLock()
    assert lock.acquire("a", 1, is_given_up=never)
    assert lock.acquire("a", 1, is_given_up=never), "acquiring the lock twice is harmless"
    assert not lock.acquire("b", 0, is_given_up=lambda: True)
    lock.release("b")
    lock.release("a")
    assert lock.acquire("c", 5, is_given_up=never)
