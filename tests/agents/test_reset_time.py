"""When a limit ends, in the words of providers."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest

from unstuck.agents.reset_times import reset_time

NOW = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)
ZONES: dict[str, tzinfo] = {"America/New_York": timezone(timedelta(hours=-5)), "UTC": UTC}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("11:59pm", datetime(2026, 11, 15, 23, 59, tzinfo=UTC)),
        ("3pm", datetime(2026, 11, 16, 15, 0, tzinfo=UTC)),
        ("18:00", datetime(2026, 11, 16, 18, 0, tzinfo=UTC)),
        ("3pm (America/New_York)", datetime(2026, 11, 16, 20, 0, tzinfo=UTC)),
        ("Dec 20 at 3pm (America/New_York)", datetime(2026, 12, 20, 20, 0, tzinfo=UTC)),
        ("Jan 3, 9am", datetime(2027, 1, 3, 9, 0, tzinfo=UTC)),
        ("60", datetime(2026, 11, 15, 20, 1, tzinfo=UTC)),
        ("6.2s", datetime(2026, 11, 15, 20, 0, 6, 200000, tzinfo=UTC)),
        ("1h30m", datetime(2026, 11, 15, 21, 30, tzinfo=UTC)),
        ("20 seconds", datetime(2026, 11, 15, 20, 0, 20, tzinfo=UTC)),
        ("2026-11-15T21:00:00Z", datetime(2026, 11, 15, 21, 0, tzinfo=UTC)),
        ("Sun, 15 Nov 2026 20:30:00 GMT", datetime(2026, 11, 15, 20, 30, tzinfo=UTC)),
        (str(int(NOW.timestamp()) + 90), NOW + timedelta(seconds=90)),
        ("soon", None),
        ("99:99", None),
        ("9999999999999999", None),
        ("", None),
    ],
)
def test_words_become_a_moment(words: str, expected: datetime | None) -> None:
    assert reset_time(words, NOW, ZONES.get) == expected


def test_the_minute_that_is_running_is_meant_not_tomorrow() -> None:
    """Codex leaves the seconds out: a limit that ends at 20:03:50 is told as 8:03 PM."""
    running = NOW.replace(minute=3, second=40)
    assert reset_time("8:03 PM", running, ZONES.get) == NOW.replace(minute=3)
    assert reset_time("8:02 PM", running, ZONES.get) == NOW.replace(minute=2) + timedelta(days=1)
