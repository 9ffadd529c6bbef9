"""Find secrets by what they look like (a service's own prefix, a shape that nothing else has) and by the name before them.

Every search is linear in the length of the text: an alphabet after a prefix is read once, and every repeat is bounded.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal

from unstuck.shipped import shipped_table

Span = tuple[int, int]

SHORTEST_TOKEN = 16
LONGEST_TOKEN = 8192
"""A longer one goes on as text: no service makes them, and one must not stall the log."""
LONGEST_PREFIX = 40
LONGEST_SUM = 112
"""As above, for the name of what a sum is made with, and what of the sum stands before a slash in it."""
CLEAR_PREFIX = 5
SHORT_PREFIX = 7
LONGEST_AFTER = 400
SHOWS_ENOUGH = 128
WRAPPED_LINES = 40
WRAP_WIDTH = 60

MARKS = bytes(
    ord("w") if chr(code).isascii() and (chr(code).isalnum() or code in b"_-+") else ord(" ") for code in range(256)
)
RUN = b"w" * SHORTEST_TOKEN

WORDLY = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
PURE = ("upper", "hex", "alnum")
"""No words are joined in these alphabets, so a long run of them after a prefix is a token."""

LEADS = b"\\%[;"
TURNS = re.compile(rb"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
CASES = re.compile(rb"(?<=[a-z])[A-Z]")
Weight = Literal["strong", "weak", "key"]
SHORTEST_PASSWORD = 6
SHORTEST_KEY = 16
SHORTEST_COOKIE = 8
FEWEST_CHARACTERS = 4
"""Fewer different ones stand in for a secret: xxxxxxxx, ********."""
SURE_TURNS = 4
LONGEST_NAME = 48
NAME_CHARACTERS = b"abcdefghijklmnopqrstuvwxyz0123456789_.-"
TRAILING = b",;)]}>.:"
DIGIT = re.compile(rb"\d")
LETTER = re.compile(rb"[A-Za-z]")
SIGN = re.compile(rb"[^\w.:/-]")


def shape_spans(data: bytes) -> Iterator[Span]:
    """Yield where tokens and other shapes of secrets stand."""
    marked = data.translate(MARKS)
    start = marked.find(RUN)
    while start >= 0:
        end = marked.find(b" ", start)
        end = end if end >= 0 else len(data)
        if (token := _long_word(data, start, end)) is not None:
            end = max(end, token[1])
            yield token[0], end  # whatever is joined to a token goes with it
        start = marked.find(RUN, end)
    for prefix in _broken():
        start = data.find(prefix)
        while start >= 0:
            token = _token(data, start) if name_pattern("word_begins").search(data, max(0, start - 6), start) else None
            if token:
                yield token
            start = data.find(prefix, token[1] if token else start + len(prefix))
    for needle, shape, back, random in shipped_table("secrets")["shapes"]:
        yield from _found(data, needle.encode(), shape, back, random=random)


def looks_random(word: bytes) -> bool:
    """Tell a made-up sequence from words: letters and digits take turns, or small and capital letters too often."""
    start = word[:SHOWS_ENOUGH]
    return len(TURNS.findall(start)) >= 2 or len(CASES.findall(start)) * 4 >= len(start) >= SHORTEST_TOKEN  # noqa: PLR2004


def _found(data: bytes, needle: bytes, shape: str, back: int, *, random: bool) -> Iterator[Span]:
    # Finding a plain string is fifty times faster than a regular expression that finds nothing.
    start = data.find(needle)
    while start >= 0:
        pattern = _pattern(shape)
        first, last = max(0, start - back), start + LONGEST_AFTER
        match = pattern.search(data, first, last) if back else pattern.match(data, start)
        if match is None or (random and not looks_random(match[match.lastindex or 0])):
            start = data.find(needle, start + len(needle))
        else:
            yield match.span(match.lastindex or 0)
            start = data.find(needle, match.end())


def begins_token(word: bytes, width: int) -> bool:
    """Say whether the word, which ends a line of this width, can be the beginning of a token that goes on."""
    return any(
        word.startswith(prefix) and (len(word) < len(prefix) + need or width >= WRAP_WIDTH)
        for prefix, _, need in _tokens().get(word[:2], ())
    )


def _long_word(data: bytes, start: int, end: int) -> Span | None:
    """Return the token that a run of word characters is part of."""
    if data[start - 1 : start] == b".":
        for words in _dotted(data, start):
            if token := _from(data, start - len(words), end):
                return token
    if token := _from(data, start, end):
        return token
    if data[end : end + 1] == b".":
        found = (
            match
            for word in shipped_table("secrets")["words"]
            if (match := _pattern(word).match(data, start)) and looks_random(match[0])
        )
        return next((match.span() for match in found), None)
    return None


def _from(data: bytes, start: int, end: int) -> Span | None:
    """Return the token that begins here, or behind what stands before a word and is none of it."""
    before = data[start - 1 : start]
    lead = name_pattern("lead").match(data, start, end) if before and before in LEADS else None
    return (_token(data, lead.end()) if lead else None) or _token(data, start)


def _dotted(data: bytes, end: int) -> Iterator[bytes]:
    """Yield the words before a dot, the most of them first: some prefixes have dots."""
    match = name_pattern("dotted").search(data, max(0, end - LONGEST_PREFIX), end)
    words = match.group() if match else b""
    while words:
        yield words
        words = words[words.index(b".") + 1 :]


def _token(data: bytes, start: int) -> Span | None:
    for prefix, alphabet, need in _tokens().get(data[start : start + 2], ()):
        if data.startswith(prefix, start):
            body = start + len(prefix)
            end = _reach(data, body, _alphabet(alphabet), need)
            if end - body >= need and _is_token(data[body : end + 1], prefix, alphabet):
                return None if _is_digest(data, start) else (start, end)
    return None


def _is_digest(data: bytes, start: int) -> bool:
    """Tell the name of an object in git, or the sum of a file, however it begins: a lock file holds thousands of them."""
    return bool(name_pattern("digest").match(data, start)) or bool(
        name_pattern("sums").search(data, max(0, start - LONGEST_SUM), start)
    )


def _is_token(body: bytes, prefix: bytes, alphabet: str) -> bool:
    """Judge what follows a prefix: the clearer that is, the less must the rest look made up."""
    if alphabet == "upper":
        return not body[-1:].islower()
    if alphabet == "hex" or (alphabet in PURE and not prefix.isalnum()):
        return True
    if len(prefix) >= CLEAR_PREFIX and not prefix.isalpha():
        return len(CASES.findall(body)) >= 2 or any(48 <= code <= 57 for code in body)  # noqa: PLR2004  # a digit
    return looks_random(body)


def _reach(data: bytes, start: int, alphabet: re.Pattern[bytes], need: int) -> int:
    """Return where the token ends, which may be some lines further down where its line was too narrow for it."""
    end = _run(alphabet, data, start)
    for _ in range(WRAPPED_LINES):
        gap = name_pattern("break").match(data, end)
        following = _run(alphabet, data, gap.end()) if gap else end
        if gap is None or following == gap.end():
            return end
        short = end - start < need
        wide = end - (data.rfind(b"\n", 0, end) + 1) >= WRAP_WIDTH
        goes_on = wide and name_pattern("ends").match(data, following) and looks_random(data[gap.end() : following])
        if not short and not goes_on:
            return end
        end = following
    return end


def _run(alphabet: re.Pattern[bytes], data: bytes, start: int) -> int:
    match = alphabet.match(data, start)
    return match.end() if match else start


@cache
def _alphabet(name: str) -> re.Pattern[bytes]:
    return re.compile(b"%s{1,%d}" % (shipped_table("secrets")["alphabets"][name].encode(), LONGEST_TOKEN))


@cache
def _tokens() -> dict[bytes, tuple[tuple[bytes, str, int], ...]]:
    """Return the prefixes by their first two letters, the longest first."""
    table: dict[bytes, list[tuple[bytes, str, int]]] = {}
    for alphabet, needs in shipped_table("secrets")["tokens"].items():
        for prefix, need in needs.items():
            table.setdefault(prefix[:2].encode(), []).append((prefix.encode(), alphabet, need))
    return {start: tuple(sorted(rows, key=lambda row: -len(row[0]))) for start, rows in table.items()}


@cache
def _broken() -> tuple[bytes, ...]:
    """Return the prefixes of tokens that are no long word: a sign in them may break it."""
    rows = [row for rows in _tokens().values() for row in rows]
    short = (prefix for prefix, alphabet, _ in rows if alphabet == "base64" and len(prefix) <= SHORT_PREFIX)
    return (*(prefix for prefix, _, _ in rows if prefix.translate(None, WORDLY)), *short)


@cache
def name_pattern(name: str) -> re.Pattern[bytes]:
    """Return what the catalogue says of names or of values, as one pattern."""
    return re.compile(shipped_table("secrets")["signs"][name].encode())


@cache
def _pattern(shape: str) -> re.Pattern[bytes]:
    return re.compile(shape.encode())


def named_spans(data: bytes) -> Iterator[Span]:
    """Yield where the values of secret names stand."""
    low = data.lower()
    for needle in map(str.encode, shipped_table("secrets")["needles"]):
        if needle not in low:
            continue
        past = 0
        for match in _follows(needle).finditer(low):
            if match.start() >= past and (span := _value(data, low, match)) is not None:
                yield span
                past = span[1]


@cache
def _follows(needle: bytes) -> re.Pattern[bytes]:
    return re.compile(needle + name_pattern("follows").pattern)


@lru_cache(maxsize=4096)
def secret_weight(name: bytes) -> Weight | None:
    """Say what has this name: a secret that a person may have chosen, one that a machine made, or neither."""
    if name_pattern("ordinary").search(name):
        return None
    if name_pattern("strong").search(name):
        return "strong"
    if name_pattern("weak").search(name):
        return "weak"
    return "key" if name == b"key" else None


def is_credible_secret(value: bytes, *, strong: bool, quoted: bool) -> bool:
    """Tell a secret from a word, a path, a piece of code, or what stands in for one."""
    if len(value) < (SHORTEST_PASSWORD if strong else SHORTEST_KEY) or b" " in value or b"\t" in value:
        return False
    if (
        name_pattern("placeholder").match(value)
        or name_pattern("path").match(value)
        or len(set(value)) < FEWEST_CHARACTERS
    ):
        return False
    if name_pattern("number").match(value):
        return strong and quoted and value.isdigit()
    if not strong:
        return looks_random(value) and (quoted or not name_pattern("code").match(value))
    if name_pattern("code").match(value):
        return False
    signs = LETTER.search(value) and SIGN.search(value)
    return bool(DIGIT.search(value) or signs) or (len(value) >= SHORTEST_TOKEN and looks_random(value))


def _value(data: bytes, low: bytes, match: re.Match[bytes]) -> Span | None:
    start = match.start()
    before = low[max(0, start - LONGEST_NAME) : start]
    begins = start - len(before) + len(before.rstrip(NAME_CHARACTERS))
    rest = name_pattern("name_rest").match(low, start)
    name = low[begins : rest.end() if rest else start]
    weight = secret_weight(name)
    if weight is None or (weight == "key" and not _is_key(low, begins)):
        return None
    value = name_pattern("given").match(data, match.end())
    if value is None:
        return None
    if match["gap"] is not None:
        return _told(value, strong=weight == "strong")
    return _cookie(data, value) if b"cookie" in name else _judged(data, value, name, strong=weight == "strong")


def _is_key(low: bytes, begins: int) -> bool:
    """Say whether a key is one to something: `?key=` in an address, or `api key` in prose."""
    before = low[max(0, begins - 12) : begins]
    if before[-1:] == b" ":
        return before[-2:-1].isalnum() and not name_pattern("ordinary").search(before.rstrip())
    return before[-1:] in {b"?", b"&"}


def _told(match: re.Match[bytes], *, strong: bool) -> Span | None:
    """Take a value that follows a name with nothing between them only if nothing else looks so."""
    if match["quoted"] is not None:
        sure = strong and match["mark"] != b"`" and is_credible_secret(match["quoted"], strong=True, quoted=True)
        return match.span("quoted") if sure else None
    made_up = name_pattern("made_up").match(match["bare"])
    if made_up is None or len(TURNS.findall(made_up[0])) < SURE_TURNS:
        return None
    return match.start("bare"), match.start("bare") + made_up.end()


def _judged(data: bytes, match: re.Match[bytes], name: bytes, *, strong: bool) -> Span | None:
    header, address = b"authorization" in name, b"webhook" in name or b"dsn" in name
    quoted = match["quoted"] is not None
    start, end = match.span("quoted" if quoted else "bare")
    if name_pattern("placeholder").match(data, start):
        return None
    scheme = name_pattern("any_scheme" if header else "scheme").match(data, start, end)
    if scheme:
        start = scheme.end()
    if not quoted or scheme:
        cut = name_pattern("bare_end").search(data, start, end)
        end = cut.start() if cut else end
        end = start + len(data[start:end].rstrip(TRAILING))
    value = data[start:end]
    if header and scheme:
        taken = len(value) >= SHORTEST_COOKIE and not (
            name_pattern("placeholder").match(value) or name_pattern("no_value").fullmatch(value)
        )
    else:
        taken = is_credible_secret(value, strong=strong, quoted=quoted) or (
            address and value.startswith(b"http") and looks_random(value)
        )
    return (start, end) if taken else None


def _cookie(data: bytes, match: re.Match[bytes]) -> Span | None:
    """Leave a cookie its name; all else of the line goes, as one line can hold many."""
    start, end = match.span("quoted" if match["quoted"] is not None else "bare")
    equals = data.find(b"=", start, min(end, start + 64))
    if equals < 0:
        return (start, end) if is_credible_secret(data[start:end], strong=False, quoted=True) else None
    line = name_pattern("cookie_end").search(data, equals, equals + 4096)
    end = line.start() if line else min(len(data), equals + 4096)
    value = data[equals + 1 : end]
    first = re.split(rb"[;\s]", value, maxsplit=1)[0]
    if (
        len(first) < SHORTEST_COOKIE
        or not looks_random(value)
        or name_pattern("placeholder").match(value)
        or name_pattern("code").match(first)
    ):
        return None
    return equals + 1, end
