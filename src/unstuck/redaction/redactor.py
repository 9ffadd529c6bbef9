"""Remove secrets from text before it is stored, in time linear in the length of the text."""

import re
from binascii import b2a_base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from unstuck.redaction import secret_patterns
from unstuck.redaction.secret_patterns import is_credible_secret, name_pattern, secret_weight
from unstuck.shipped import shipped_table

REDACTED = "[redacted]"

SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""A variable whose name ends with one of these holds a secret, even if it looks like a word."""
CACHED_CHARS = 200
"""Texts up to this length repeat often, so their redaction is cached."""
SHORTEST_SECRET = 6
"""Shorter values ("true", "none") are common in ordinary text."""
SHORTEST_LINE = 16
"""The same for single lines of a secret with several lines."""
SHORTEST_RANDOM = 20
"""The same for a value that is a secret only by its look."""
SHORTEST_WRAPPED = 12
"""The same for a secret that a line break splits."""
SHORTEST_CODED = 8
SHORTEST_START = 6
"""If a line ends with so much of a secret, its redaction waits for the next line."""

BLANKS = b" \t\r\n\\"
ADDRESS = re.compile(r"\w+://[^\s/:@]*:([^\s/@]{6,})@")


@dataclass(frozen=True, slots=True)
class Redactor:
    """A redactor for the secrets of one environment and the tokens of well-known services."""

    secrets: tuple[str, ...] = ()
    by_name: bool = True
    """Also redact values that are secrets only by the name before them."""

    def text(self, text: str) -> str:
        """Return the text with every secret replaced."""
        return _redact_cached(self, text) if len(text) <= CACHED_CHARS else self.split(text, len(text), final=True)[0]

    def split(self, text: str, at: int, *, final: bool = False) -> tuple[str, str]:
        """Split at `at` or before a secret that contains it. Return the redacted front and the original rest.

        A secret whose end may be missing belongs to the rest, unless this is `final`.
        """
        data = text.encode("utf-8", "surrogatepass")
        cut = at if len(data) == len(text) else len(text[:at].encode("utf-8", "surrogatepass"))
        if not final:
            cut = min(cut, _open_key(data), self._open_line(data, cut))
        pieces: list[bytes] = []
        position = 0
        for start, end in _merge(self._spans(data)):
            if end > cut:
                cut = min(cut, start)
                break
            pieces += (data[position:start], REDACTED.encode())
            position = end
        if not pieces and cut == len(data):
            return text, ""
        pieces.append(data[position:cut])
        return _text(b"".join(pieces)), _text(data[cut:])

    def _spans(self, data: bytes) -> Iterator[secret_patterns.Span]:
        needles, wrapped = _search_forms(self.secrets)
        for needle in needles:
            start = data.find(needle)
            while start >= 0:
                yield start, start + len(needle)
                start = data.find(needle, start + len(needle))
        if wrapped and (b"\n" in data or b"\\n" in data):
            flat = data.replace(b"\\n", b"").translate(None, BLANKS)
            for needle in wrapped:
                if needle in flat:
                    yield from (match.span() for match in _over_lines(needle).finditer(data))
        yield from secret_patterns.shape_spans(data)
        if self.by_name:
            yield from secret_patterns.named_spans(data)

    def _open_line(self, data: bytes, at: int) -> int:
        """Return the position of a secret that the last line may cut off, or the length of the text."""
        end = LINE_END.search(data, max(0, at - LONGEST_LINE_END), at)
        word = APART.split(data[max(0, end.start() - LONGEST_WORD) : end.start()])[-1] if end else b""
        if end is None or len(word) < SHORTEST_WORD:
            return len(data)
        line = data.rfind(b"\n", 0, end.start() - len(word)) + 1
        starts = (needle[:SHORTEST_START] for needle in _search_forms(self.secrets)[1])
        if secret_patterns.begins_token(word, at - line) or any(start in word for start in starts):
            return line
        return line if self.by_name and NAMED.search(data, max(0, at - 256), at) else len(data)


SHORTEST_WORD, LONGEST_WORD, LONGEST_LINE_END = 4, 2048, 12
APART = re.compile(rb"[\s\"'`=]+")
LINE_END = re.compile(rb"[ \t]{0,8}\\?\r?\n\Z")
NAMED = re.compile(rb"(?i:passw\w{0,8}|passphrase|secret|token|api_?key)[\"']?[ \t]{0,8}[:=][ \t]{0,8}\r?\n\Z")


@lru_cache(maxsize=2048)
def _redact_cached(redactor: Redactor, text: str) -> str:
    """Redact short texts that repeat: names of tasks, agents, commits and files."""
    return redactor.split(text, len(text), final=True)[0]


def redactor(environment: Mapping[str, str]) -> Redactor:
    """Return a redactor for the secrets in these environment variables."""
    return _redactor(frozenset(environment.items()))


@lru_cache(maxsize=8)
def _redactor(environment: frozenset[tuple[str, str]]) -> Redactor:
    secrets = {secret for name, value in environment for secret in _secrets(name, value.strip())}
    forms = {form for secret in secrets for form in _forms(secret)}
    return Redactor(tuple(sorted(forms, key=lambda secret: (-len(secret), secret))))


def _secrets(name: str, value: str) -> Iterator[str]:
    """Yield the secret part of a variable: its value, or the password in an address."""
    if len(value) < SHORTEST_SECRET or value.lower() in shipped_table("secrets")["common"]:
        return
    weight, data = secret_weight(name.lower().encode(errors="replace")), value.encode(errors="replace")
    is_named_secret = weight == "strong" and is_credible_secret(data, strong=True, quoted=True)
    is_weak_secret = weight == "weak" and (is_credible_secret(data, strong=False, quoted=True) or _is_webhook(data))
    if name.upper().endswith(SECRET_NAMES) or is_named_secret or is_weak_secret or "PRIVATE KEY-----" in value:
        yield value
    elif match := ADDRESS.match(value):
        yield match[1]
    elif not name_pattern("plain").search(name.encode(errors="replace")) and _is_generated(data):
        yield value


def _is_webhook(data: bytes) -> bool:
    """Return whether this is an address with a secret in its path."""
    return data.startswith((b"http://", b"https://")) and secret_patterns.looks_random(data)


def _is_generated(data: bytes) -> bool:
    """Return whether a machine generated this value, and it is no path, version, list or commit id."""
    is_long = len(data) >= SHORTEST_RANDOM and is_credible_secret(data, strong=False, quoted=True)
    return is_long and not re.fullmatch(rb"[0-9a-f-]+|[\w.+-]*[:;,@/ ].*|[\w.]+=.*|(?:[a-z]+|[A-Z]+|\d+|[._-])+", data)


def _forms(value: str) -> Iterator[str]:
    """Yield the secret as plain text, and as encoded in JSON, addresses, base64 and hex."""
    yield value
    yield value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    data = value.encode("utf-8", "surrogatepass")
    yield "".join(chr(code) if chr(code).isalnum() or code in b"-._~" else f"%{code:02X}" for code in data)
    if len(data) >= SHORTEST_CODED:
        yield data.hex()
        yield from _base64_forms(data)
    lines = value.splitlines()
    if len(lines) > 1:  # logs are written line by line
        yield from (line.strip() for line in lines if len(line.strip()) >= SHORTEST_LINE)


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield the base64 forms of a secret inside a longer text.

    The first and last characters also depend on the neighbours, so they are cut.
    """
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        coded = b2a_base64(b"\0" * before + data, newline=False).decode()
        own = coded[shared:] if (before + len(data)) % 3 == 0 else coded.rstrip("=")[shared:-1]
        if len(own) >= SHORTEST_CODED:
            yield own
            yield own.replace("+", "-").replace("/", "_")


@lru_cache(maxsize=8)
def _search_forms(secrets: tuple[str, ...]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the plain forms of the secrets, and the forms without blanks and line ends."""
    needles = tuple(secret.encode("utf-8", "surrogatepass") for secret in secrets)
    flat = (needle.replace(b"\\n", b"").translate(None, BLANKS) for needle in needles)
    return needles, tuple(dict.fromkeys(needle for needle in flat if len(needle) >= SHORTEST_WRAPPED))


@lru_cache(maxsize=64)
def _over_lines(needle: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb"(?:\s|\\n|\\){0,80}".join(re.escape(needle[place : place + 1]) for place in range(len(needle)))
    )


def _merge(spans: Iterator[secret_patterns.Span]) -> Iterator[secret_patterns.Span]:
    last: secret_patterns.Span | None = None
    for start, end in sorted(spans):
        if last is not None and start < last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last is not None:
            yield last
        last = (start, end)
    if last is not None:
        yield last


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _open_key(data: bytes) -> int:
    """Return where a private key begins that is not yet complete, or the length of the text."""
    start = data.rfind(b"-----BEGIN ")
    if start >= 0 and OPEN_KEY.match(data, start):
        return start
    start = data.rfind(b"Private-Lines:")
    if start >= 0 and OPEN_PUTTY.match(data, start):
        return start
    return len(data)


OPEN_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"""(?:[^-"'`(){}]|-(?!----))*(?:-----[A-Z0-9 ]{0,60}-{0,5})?\Z"""  # code that only mentions the header goes on with a quote
)
OPEN_PUTTY = re.compile(rb"Private-Lines:[ \t]{0,4}\d{1,4}(?:\r?\n[A-Za-z0-9+/=]{0,128})*\Z")
