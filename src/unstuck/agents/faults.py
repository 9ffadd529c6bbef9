"""Say what an error of a provider or an agent means, by the catalogue's table. Only errors come here, never prose."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any, NamedTuple

from unstuck.agents.reset_times import reset_time
from unstuck.outcome import End, Fault
from unstuck.shipped import shipped_toml

LONGEST = 4_000
"""Characters of an error that are judged; a provider's own words stand at its beginning."""
MESSAGE_CHARS = 500
DECISIVE = (401, 403, 429)
"""Statuses that say it all; only that an account must be paid is known from the words."""
SERVER, CLIENT = 500, 400


NEVER = r"(?!)"


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
