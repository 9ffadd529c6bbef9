"""Find secrets by the name that stands before them: `password: …`, `"api_key": "…"`, `--token …`."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal

from unstuck.journal.secret_shapes import SHORTEST_TOKEN, TURNS, Span, looks_random

Weight = Literal["strong", "weak", "key"]

SHORTEST_PASSWORD = 6
SHORTEST_KEY = 16
SHORTEST_COOKIE = 8
FEWEST_CHARACTERS = 4
"""Fewer different ones stand in for a secret: xxxxxxxx, ********."""
SURE_TURNS = 4
LONGEST_NAME = 48

NEEDLES = (
    *(b"pass", b"pwd", b"secret", b"token", b"key", b"auth", b"cred", b"cookie", b"sig", b"dsn", b"webhook", b"jwt"),
    *(b"connectionstring", b"_pat"),
)

STRONG = re.compile(
    rb"passw|passphrase|passcode|pwd|secret|credential|private_?key|"
    rb"(?:^|[^a-z]|db|user|root|admin|smtp|mail|ftp|my)pass$"
)
"""Names of things that people choose: even a short value is one."""
WEAK = re.compile(
    rb"token|.key|auth|cred|cookie|(?:^|[_-])sig$|signature|dsn|webhook|jwt|connectionstring|_pat$|"
    rb"(?:^|[_-])pass(?:[_-]|$)"
)
"""Names of things that machines make: the value must look so, too."""
ORDINARY = re.compile(
    rb"author(?!iz)|monkey|keyboard|keyword|keyframe|keystroke|key_?(?:press|down|up|code|map|pair_?name|name|type|size|"
    rb"usage|format|error|func|ring|id)|hot_?key|turkey|tokeni[sz]|tokens?_?(?:count|limit|type|usage|id|url|uri|"
    rb"endpoint|path)|tokens$|(?:^|[^a-z])passe[ds]|passing|passive|passage|bypass|compass|secretary|public|primary|"
    rb"foreign|partition|cache|idempoten|hash|checksum|digest|sha_?\d|fingerprint|session_?id|thread|sort_?key|"
    rb"(?:path|file|dir|folder|name|count|length|expiry|expires|ttl|algorithm|version|policy|status|ref|class|field|"
    rb"label|title|hint|help|regex|pattern|rules?|strength|icon|color|column|index|prefix|suffix|provider|method|mode|"
    rb"scheme|server|state|scope|module)s?$"
)
"""Names with such a word in them that hold no secret."""

NAME_CHARACTERS = b"abcdefghijklmnopqrstuvwxyz0123456789_.-"
NAME_REST = re.compile(rb"[\w.-]{0,48}")
VALUE = (
    rb"""(?:(?P<mark>\\{0,3}["'`]|&quot;|%22)(?P<quoted>(?:(?!(?P=mark))[^\r\n]){4,512})|"""
    rb"""(?P<bare>[^\s"'`][^\s"'`]{3,511}(?:[ \t]{1,4}[^\s"'`]{4,512})?))"""
)
FOLLOWS = (
    rb"""[\w.-]{0,48}(?:(?:(?:\\{0,3}["'`\])]|\*{1,2}|&quot;|%22){0,3}[ \t]{0,8}"""
    rb"""(?:=>|:=|\?=|={1,3}|::?|,(?=[ ]?["'])|>|%3[ad]|[ ](?:is|was)(?=[ ])|\((?=["']))"""
    rb"""[ \t]{0,8}(?:\r?\n[ \t]{1,32})?(?:[bfru](?=["']))?(?=[^\s,;)]))|"""
    rb"""(?P<gap>(?:[ \t]{1,3}|[ \t]{0,3}\r?\n[ \t]{0,8})(?=["'][^\s"']{6}|[a-z0-9_-]{20})))"""
)
"""The rest of a name and what parts it from its value. It is searched for with the name's beginning before it."""
GIVEN = re.compile(VALUE)

SCHEME = re.compile(rb"(?i:bearer|basic|token|digest|apikey|negotiate|ssws|key|bot|oauth|jwt)[ \t]{1,4}")
ANY_SCHEME = re.compile(rb"[A-Za-z][\w-]{1,24}[ \t]{1,4}")
BARE_END = re.compile(rb"""[\s"'`]|\\["nrt]|[&;,](?=[\w .%-]{0,40}[=:]|\s|\Z)|<[/\w]|%26""")
COOKIE_END = re.compile(rb"""["'`\r\n]|\\["'nr]""")
TRAILING = b",;)]}>.:"
MADE_UP = re.compile(rb"[A-Za-z0-9_-]{20,128}(?![\w./-])")
PLACEHOLDER = re.compile(
    rb"\$[A-Za-z_({]|<[\w /.-]*>|\{\{|\{[a-z_.]|\{?\}|\[redacted|\[[A-Z_ ]+\]|\*{3,}|%[sdr(]|%[A-Z_]+%|#\{|@\{|\.\.\.|"
    rb"x{3,}|\?+\Z|your|my[_-]|some[_-]|the[_-]|change|example|placeholder|dummy|redacted|none\b|null\b|true\b|false\b|"
    rb"undefined|os\.|process\.|env[.:\[]|config\.|self\.|this\.|secrets?\.|vault:|keyring|file:|!\w|-----BEGIN",
    re.IGNORECASE,
)
CODE = re.compile(
    rb"[({\[]|[A-Za-z_][\w.]{0,64}(?:[(\[{]|->|::|\?\.)|[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})+\Z|"
    rb"[a-z]+(?:[_-][a-z]+)*\d?\Z|0x[0-9a-f]{1,16}\Z"
)
PATH = re.compile(rb"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@ -]+(?:[/\\]|\Z)|[\w.-]+/[\w./-]+\.\w{1,5}\Z|\w+://")
NUMBER = re.compile(rb"[\d.,:_%-]+\w?\Z")
DIGIT = re.compile(rb"\d")
LETTER = re.compile(rb"[A-Za-z]")
SIGN = re.compile(rb"[^\w.:/-]")


def named_spans(data: bytes) -> Iterator[Span]:
    """Yield where the values of secret names stand."""
    low = data.lower()
    for needle in NEEDLES:
        if needle not in low:
            continue
        past = 0
        for match in _follows(needle).finditer(low):
            if match.start() >= past and (span := _value(data, low, match)) is not None:
                yield span
                past = span[1]


@cache
def _follows(needle: bytes) -> re.Pattern[bytes]:
    return re.compile(needle + FOLLOWS)


@lru_cache(maxsize=4096)
def weigh(name: bytes) -> Weight | None:
    """Say what has this name: a secret that a person may have chosen, one that a machine made, or neither."""
    if ORDINARY.search(name):
        return None
    if STRONG.search(name):
        return "strong"
    if WEAK.search(name):
        return "weak"
    return "key" if name == b"key" else None


def credible(value: bytes, *, strong: bool, quoted: bool) -> bool:
    """Tell a secret from a word, a path, a piece of code, or what stands in for one."""
    if len(value) < (SHORTEST_PASSWORD if strong else SHORTEST_KEY) or b" " in value or b"\t" in value:
        return False
    if PLACEHOLDER.match(value) or PATH.match(value) or len(set(value)) < FEWEST_CHARACTERS:
        return False
    if NUMBER.match(value):
        return strong and quoted and value.isdigit()
    if not strong:
        return looks_random(value) and (quoted or not CODE.match(value))
    if CODE.match(value):
        return False
    signs = LETTER.search(value) and SIGN.search(value)
    return bool(DIGIT.search(value) or signs) or (len(value) >= SHORTEST_TOKEN and looks_random(value))


def _value(data: bytes, low: bytes, match: re.Match[bytes]) -> Span | None:
    start = match.start()
    before = low[max(0, start - LONGEST_NAME) : start]
    begins = start - len(before) + len(before.rstrip(NAME_CHARACTERS))
    rest = NAME_REST.match(low, start)
    name = low[begins : rest.end() if rest else start]
    weight = weigh(name)
    if weight is None or (weight == "key" and not _is_key(low, begins)):
        return None
    value = GIVEN.match(data, match.end())
    if value is None:
        return None
    if match["gap"] is not None:
        return _told(value, strong=weight == "strong")
    return _cookie(data, value) if b"cookie" in name else _judged(data, value, name, strong=weight == "strong")


def _is_key(low: bytes, begins: int) -> bool:
    """Say whether a key is one to something: `?key=` in an address, or `api key` in prose."""
    before = low[max(0, begins - 12) : begins]
    if before[-1:] == b" ":
        return before[-2:-1].isalnum() and not ORDINARY.search(before.rstrip())
    return before[-1:] in {b"?", b"&"}


def _told(match: re.Match[bytes], *, strong: bool) -> Span | None:
    """Take a value that follows a name with nothing between them only if nothing else looks so."""
    if match["quoted"] is not None:
        sure = strong and match["mark"] != b"`" and credible(match["quoted"], strong=True, quoted=True)
        return match.span("quoted") if sure else None
    made_up = MADE_UP.match(match["bare"])
    if made_up is None or len(TURNS.findall(made_up[0])) < SURE_TURNS:
        return None
    return match.start("bare"), match.start("bare") + made_up.end()


def _judged(data: bytes, match: re.Match[bytes], name: bytes, *, strong: bool) -> Span | None:
    header, address = b"authorization" in name, b"webhook" in name or b"dsn" in name
    quoted = match["quoted"] is not None
    start, end = match.span("quoted" if quoted else "bare")
    if PLACEHOLDER.match(data, start):
        return None
    scheme = (ANY_SCHEME if header else SCHEME).match(data, start, end)
    if scheme:
        start = scheme.end()
    if not quoted or scheme:
        cut = BARE_END.search(data, start, end)
        end = cut.start() if cut else end
        end = start + len(data[start:end].rstrip(TRAILING))
    value = data[start:end]
    if header and scheme:
        taken = len(value) >= SHORTEST_COOKIE and not PLACEHOLDER.match(value)
    else:
        taken = credible(value, strong=strong, quoted=quoted) or (
            address and value.startswith(b"http") and looks_random(value)
        )
    return (start, end) if taken else None


def _cookie(data: bytes, match: re.Match[bytes]) -> Span | None:
    """Leave a cookie its name; all else of the line goes, as one line can hold many."""
    start, end = match.span("quoted" if match["quoted"] is not None else "bare")
    equals = data.find(b"=", start, min(end, start + 64))
    if equals < 0:
        return (start, end) if credible(data[start:end], strong=False, quoted=True) else None
    line = COOKIE_END.search(data, equals, equals + 4096)
    end = line.start() if line else min(len(data), equals + 4096)
    value = data[equals + 1 : end]
    first = re.split(rb"[;\s]", value, maxsplit=1)[0]
    if len(first) < SHORTEST_COOKIE or not looks_random(value) or PLACEHOLDER.match(value) or CODE.match(first):
        return None
    return equals + 1, end
