"""Read when a limit ends, from the words that providers use. Pure: the time of reading and the zones come in."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo

Zone = Callable[[str], tzinfo | None]

UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NOON = 12
LATEST = timedelta(days=400)


def reset_time(words: str, now: datetime, zone: Zone) -> datetime | None:
    """Return the moment in UTC, or None if the words name none."""
    text = words.strip().strip(".,;")[:80]
    for read in (_epoch, _iso, _http_date, _duration, _clock):
        try:
            found = read(text, now, zone)
        except (ValueError, OverflowError):
            continue
        if found is not None and now - timedelta(days=1) <= found <= now + LATEST:
            return found.astimezone(UTC)
    return None


def _epoch(text: str, _now: datetime, _zone: Zone) -> datetime | None:
    return datetime.fromtimestamp(int(text[:10]), UTC) if re.fullmatch(r"\d{10}(?:\d{3})?", text) else None


def _iso(text: str, now: datetime, _zone: Zone) -> datetime | None:
    found = re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", text)
    if not found:
        return None
    moment = datetime.fromisoformat(found[0])
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def _http_date(text: str, _now: datetime, _zone: Zone) -> datetime | None:
    found = re.match(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", text)
    if not found:
        return None
    day, month, year, hour, minute, second = found.groups()
    return datetime(int(year), _month(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)


def _duration(text: str, now: datetime, _zone: Zone) -> datetime | None:
    if re.fullmatch(r"\d{1,7}(?:\.\d+)?", text):
        return now + timedelta(seconds=float(text))
    if not re.match(r"\d+(?:\.\d+)? ?(?:ms|milli|s|sec|m|min|h|hour|d|day)", text) or re.match(r"\d+ ?[ap]m", text):
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?) ?(ms|milliseconds?|d|h|m|s)", text.lower())
    seconds = sum(float(count) * UNITS[unit if unit in UNITS else "ms"] for count, unit in parts)
    return now + timedelta(seconds=seconds) if parts else None


def _clock(text: str, now: datetime, zone: Zone) -> datetime | None:
    """Read "3pm", "18:00", "Dec 20 at 3pm (America/New_York)": the next such moment."""
    found = re.search(
        r"(?:^|\s)(\d{1,2})(?::(\d\d))? ?([ap]m)?\b", re.sub(r"^\D+ \d{1,2},?(?= )", "", text), re.IGNORECASE
    )
    if not found or not (found[2] or found[3]):
        return None
    named = re.search(r"\(([\w/+-]+)\)|\b(UTC|GMT)\b", text)
    place = zone(named[1] or named[2]) if named else now.tzinfo
    here = now.astimezone(place or now.tzinfo)
    hour = int(found[1]) % NOON + (NOON if found[3].lower() == "pm" else 0) if found[3] else int(found[1])
    moment = here.replace(hour=hour, minute=int(found[2] or 0), second=0, microsecond=0)
    day = re.match(r"(?:on )?([A-Za-z]{3})[a-z]* (\d{1,2})\b", text)
    if day and day[1].lower() in MONTHS:
        moment = moment.replace(month=_month(day[1]), day=int(day[2]))
        return moment if moment >= here - timedelta(days=1) else moment.replace(year=moment.year + 1)
    return moment if moment > here else moment + timedelta(days=1)


def _month(name: str) -> int:
    return MONTHS.index(name.lower()[:3]) + 1
