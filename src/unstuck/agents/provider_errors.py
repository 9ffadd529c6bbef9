"""Say what an error of a provider or an agent means, by the catalogue's table. Only errors come here, never prose."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, partial
from typing import Any, NamedTuple

from unstuck.model.outcome import End, Fault
from unstuck.shipped import shipped_toml

LONGEST = 4_000
"""Characters of an error that are judged; a provider's own words stand at its beginning."""
MESSAGE_CHARS = 500
DECISIVE = (401, 403, 429)
"""Statuses that say it all; only that an account must be paid is known from the words."""
SERVER, CLIENT = 500, 400
NEVER = r"(?!)"

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


class _Table(NamedTuple):
    """What an error means: by its status, by its words (unless others stand there), and what says when it is over."""

    statuses: Mapping[str, End]
    rules: Sequence[tuple[End, re.Pattern[str], re.Pattern[str]]]
    resets: Sequence[re.Pattern[str]]
    stated: re.Pattern[str]
    broken: re.Pattern[str]


def fault(
    message: str, *, status: object = None, name: str = "", headers: object = None, at: float | None = None
) -> Fault | None:
    """Judge one error by its HTTP status, its type's name and its words; None if it tells nothing."""
    text = _unpacked(message)[:LONGEST]
    if _table().broken.search(text):
        return None
    stated = _table().stated.search(text)
    code = int(stated[1] or stated[2]) if stated else None
    code = status if isinstance(status, int) and not isinstance(status, bool) else code
    resets = _stated(f"{text}\n{_unpacked(name)}"[: 2 * LONGEST], at) or _from_headers(headers, at)
    end = _by_status(code, f"{name}\n{text}", resets) or _by_words(f"{name}\n{text}")
    if end is None and code is not None and CLIENT <= code < SERVER:
        end = "bad_request"
    if end == "billing" and resets is not None:
        end = "rate_limited"  # what must be paid does not come back by itself
    if end is None:
        return None
    return Fault(end=end, message=" ".join(message.split())[:MESSAGE_CHARS], resets_at=resets)


def _by_status(code: int | None, text: str, resets: float | None) -> End | None:
    if code is None:
        return None
    if code >= SERVER:
        return "overloaded"
    by_words = _by_words(text)
    if code in DECISIVE:
        unpaid = code != DECISIVE[0] and by_words == "billing" and resets is None
        return "billing" if unpaid else _table().statuses[str(code)]
    if by_words in ("context_exhausted", "billing", "auth_failed", "refused"):
        return by_words
    return _table().statuses.get(str(code))


def _by_words(text: str) -> End | None:
    return next((end for end, shape, unless in _table().rules if shape.search(text) and not unless.search(text)), None)


def without_own(lines: Sequence[str]) -> Sequence[str]:
    """Leave out the last error of the agent's own program, with the code that its traceback shows."""
    broken = next((at for at in reversed(range(len(lines))) if _table().broken.search(lines[at])), None)
    if broken is None:
        return lines
    began = broken
    while began and lines[began - 1][:1].isspace():
        began -= 1
    return (*lines[:began], *lines[broken + 1 :])


def later(old: Fault | None, new: Fault) -> Fault:
    """Let the newer fault count, with the older one's time where only that was told."""
    if old is not None and old.end == new.end and new.resets_at is None:
        return replace(new, resets_at=old.resets_at)
    return new


# --- when it is over ---------------------------------------------------------------------------------


def _stated(text: str, at: float | None) -> float | None:
    now = _local(at)
    for pattern in _table().resets:
        for found in pattern.finditer(text):
            if (moment := reset_time(found["when"], now, zone)) is not None:
                return moment.timestamp()
    return None


def _from_headers(headers: object, at: float | None) -> float | None:
    if not isinstance(headers, dict):
        return None
    known = {str(name).lower(): str(value) for name, value in headers.items()}
    for name in shipped_toml("ends")["waits"]:
        if name in known:
            words = f"{known[name]}ms" if name.endswith("-ms") else known[name]
            if (moment := reset_time(words, _local(at), zone)) is not None:
                return moment.timestamp()
    return None


def _local(at: float | None) -> datetime:
    """Return the time of the error in the zone of this machine: a time without a zone is local."""
    now = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    return now.astimezone()


def zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415  # only where a provider names one

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None


# --- below -------------------------------------------------------------------------------------------


def _unpacked(message: str) -> str:
    """Return the error's words; an error that is JSON itself is told by its strings and numbers."""
    start = message.find("{")
    if start < 0:
        return message
    try:
        value, end = json.JSONDecoder().raw_decode(message, start)
    except (ValueError, RecursionError):
        return message
    told = " ".join(f"{name}: {part}" for name, part in _leaves(value))
    return f"{message[:start]}{told}{message[end:]}"


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, name)
    elif value is not None:
        yield name, value


@cache
def _table() -> _Table:
    told = shipped_toml("ends")
    rules = [
        (row["end"], re.compile(row["pattern"], re.MULTILINE), re.compile(row.get("unless", NEVER)))
        for row in told["rule"]
    ]
    resets = [re.compile(row["pattern"]) for row in told["reset"]]
    shapes = (re.compile(told[name]) for name in ("stated", "broken"))
    return _Table(told["status"], rules, resets, *shapes)


# --- a moment from words; the time of reading and the zones come in ----------------------------------


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
