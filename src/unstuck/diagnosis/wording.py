"""Read what a failure says in ordinary words, by weights that were learned from examples.

Tools have their own wording, for which there are rules. Agents, orchestrators and people say the same in ever new words.
`benchmarks/training/words.toml` lists which words mean the same, `sentences/` beside it holds examples of every kind, and
`make rules` learns from both how much a word or a notion speaks for a kind. Judging a text adds up its weights: a few
hundred look-ups. The result weighs less than a tool's own wording.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import exp
from typing import NamedTuple

from unstuck.diagnosis.evidence import Hit
from unstuck.diagnosis.rule import Rule
from unstuck.model.failure import KINDS, Kind

FIRST_LINES, LAST_LINES = 20, 60
LONGEST_LINE = 700
PASSAGE = 70
"""Words that are judged together: about as many as an agent writes about one subject."""
LONGEST_PHRASE = 4
USUAL = 14
"""A longer text is not surer in proportion to its length."""
SIGNS = 0.25
"""The largest share of signs in a line of prose."""
GUESS, SURE, CERTAIN = 0.25, 0.45, 0.9
"""Least probabilities of a guess, of a result like a weak rule, and of a failure despite exit code 0."""
NOTHING = "none"
"""Label of examples of harmless text."""
HARMLESS = 0.3
"""Factor on the probability of harmless text after an exit code that is not 0."""
SCALE, ZERO = 10, 80
"""A weight is one character: its code less ZERO, in units of 1/SCALE."""
AGENTS = r"(?im)^\s*(?:agent\w*|claude|codex|gemini|opencode|aider|goose|copilot|cursor-agent|cline)\b"
CLIENTS = r"(?im)^\s*(?:curl|wget|https?|xh)\b"
"""Programs with exit code 0 although the server refuses."""
REFUSALS = frozenset({"rate_limited", "quota_exhausted", "provider_overloaded", "auth_failed", "billing"})

WORD_FORMS = (
    r"(?P<part>\d+) ?(?:/|out of|of(?: the| its)?) ?(?P<whole>\d+)\b"
    r"|(?P<path>(?:https?://)?[\w@~.-]*/[\w./@-]+|[\w-]+\.[a-z][a-z0-9]{0,9}\b)"
    r"|(?P<word>[^\W\d_]+(?:'[a-z]+)?)|(?P<number>\d[\d.,]*)(?P<unit>ms|s|k|m|h|gb|mb|kb)?\b|(?P<sign>[?%])"
)
UNSPACED = "\u2e80"
"""Where the scripts begin that put no blanks between words."""
LONGEST_FOREIGN = 5
CODES = frozenset({"0", "401", "403", "404", "429", "500", "502", "503", "529"})
CAMEL = r"([a-z0-9])([A-Z])"
PLAIN = str.maketrans("-_éèêëáàâãíìîïóòôõúùûñç", "  eeeeaaaaiiiioooouuunc") | str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}
)
CODE_ENDS = (";", "{", "=>", "):")
CODE_BEGINS = ("//", "/*", "*", "@", "<", "def ", "class ", "+", "at ")


class Words(NamedTuple):
    """The learned model: notions by phrase, and the weights of each word and notion for every kind."""

    notions: Mapping[str, Sequence[str]]
    kinds: Sequence[str]
    weights: Mapping[str, str]


def word_rules(words: Words) -> Iterator[Rule]:
    """Yield the rules of each kind: a certain one, a guess, and an admission despite exit code 0."""
    for name in words.kinds:
        if name != NOTHING:
            yield Rule(f"words.{name}", Kind(name), strength=54)
            yield Rule(f"perhaps.{name}", Kind(name), strength=41)
            programs = f"{AGENTS}|{CLIENTS[5:]}" if name in REFUSALS else AGENTS
            yield Rule(f"admits.{name}", Kind(name), strength=54, zero=True, command=programs)


def word_hits(lines: Sequence[str], words: Words, exit_code: int | None, *, with_guesses: bool = True) -> Iterator[Hit]:
    """Yield the hit of the most certain passage of plain lines."""
    best: tuple[float, str, int] | None = None
    for place, text in _passages(lines):
        name, sure = likeliest_kind(text, words, 1.0 if exit_code in (0, None) else HARMLESS)
        if name != NOTHING and (best is None or sure > best[0]):
            best = (sure, name, place)
    if best is None:
        return
    sure, name, place = best
    if exit_code == 0 and sure >= CERTAIN:
        yield Hit(f"admits.{name}", place)
    elif exit_code != 0 and sure >= (GUESS if with_guesses else SURE):
        yield Hit(f"{'words' if sure >= SURE else 'perhaps'}.{name}", place)


def likeliest_kind(text: str, words: Words, harmless: float = 1.0) -> tuple[str, float]:
    """Return the likeliest kind of a text with its probability."""
    tokens = tokens_of(text)
    weights = [weight for name in features(tokens, words.notions) if (weight := words.weights.get(name))]
    if not weights:
        return NOTHING, 0.0
    long = max(1.0, (len(tokens) / USUAL) ** 0.5) * SCALE
    scores = [
        (sum(map(ord, column)) - ZERO * len(weights)) / long for column in zip(words.weights[""], *weights, strict=True)
    ]
    scores = [score - ZERO / long for score in scores]
    most = max(scores)
    parts = {name: exp(score - most) for name, score in zip(words.kinds, scores, strict=True)}
    parts[NOTHING] *= harmless
    shares: dict[tuple[str | None, ...], float] = {}
    for name, part in parts.items():
        shares[_called(name)] = shares.get(_called(name), 0.0) + part
    likeliest = max(shares, key=shares.__getitem__)
    name = max((name for name in parts if _called(name) == likeliest), key=parts.__getitem__)
    return name, shares[likeliest] / sum(parts.values())


@cache
def _called(name: str) -> tuple[str | None, ...]:
    """Return the names of a kind in the three vocabularies. Kinds with the same names support each other."""
    facts = KINDS.get(Kind(name)) if name != NOTHING else None
    return (facts.type, facts.category, facts.phase_type) if facts else (NOTHING,)


def _passages(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield pieces of prose with the line where each begins."""
    piece: list[str] = []
    start = size = 0
    ends = max(FIRST_LINES, len(lines) - LAST_LINES)
    for place in (*range(min(FIRST_LINES, len(lines))), *range(ends, len(lines))):
        line = lines[place]
        if not line or not _prose(line):
            continue
        length = line.count(" ") + 1
        if piece and size + length > PASSAGE:
            yield start, "\n".join(piece)
            piece, size = [], 0
        start, size = (start, size + length) if piece else (place, length)
        piece.append(line)
    if piece:
        yield start, "\n".join(piece)


def _prose(line: str) -> bool:
    """Return whether a line may be prose: neither code nor a table nor a trace."""
    if len(line) > LONGEST_LINE or line.endswith(CODE_ENDS) or line.startswith(CODE_BEGINS):
        return False
    signs = sum(not (char.isalnum() or char.isspace()) for char in line)
    return signs <= len(line) * SIGNS or line.startswith("{")


def tokens_of(text: str) -> list[str]:
    """Return the stems of a text, with placeholders for numbers, shares and paths."""
    tokens = []
    for token in re.finditer(WORD_FORMS, re.sub(CAMEL, r"\1 \2", text).lower().translate(PLAIN)):
        if token["part"]:
            tokens.append("<some>" if int(token["part"]) < int(token["whole"]) else "<all>")
        elif token["word"]:
            tokens += _pieces(token["word"])
        elif token["number"]:
            tokens.append(f"<{token['number']}>" if token["number"] in CODES else "<n>")
            tokens += [token["unit"]] if token["unit"] else []
        else:
            tokens.append("<path>" if token["path"] else token["sign"])
    return tokens


def _pieces(word: str) -> list[str]:
    """Return the stem of an English word, the beginning of another, or pairs of letters in a script without blanks."""
    if word.isascii():
        return [stem(word)]
    if word[0] < UNSPACED:
        return [word[:LONGEST_FOREIGN]]
    return [word[place : place + 2] for place in range(max(1, len(word) - 1))]


def features(tokens: Sequence[str], notions: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the words of a text and the notions that they stand for."""
    names = set(tokens)
    for start in range(len(tokens)):
        for end in range(start, min(start + LONGEST_PHRASE, len(tokens))):
            names.update(notions.get(" ".join(tokens[start : end + 1]), ()))
    return names


def stem(word: str) -> str:
    """Return a word without its ending, so that expires, expired and expiring are one."""
    word = word.removesuffix("'s")
    for ending, least in (("ing", 6), ("ied", 5), ("ed", 5), ("ies", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "eed")):
            word = word[: -len(ending)] + ("y" if ending in {"ied", "ies"} else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdgmnprt":  # noqa: PLR2004  # logged, hitting, running
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word  # noqa: PLR2004
