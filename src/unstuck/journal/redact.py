"""Take secrets out of text before anything is stored. Pure, and linear in the length of the text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

REDACTED = "[redacted]"

SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""A variable whose name ends so holds a secret."""

SHORTEST_SECRET = 6
"""Shorter values ("true", "none") would be found all over ordinary text."""

SHORTEST_LINE = 16
"""As above, for the single lines of a secret that has many."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Knows the secrets of one environment, and what the tokens of well-known services look like."""

    secrets: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """Return the text with every secret replaced."""
        return self.split(text, len(text), final=True)[0]

    def split(self, text: str, at: int, *, final: bool = False) -> tuple[str, str]:
        """Cut at `at`, or earlier where that would cut a secret; return the redacted front and the untouched rest.

        A private key whose end has not come yet belongs to the rest, unless this is `final`.
        """
        if not final:
            at = min(at, _open_key(text))
        pieces: list[str] = []
        position = 0
        for start, end in _merge(self._spans(text)):
            if end > at:
                at = min(at, start)
                break
            pieces += (text[position:start], REDACTED)
            position = end
        pieces.append(text[position:at])
        return "".join(pieces), text[at:]

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        for secret in self.secrets:
            start = text.find(secret)
            while start >= 0:
                yield start, start + len(secret)
                start = text.find(secret, start + len(secret))
        for needle, shape in _SHAPES:
            # Finding a plain string is fifty times faster than a regular expression that finds nothing.
            if needle in text:
                for match in re.compile(shape, re.ASCII).finditer(text):
                    yield match.span(match.lastindex or 0)


def redactor(environment: Mapping[str, str]) -> Redactor:
    """Make a redactor that knows the secrets in these environment variables."""
    found = {
        form
        for name, value in environment.items()
        if name.upper().endswith(SECRET_NAMES) and len(value.strip()) >= SHORTEST_SECRET
        for form in _forms(value.strip())
    }
    return Redactor(tuple(sorted(found, key=lambda secret: (-len(secret), secret))))


def _forms(value: str) -> Iterator[str]:
    yield value
    yield value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")  # as it stands inside a JSON string
    lines = value.splitlines()
    if len(lines) > 1:  # logs are written line by line
        yield from (line.strip() for line in lines if len(line.strip()) >= SHORTEST_LINE)


def _merge(spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if last is not None and start < last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last is not None:
            yield last
        last = (start, end)
    if last is not None:
        yield last


def _open_key(text: str) -> int:
    """Return where a private key begins that is not yet complete, or the length of the text."""
    start = text.rfind("-----BEGIN ")
    if start >= 0 and re.compile(_KEY_HEADER + _KEY_BODY + r"(?:-----[A-Z0-9 ]{0,60}-{0,5})?\Z").match(text, start):
        return start
    return len(text)


def _word(beginning: str) -> str:
    """Match `beginning` at the start of a word; an escaped line break or a colour code before it is no letter.

    The look-behinds stand after the literal, so that the search for the literal stays fast.
    """
    return rf"{beginning}(?:(?<![\w-]{beginning})|(?<=\\[nrt]{beginning})|(?<=[\d\[]m{beginning}))"


_KEY_HEADER = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"""(?:[^-"'`(){}]|-(?!----))*"""  # code that only mentions the header goes on with a quote
_KEY_FOOTER = r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_KEY_LINES = r"(?:[^A-Za-z0-9+/=\"'`]{1,12}(?:\d{1,6}[^A-Za-z0-9+/=\"'`]{1,6})?[A-Za-z0-9+/=]{24,})+"  # of a key that was cut off

_BEARER = r"""["'\\]{0,4}\s{0,4}[:=]\s{0,4}["'\\]{0,4}(?i:bearer|basic|token)\s{1,4}([\w.~+/=-]{8,})"""
_AWS_VALUE = r"""["'\\\s:=]{1,12}([A-Za-z0-9/+=]{40,})"""

_SHAPES = (
    # (a string that must be there, what the secret looks like; with a group, only that is the secret)
    ("sk-", _word("sk-") + r"(?=[A-Za-z_-]{0,60}\d)[\w-]{20,}"),
    ("k_live_", r"[sr]k_live_[A-Za-z0-9]{10,}"),
    ("gh", r"gh[pousr]_\w{30,}"),
    ("github_pat_", r"github_pat_\w{22,}"),
    ("glpat-", r"glpat-[\w-]{20,}"),
    ("IA", r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ecret_access_key", "ecret_access_key" + _AWS_VALUE),
    ("SECRET_ACCESS_KEY", "SECRET_ACCESS_KEY" + _AWS_VALUE),
    ("ecretAccessKey", "ecretAccessKey" + _AWS_VALUE),
    ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("AIza", _word("AIza") + r"[\w-]{35}"),
    ("npm_", r"npm_[A-Za-z0-9]{36}(?!\w)"),
    ("pypi-AgE", r"pypi-AgE[\w-]{16,}"),
    ("eyJ", _word("eyJ") + r"[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
    ("uthorization", "uthorization" + _BEARER),
    ("UTHORIZATION", "UTHORIZATION" + _BEARER),
    ("://", r"""://[^\s/:@"'`]{0,256}:(?![{$<*\[]|%[sd(])([^\s/@"'`]{1,256})@"""),
    ("PRIVATE KEY", f"{_KEY_HEADER}(?:{_KEY_BODY}{_KEY_FOOTER}|{_KEY_LINES})"),
)
