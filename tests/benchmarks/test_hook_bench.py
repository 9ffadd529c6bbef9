"""`benchmarks/hook.py` measures what it says, on a small scale; its targets are judged by `make bench`."""

from benchmarks.hook import measure


def test_the_hook_is_measured_fresh_and_over_a_session() -> None:
    report = measure(repeats=1, calls=30, say=lambda _: None)
    assert set(report.figures["fresh"]) == {"python -c pass", "non-event", "before a call", "diagnosis"}
    assert report.figures["session"]["leaks"] == 0
    assert report.figures["session"]["bytes"] < 10_000
