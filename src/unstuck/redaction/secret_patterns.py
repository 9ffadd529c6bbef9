"""Find secrets in text by their prefix, by their shape or by the name before them.

Every search is linear in the length of the text: each repeat in a pattern is bounded.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal

from unstuck.shipped import shipped_table

Span = tuple[int, int]

SHORTEST_TOKEN = 16
LONGEST_TOKEN = 8192
"""No service makes longer ones, and one must not stall the log."""
LONGEST_PREFIX = 40
LONGEST_DIGEST_START = 112
"""Longest name of a digest's algorithm with the part of the digest before a slash."""
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
WORDLESS_ALPHABETS = ("upper", "hex", "alnum")
"""Words cannot be joined in these alphabets, so a long run after a prefix is a token."""

LEADS = b"\\%[;"
TURNS = re.compile(rb"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
CASES = re.compile(rb"(?<=[a-z])[A-Z]")
Weight = Literal["strong", "weak", "key"]
SHORTEST_PASSWORD = 6
SHORTEST_KEY = 16
SHORTEST_COOKIE = 8
FEWEST_CHARACTERS = 4
"""A value with fewer different characters is a placeholder: xxxxxxxx, ********."""
SURE_TURNS = 4
LONGEST_NAME = 48
NAME_CHARACTERS = b"abcdefghijklmnopqrstuvwxyz0123456789_.-"
TRAILING = b",;)]}>.:"
DIGIT = re.compile(rb"\d")
LETTER = re.compile(rb"[A-Za-z]")
SIGN = re.compile(rb"[^\w.:/-]")


def shape_spans(data: bytes) -> Iterator[Span]:
    """Yield the positions of tokens and other shapes of secrets."""
    marked = data.translate(MARKS)
    start = marked.find(RUN)
    while start >= 0:
        end = marked.find(b" ", start)
        end = end if end >= 0 else len(data)
        if (token := _long_word(data, start, end)) is not None:
            end = max(end, token[1])
            yield token[0], end  # characters joined to a token belong to it
        start = marked.find(RUN, end)
    for prefix in _short_prefixes():
        start = data.find(prefix)
        while start >= 0:
            token = _token(data, start) if name_pattern("word_begins").search(data, max(0, start - 6), start) else None
            if token:
                yield token
            start = data.find(prefix, token[1] if token else start + len(prefix))
    for needle, shape, back, random in shipped_table("secrets")["shapes"]:
        yield from _shape_matches(data, needle.encode(), shape, back, random=random)


def looks_random(word: bytes) -> bool:
    """Return whether letters and digits, or small and capital letters, alternate as in no word."""
    start = word[:SHOWS_ENOUGH]
    return len(TURNS.findall(start)) >= 2 or len(CASES.findall(start)) * 4 >= len(start) >= SHORTEST_TOKEN  # noqa: PLR2004


def _shape_matches(data: bytes, needle: bytes, shape: str, back: int, *, random: bool) -> Iterator[Span]:
    # Searching a plain string is fifty times faster than a regular expression without a match.
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
    """Return whether the last word of a line may be the first part of a token."""
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
        matches = (
            match
            for word in shipped_table("secrets")["words"]
            if (match := _pattern(word).match(data, start)) and looks_random(match[0])
        )
        return next((match.span() for match in matches), None)
    return None


def _from(data: bytes, start: int, end: int) -> Span | None:
    """Return the token that begins here, or after an escape character before the word."""
    before = data[start - 1 : start]
    lead = name_pattern("lead").match(data, start, end) if before and before in LEADS else None
    return (_token(data, lead.end()) if lead else None) or _token(data, start)


def _dotted(data: bytes, end: int) -> Iterator[bytes]:
    """Yield the words before a dot, the longest text first. Some prefixes contain dots."""
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
    """Return whether this is an object id of git or the digest of a file. Lock files hold thousands."""
    return bool(name_pattern("digest").match(data, start)) or bool(
        name_pattern("sums").search(data, max(0, start - LONGEST_DIGEST_START), start)
    )


def _is_token(body: bytes, prefix: bytes, alphabet: str) -> bool:
    """Return whether the text after a prefix is a token. After a clear prefix it need not look random."""
    if alphabet == "upper":
        return not body[-1:].islower()
    if alphabet == "hex" or (alphabet in WORDLESS_ALPHABETS and not prefix.isalnum()):
        return True
    if len(prefix) >= CLEAR_PREFIX and not prefix.isalpha():
        return len(CASES.findall(body)) >= 2 or any(48 <= code <= 57 for code in body)  # noqa: PLR2004  # a digit
    return looks_random(body)


def _reach(data: bytes, start: int, alphabet: re.Pattern[bytes], need: int) -> int:
    """Return the end of a token, which may be some lines below if the text is wrapped."""
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
    """Return the prefixes by their first two letters, with the longest first."""
    table: dict[bytes, list[tuple[bytes, str, int]]] = {}
    for alphabet, needs in shipped_table("secrets")["tokens"].items():
        for prefix, need in needs.items():
            table.setdefault(prefix[:2].encode(), []).append((prefix.encode(), alphabet, need))
    return {start: tuple(sorted(rows, key=lambda row: -len(row[0]))) for start, rows in table.items()}


@cache
def _short_prefixes() -> tuple[bytes, ...]:
    """Return the prefixes of tokens that another character may split into short words."""
    rows = [row for rows in _tokens().values() for row in rows]
    short = (prefix for prefix, alphabet, _ in rows if alphabet == "base64" and len(prefix) <= SHORT_PREFIX)
    return (*(prefix for prefix, _, _ in rows if prefix.translate(None, WORDLY)), *short)


@cache
def name_pattern(name: str) -> re.Pattern[bytes]:
    """Return a pattern of the catalogue for names or values."""
    return re.compile(shipped_table("secrets")["signs"][name].encode())


@cache
def _pattern(shape: str) -> re.Pattern[bytes]:
    return re.compile(shape.encode())


def named_spans(data: bytes) -> Iterator[Span]:
    """Yield the positions of values that follow secret names."""
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
    """Return which secret has this name: a chosen password (strong), a generated one (weak), or none."""
    if name_pattern("ordinary").search(name):
        return None
    if name_pattern("strong").search(name):
        return "strong"
    if name_pattern("weak").search(name):
        return "weak"
    return "key" if name == b"key" else None


def is_credible_secret(value: bytes, *, strong: bool, quoted: bool) -> bool:
    """Return whether a value is a secret, and no word, path, code or placeholder."""
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
        return _unseparated_value(value, strong=weight == "strong")
    return _cookie(data, value) if b"cookie" in name else _separated_value(data, value, name, strong=weight == "strong")


def _is_key(low: bytes, begins: int) -> bool:
    """Return whether a key is a secret: `?key=` in an address, or `api key` in prose."""
    before = low[max(0, begins - 12) : begins]
    if before[-1:] == b" ":
        return before[-2:-1].isalnum() and not name_pattern("ordinary").search(before.rstrip())
    return before[-1:] in {b"?", b"&"}


def _unseparated_value(match: re.Match[bytes], *, strong: bool) -> Span | None:
    """Return a value without a separator after its name, if no ordinary text looks like it."""
    if match["quoted"] is not None:
        is_secret = strong and match["mark"] != b"`" and is_credible_secret(match["quoted"], strong=True, quoted=True)
        return match.span("quoted") if is_secret else None
    generated = name_pattern("made_up").match(match["bare"])
    if generated is None or len(TURNS.findall(generated[0])) < SURE_TURNS:
        return None
    return match.start("bare"), match.start("bare") + generated.end()


def _separated_value(data: bytes, match: re.Match[bytes], name: bytes, *, strong: bool) -> Span | None:
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
        is_secret = len(value) >= SHORTEST_COOKIE and not (
            name_pattern("placeholder").match(value) or name_pattern("no_value").fullmatch(value)
        )
    else:
        is_secret = is_credible_secret(value, strong=strong, quoted=quoted) or (
            address and value.startswith(b"http") and looks_random(value)
        )
    return (start, end) if is_secret else None


def _cookie(data: bytes, match: re.Match[bytes]) -> Span | None:
    """Return everything after the name of a cookie. One line can hold several."""
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
