"""Find the time at which a limit ends, in the words of a provider."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, partial
from typing import Final

Zone = Callable[[str], tzinfo | None]
"""Returns the time zone of a name such as `Europe/Berlin`."""

WAIT_HEADERS: Final = (
    "retry-after-ms",
    "retry-after",
    "anthropic-ratelimit-unified-reset",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-reset",
)
"""HTTP headers that state how long to wait, the most exact first."""
RESET_PATTERNS: Final = (
    r"(?i)limit reached\|(?P<when>\d{10,13})",
    r"""(?i)["']?resets?_?at["']?\s*[:=]\s*["']?(?P<when>\d{10,13}|\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)""",
    (
        r"""(?i)["']?(?:resets?_?in_?seconds|retry[-_ ]?after"""
        r"""|retry_after_seconds)["']?\s*[:=]\s*["']?(?P<when>\d+(?:\.\d+)?)(?![\w:-])"""
    ),
    r"""(?i)["']?retry_?delay["']?\s*[:=]\s*["']?(?P<when>[\d.]+ ?m?s)\b""",
    r'(?i)\bresets?(?: again)?(?:,|:)?(?: (?:at|on|in|after))? (?P<when>[\w(][^|\n"}\]·•∙]{1,70})',
    (
        r"(?i)\b(?:try(?: again)?|retry|available(?: again)?|back|wait|continue"
        r'|resume)(?: (?:at|in|after|on|until|for))? (?P<when>(?:about |approximately )?[\w(][^|\n"}\]·•∙]{1,70})'
    ),
)
"""The end of a limit in the provider's words: the group `when` is a moment or a duration."""

UNIT_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
DURATION = r"(\d+(?:\.\d+)?) ?(ms|milli|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![A-Za-z])"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ZONE_NAMES: Final[Mapping[str, str]] = {
    "PT": "America/Los_Angeles", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
    "ET": "America/New_York", "EST": "America/New_York", "EDT": "America/New_York",
    "CT": "America/Chicago", "CST": "America/Chicago", "CDT": "America/Chicago",
    "MT": "America/Denver", "MST": "America/Denver", "MDT": "America/Denver",
    "CET": "Europe/Berlin", "CEST": "Europe/Berlin", "BST": "Europe/London", "JST": "Asia/Tokyo",
}  # fmt: skip
"""Time zones by their usual letters. The date decides between summer and winter time."""
NOON, DAYS_PER_WEEK = 12, 7
LONGEST_WAIT = timedelta(days=400)
LONGEST_TEXT_OF_TIME = 100


def reset_in_text(text: str, at: float | None) -> float | None:
    """Return the time at which a limit ends that an error of the time `at` states."""
    now = _local_time(at)
    for pattern in _reset_patterns():
        for match in pattern.finditer(text):
            if (moment := reset_time(match["when"], now, named_zone)) is not None:
                return moment.timestamp()
    return None


@cache
def _reset_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, RESET_PATTERNS))


def reset_in_headers(headers: object, at: float | None) -> float | None:
    """Return the time at which a limit ends that the HTTP headers of an error state."""
    if not isinstance(headers, dict):
        return None
    values = {str(name).lower(): str(value) for name, value in headers.items()}
    for name in WAIT_HEADERS:
        if name in values:
            words = f"{values[name]}ms" if name.endswith("-ms") else values[name]
            if (moment := reset_time(words, _local_time(at), named_zone)) is not None:
                return moment.timestamp()
    return None


def _local_time(at: float | None) -> datetime:
    """Return the time of the error in the zone of this machine: a time without a zone is local."""
    now = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return now.astimezone()


def named_zone(name: str) -> tzinfo | None:
    """Return the time zone of that name, or None if this machine does not know it."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415  # only where a provider names one

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None


def reset_time(words: str, now: datetime, zone: Zone) -> datetime | None:
    """Return the moment in UTC that the words name, or None if they name none."""
    text = re.sub(r"(?i)^(?:about|approximately|around|at|on|in|after|until)\s+", "", words.strip())
    text = text.strip().strip(".,;")[:LONGEST_TEXT_OF_TIME]
    for read in (_epoch_time, _iso_time, _http_date, _duration, _clock_time):
        try:
            moment = read(text, now, zone)
        except (ValueError, OverflowError):
            continue
        if moment is not None and now - timedelta(days=1) <= moment <= now + LONGEST_WAIT:
            return moment.astimezone(UTC)
    return None


def _epoch_time(text: str, _now: datetime, _zone: Zone) -> datetime | None:
    return datetime.fromtimestamp(int(text[:10]), UTC) if re.fullmatch(r"\d{10}(?:\d{3})?", text) else None


def _iso_time(text: str, now: datetime, zone: Zone) -> datetime | None:
    match = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?", text)
    if not match:
        return None
    moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{match[3] or ''}")
    return moment if moment.tzinfo else moment.replace(tzinfo=_zone_in(text[match.end() :], zone) or now.tzinfo)


def _http_date(text: str, _now: datetime, _zone: Zone) -> datetime | None:
    match = re.match(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", text)
    if not match:
        return None
    day, month, year, hour, minute, second = match.groups()
    return datetime(int(year), _month_number(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)


def _duration(text: str, now: datetime, _zone: Zone) -> datetime | None:
    """Return the end of a duration such as "90", "34.07s", "7h27m1s" or "2 days 3 hours and 5 minutes"."""
    if re.fullmatch(r"\d{1,7}(?:\.\d+)?", text):
        return now + timedelta(seconds=float(text))
    lower = text.lower()
    if re.match(r"an? (?:few )?(?:second|minute|hour|day|week)", lower):
        lower = re.sub(r"^an? (?:few )?", "1 ", lower)
    if not re.match(r"\d", lower) or re.match(r"\d+(?::\d+)? ?[ap]m\b", lower):
        return None
    spaced = re.sub(r"(?<=[a-z])(?=\d)", " ", lower)
    match = re.match(rf"(?:{DURATION}(?:,? and |,? |))+", spaced)
    if match is None:
        return None
    parts: list[tuple[str, str]] = re.findall(DURATION, match[0])
    seconds = sum(float(count) * _unit_seconds(unit) for count, unit in parts)
    return now + timedelta(seconds=seconds) if parts else None


def _unit_seconds(unit: str) -> float:
    return UNIT_SECONDS["ms" if unit.startswith(("ms", "milli")) else unit[0]]


def _clock_time(text: str, now: datetime, zone: Zone) -> datetime | None:
    """Return the next moment of a text such as "3pm", "18:00", "Monday 9am PT" or "Dec 20 at 3pm"."""
    rest, move_to_day = _named_day(text)
    time = re.search(
        r"(?i)(?:^|[\s,(])(\d{1,2})(?::(\d\d))?(?::\d\d)? ?([ap])\.?m\b\.?|(?:^|[\s,(])(\d{1,2}):(\d\d)", rest
    )
    word = re.search(r"(?i)\b(midnight|noon)\b", rest)
    if not time and not word and move_to_day is None:
        return None
    here = now.astimezone(_zone_in(text, zone) or now.tzinfo)
    hour, minute = _hour(time), int(time[2] or time[5] or 0) if time else 0
    hour = NOON if word and word[1].lower() == "noon" else hour
    moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if move_to_day is not None:
        return move_to_day(moment, here)
    has_minutes = time is not None and bool(time[2] or time[5])
    is_current_minute = has_minutes and moment < here < moment + timedelta(minutes=1)
    return moment if moment > here or is_current_minute else moment + timedelta(days=1)


_DATE_PATTERNS = (
    re.compile(
        r"(?i)\b(?P<month>[a-z]{3})[a-z]*\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?\b(?!:|\s?[ap]\.?m)(?:,? (?P<year>20\d\d))?"
    ),
    re.compile(r"(?i)\b(?P<day>\d{1,2})(?:st|nd|rd|th)? (?P<month>[a-z]{3})[a-z]*\b(?:,? (?P<year>20\d\d))?"),
)
_WEEKDAY = re.compile(r"(?i)\b(mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|rs|rsday|urday)?\b")


def _named_day(text: str) -> tuple[str, Callable[[datetime, datetime], datetime] | None]:
    """Return the text without the day that it names, and a function that moves a moment to that day."""
    for pattern in _DATE_PATTERNS:
        date = pattern.search(text)
        if date and date["month"].lower() in MONTHS:
            return text.replace(date[0], " ", 1), partial(_move_to_date, date=date)
    if re.search(r"(?i)\btomorrow\b", text):
        return text, lambda moment, _here: moment + timedelta(days=1)
    if weekday := _WEEKDAY.search(text):
        number = WEEKDAYS.index(weekday[1].lower())
        return text.replace(weekday[0], " ", 1), lambda moment, here: _move_to_weekday(moment, here, number)
    return text, None


def _move_to_date(moment: datetime, here: datetime, date: "re.Match[str]") -> datetime:
    year = int(date["year"]) if date["year"] else moment.year
    moment = moment.replace(month=_month_number(date["month"]), day=int(date["day"]), year=year)
    return moment if date["year"] or moment >= here - timedelta(days=1) else moment.replace(year=year + 1)


def _move_to_weekday(moment: datetime, here: datetime, weekday: int) -> datetime:
    moment += timedelta(days=(weekday - moment.weekday()) % DAYS_PER_WEEK)
    return moment if moment > here else moment + timedelta(days=DAYS_PER_WEEK)


def _hour(time: "re.Match[str] | None") -> int:
    if time is None:
        return 0
    if not time[3]:
        return int(time[4])
    return int(time[1]) % NOON + (NOON if time[3].lower() == "p" else 0)


def _zone_in(text: str, zone: Zone) -> tzinfo | None:
    """Return the time zone that a text names: a place, letters, or a distance from UTC."""
    if distance := re.search(r"(?i)\b(?:UTC|GMT) ?([+-])(\d{1,2})(?::?(\d\d))?\b", text):
        shift = timedelta(hours=int(distance[2]), minutes=int(distance[3] or 0))
        return timezone(-shift if distance[1] == "-" else shift)
    if place := re.search(r"\b([A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_+-]+){1,2})\b", text):
        return zone(place[1])
    letters = re.search(r"\b([A-Z]{2,4})\b(?!/)", re.sub(r"\b[AP]M\b", "", text))
    if letters is None:
        return None
    if letters[1] in ("UTC", "GMT"):
        return UTC
    return zone(ZONE_NAMES[letters[1]]) if letters[1] in ZONE_NAMES else None


def _month_number(name: str) -> int:
    return MONTHS.index(name.lower()[:3]) + 1
