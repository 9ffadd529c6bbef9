"""Read when a limit ends, from the words that providers use. Pure: the time of reading and the zones come in."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial

Zone = Callable[[str], tzinfo | None]

UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
LENGTH = r"(\d+(?:\.\d+)?) ?(ms|milli|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![A-Za-z])"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
PLACES: Mapping[str, str] = {
    "PT": "America/Los_Angeles", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
    "ET": "America/New_York", "EST": "America/New_York", "EDT": "America/New_York",
    "CT": "America/Chicago", "CST": "America/Chicago", "CDT": "America/Chicago",
    "MT": "America/Denver", "MST": "America/Denver", "MDT": "America/Denver",
    "CET": "Europe/Berlin", "CEST": "Europe/Berlin", "BST": "Europe/London", "JST": "Asia/Tokyo",
}  # fmt: skip
"""Zones by the letters that people write; which half of the year it is, the date says."""
NOON, WEEK = 12, 7
LATEST = timedelta(days=400)


def reset_time(words: str, now: datetime, zone: Zone) -> datetime | None:
    """Return the moment in UTC, or None if the words name none."""
    text = re.sub(r"(?i)^(?:about|approximately|around|at|on|in|after|until)\s+", "", words.strip())
    text = text.strip().strip(".,;")[:100]
    for read in (_epoch, _iso, _http_date, _length, _clock):
        try:
            found = read(text, now, zone)
        except (ValueError, OverflowError):
            continue
        if found is not None and now - timedelta(days=1) <= found <= now + LATEST:
            return found.astimezone(UTC)
    return None


def _epoch(text: str, _now: datetime, _zone: Zone) -> datetime | None:
    return datetime.fromtimestamp(int(text[:10]), UTC) if re.fullmatch(r"\d{10}(?:\d{3})?", text) else None


def _iso(text: str, now: datetime, zone: Zone) -> datetime | None:
    found = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?", text)
    if not found:
        return None
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[3] or ''}")
    return moment if moment.tzinfo else moment.replace(tzinfo=_place(text[found.end() :], zone) or now.tzinfo)


def _http_date(text: str, _now: datetime, _zone: Zone) -> datetime | None:
    found = re.match(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", text)
    if not found:
        return None
    day, month, year, hour, minute, second = found.groups()
    return datetime(int(year), _month(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)


def _length(text: str, now: datetime, _zone: Zone) -> datetime | None:
    """Read "90", "34.07s", "7h27m1s", "2 days 3 hours and 5 minutes"."""
    if re.fullmatch(r"\d{1,7}(?:\.\d+)?", text):
        return now + timedelta(seconds=float(text))
    lower = text.lower()
    if re.match(r"an? (?:few )?(?:second|minute|hour|day|week)", lower):
        lower = re.sub(r"^an? (?:few )?", "1 ", lower)
    if not re.match(r"\d", lower) or re.match(r"\d+(?::\d+)? ?[ap]m\b", lower):
        return None
    parts = re.match(rf"(?:{LENGTH}(?:,? and |,? |))+", re.sub(r"(?<=[a-z])(?=\d)", " ", lower))
    found = re.findall(LENGTH, parts[0]) if parts else []
    seconds = sum(float(count) * UNITS["ms" if unit.startswith(("ms", "milli")) else unit[0]] for count, unit in found)
    return now + timedelta(seconds=seconds) if found else None


def _clock(text: str, now: datetime, zone: Zone) -> datetime | None:
    """Read "3pm", "18:00", "Dec 20 at 3pm (America/New_York)", "Monday 9am PT": the next such moment."""
    bare, day = _day(text)
    time = re.search(
        r"(?i)(?:^|[\s,(])(\d{1,2})(?::(\d\d))?(?::\d\d)? ?([ap])\.?m\b\.?|(?:^|[\s,(])(\d{1,2}):(\d\d)", bare
    )
    word = re.search(r"(?i)\b(midnight|noon)\b", bare)
    if not time and not word and day is None:
        return None
    here = now.astimezone(_place(text, zone) or now.tzinfo)
    hour, minute = _hour(time), int(time[2] or time[5] or 0) if time else 0
    hour = NOON if word and word[1].lower() == "noon" else hour
    moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if day is not None:
        return day(moment, here)
    running = time is not None and bool(time[2] or time[5]) and moment < here < moment + timedelta(minutes=1)
    return moment if moment > here or running else moment + timedelta(days=1)


DATE = (
    re.compile(
        r"(?i)\b(?P<month>[a-z]{3})[a-z]*\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?\b(?!:|\s?[ap]\.?m)(?:,? (?P<year>20\d\d))?"
    ),
    re.compile(r"(?i)\b(?P<day>\d{1,2})(?:st|nd|rd|th)? (?P<month>[a-z]{3})[a-z]*\b(?:,? (?P<year>20\d\d))?"),
)
WEEKDAY = re.compile(r"(?i)\b(mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|rs|rsday|urday)?\b")


def _day(text: str) -> tuple[str, Callable[[datetime, datetime], datetime] | None]:
    """Find the day that is named; return the text without it, and how to move a moment there."""
    for pattern in DATE:
        found = pattern.search(text)
        if found and found["month"].lower() in MONTHS:
            return text.replace(found[0], " ", 1), partial(_date, named=found)
    if re.search(r"(?i)\btomorrow\b", text):
        return text, lambda moment, _here: moment + timedelta(days=1)
    if found := WEEKDAY.search(text):
        number = DAYS.index(found[1].lower())
        return text.replace(found[0], " ", 1), lambda moment, here: _weekday(moment, here, number)
    return text, None


def _date(moment: datetime, here: datetime, named: "re.Match[str]") -> datetime:
    year = int(named["year"]) if named["year"] else moment.year
    moment = moment.replace(month=_month(named["month"]), day=int(named["day"]), year=year)
    return moment if named["year"] or moment >= here - timedelta(days=1) else moment.replace(year=year + 1)


def _weekday(moment: datetime, here: datetime, day: int) -> datetime:
    moment += timedelta(days=(day - moment.weekday()) % WEEK)
    return moment if moment > here else moment + timedelta(days=WEEK)


def _hour(time: "re.Match[str] | None") -> int:
    if time is None:
        return 0
    return int(time[1]) % NOON + (NOON if time[3].lower() == "p" else 0) if time[3] else int(time[4])


def _place(text: str, zone: Zone) -> tzinfo | None:
    """Find the zone that is named: a place, letters, or a distance from UTC."""
    if found := re.search(r"(?i)\b(?:UTC|GMT) ?([+-])(\d{1,2})(?::?(\d\d))?\b", text):
        shift = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(-shift if found[1] == "-" else shift)
    if found := re.search(r"\b([A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_+-]+){1,2})\b", text):
        return zone(found[1])
    if found := re.search(r"\b([A-Z]{2,4})\b(?!/)", re.sub(r"\b[AP]M\b", "", text)):
        return UTC if found[1] in ("UTC", "GMT") else zone(PLACES[found[1]]) if found[1] in PLACES else None
    return None


def _month(name: str) -> int:
    return MONTHS.index(name.lower()[:3]) + 1
