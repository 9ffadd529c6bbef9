"""Find secrets by what they look like: a service's own prefix, or a shape that nothing else has.

Every search is linear in the length of the text: an alphabet after a prefix is read once, and every repeat is bounded.
"""

import re
from collections.abc import Iterator
from functools import cache

from unstuck.journal.secret_table import SHAPES, TOKENS, WORDS

Span = tuple[int, int]

SHORTEST_TOKEN = 16
LONGEST_TOKEN = 8192
"""A longer one goes on as text: no service makes them, and one must not stall the log."""
LONGEST_PREFIX = 40
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

ALPHABETS = {
    "upper": rb"[0-9A-Z]",
    "hex": rb"[0-9A-Fa-f]",
    "alnum": rb"[0-9A-Za-z]",
    "word": rb"[\w-]",
    "dotted": rb"[\w.-]",
    "base64": rb"[\w+/=-]",
    "wide": rb"""[^\s"'`<>\\,;&()\[\]{}|]""",
}
WORDLY = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
PURE = ("upper", "hex", "alnum")
"""No words are joined in these alphabets, so a long run of them after a prefix is a token."""

LEADS = b"\\%[;"
LEAD = re.compile(rb"(?<=\\)(?:[nrt]|u00[0-9a-f]{2}|x[0-9a-f]{2})|(?<=%)[0-9A-F]{2}|(?<=[\[;])\d{0,3}m")
"""What stands before a word and is none of it: an escaped line break, a quoted sign in an address, a colour."""
WORD_BEGINS = re.compile(rb"(?:\A|[^A-Za-z0-9]|\\[nrt]|\\u00[0-9a-f]{2}|%[0-9A-F]{2}|[\[;]\d{0,3}m)\Z")
DOTTED = re.compile(rb"(?:[\w-]{1,32}\.){1,3}\Z")
BREAK = re.compile(rb"(?:\\\r?\n|\r?\n|\\r\\n|\\n)[ \t]{0,16}")
ENDS = re.compile(rb"""\s|["'`\\]|\Z""")
TURNS = re.compile(rb"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
CASES = re.compile(rb"(?<=[a-z])[A-Z]")


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
            token = _token(data, start) if WORD_BEGINS.search(data, max(0, start - 6), start) else None
            if token:
                yield token
            start = data.find(prefix, token[1] if token else start + len(prefix))
    for needle, shape, back, random in SHAPES:
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
        found = (match for word in WORDS if (match := _pattern(word).match(data, start)) and looks_random(match[0]))
        return next((match.span() for match in found), None)
    return None


def _from(data: bytes, start: int, end: int) -> Span | None:
    """Return the token that begins here, or behind what stands before a word and is none of it."""
    before = data[start - 1 : start]
    lead = LEAD.match(data, start, end) if before and before in LEADS else None
    return (_token(data, lead.end()) if lead else None) or _token(data, start)


def _dotted(data: bytes, end: int) -> Iterator[bytes]:
    """Yield the words before a dot, the most of them first: some prefixes have dots."""
    match = DOTTED.search(data, max(0, end - LONGEST_PREFIX), end)
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
                return start, end
    return None


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
        gap = BREAK.match(data, end)
        following = _run(alphabet, data, gap.end()) if gap else end
        if gap is None or following == gap.end():
            return end
        short = end - start < need
        wide = end - (data.rfind(b"\n", 0, end) + 1) >= WRAP_WIDTH
        goes_on = wide and ENDS.match(data, following) and looks_random(data[gap.end() : following])
        if not short and not goes_on:
            return end
        end = following
    return end


def _run(alphabet: re.Pattern[bytes], data: bytes, start: int) -> int:
    match = alphabet.match(data, start)
    return match.end() if match else start


@cache
def _alphabet(name: str) -> re.Pattern[bytes]:
    return re.compile(ALPHABETS[name] + rb"{1,%d}" % LONGEST_TOKEN)


@cache
def _tokens() -> dict[bytes, tuple[tuple[bytes, str, int], ...]]:
    """Return the prefixes by their first two letters, the longest first."""
    table: dict[bytes, list[tuple[bytes, str, int]]] = {}
    for alphabet, row in TOKENS.items():
        for entry in row.split():
            prefix, _, need = entry.rpartition("|")
            table.setdefault(prefix[:2].encode(), []).append((prefix.encode(), alphabet, int(need)))
    return {start: tuple(sorted(rows, key=lambda row: -len(row[0]))) for start, rows in table.items()}


@cache
def _broken() -> tuple[bytes, ...]:
    """Return the prefixes of tokens that are no long word: a sign in them may break it."""
    rows = [row for rows in _tokens().values() for row in rows]
    short = (prefix for prefix, alphabet, _ in rows if alphabet == "base64" and len(prefix) <= SHORT_PREFIX)
    return (*(prefix for prefix, _, _ in rows if prefix.translate(None, WORDLY)), *short)


@cache
def _pattern(shape: str) -> re.Pattern[bytes]:
    return re.compile(shape.encode())
