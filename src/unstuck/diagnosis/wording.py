"""Read sentences in ordinary words: a rule holds where a sentence has a word of every list that the rule names. Pure.

The catalogue's vocabulary maps stemmed words, up to four in a row, to lists ("sign in" → log_in). That is a handful of
look-ups per sentence, so only the beginning and the end of an output are read, where messages to a person stand.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from unstuck.diagnosis.evidence import Hit
from unstuck.diagnosis.rule import Rule

FIRST_LINES, LAST_LINES = 40, 160
LONGEST_LINE = 400
LONGEST_PHRASE = 4
APART = 16
"""How many words the parts of what is said may span."""
SIGNS = 0.25
"""The largest share of signs in a line of prose."""
EACH = 6
"""How many words of one list a sentence is tried with: a hostile one must not stall."""
TELLING = "telling"
"""The list of words with which a sentence begins that tells of something else: "Fixed the …", "When you …"."""
SOME = "<some>"
"""Stands for a share that is not all of it, as in "3 of 7" or "2/5"."""

PATH = "path"
"""The list of whatever looks like a file or an address."""

Vocabulary = Mapping[str, Sequence[str]]
Span = tuple[int, int]

SENTENCE_END = re.compile(r"[.;!?]+(?:\s|$)")
TOKEN = re.compile(
    r"(?P<part>\d+) ?(?:/|out of|of(?: the)?) ?(?P<whole>\d+)\b"
    r"|(?P<path>[\w@~.-]*/[\w./@-]+|[\w-]+\.[a-z][a-z0-9]{0,9}\b)"
    r"|(?P<word>[a-z_]+(?:'[a-z]+)?|\d+)"
)
CODE_ENDS = (";", "{", "=>", "):")
CODE_SIGNS = ("::", "#<")
CODE_BEGINS = ("//", "/*", "*", "@", "<", "def ", "class ")


def read(lines: Sequence[str], rules: Sequence[Rule], vocabulary: Vocabulary) -> Iterator[Hit]:
    """Find what plain lines say in ordinary words."""
    for place in (*range(min(FIRST_LINES, len(lines))), *range(max(FIRST_LINES, len(lines) - LAST_LINES), len(lines))):
        line = lines[place]
        if not _prose(line):
            continue
        for sentence in SENTENCE_END.split(line.lower()):
            lists = _lists(_stems(sentence), vocabulary)
            if lists and not any(start == 0 for start, _ in lists.get(TELLING, ())):
                yield from (Hit(rule.id, place) for rule in rules if _says(rule, lists))


def _prose(line: str) -> bool:
    """Whether a line may be written for people: neither code nor a table nor a trace."""
    if len(line) > LONGEST_LINE or line.endswith(CODE_ENDS) or line.startswith(CODE_BEGINS):
        return False
    if any(sign in line for sign in CODE_SIGNS):
        return False
    signs = sum(not (char.isalnum() or char.isspace()) for char in line)
    return signs <= len(line) * SIGNS or line.startswith("{")


def compile_words(words: Mapping[str, str]) -> dict[str, list[str]]:
    """Turn lists of words into what a reader looks up: stems, and the lists that hold them."""
    found: dict[str, list[str]] = {}
    for name, text in words.items():
        for phrase in text.split(","):
            key = phrase.strip() if phrase.strip() == SOME else " ".join(_stems(phrase.strip()))
            found.setdefault(key, []).append(name)
    return {key: list(dict.fromkeys(names)) for key, names in sorted(found.items())}


def stem(word: str) -> str:
    """Cut a word's ending, so that its forms are one: expires, expired, expiring."""
    word = word.removesuffix("'s")
    for ending, least in (("ing", 6), ("ied", 5), ("ed", 5), ("ies", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "eed")):
            word = word[: -len(ending)] + ("y" if ending in {"ied", "ies"} else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdgmnprt":  # noqa: PLR2004  # logged, hitting, running
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word  # noqa: PLR2004


def _stems(sentence: str) -> list[str]:
    stems = []
    for token in TOKEN.finditer(sentence.replace("-", " ")):
        if token["part"]:
            stems.append(SOME if int(token["part"]) < int(token["whole"]) else "<all>")
        else:
            stems.append(token["path"] or stem(token["word"]))
    return stems


def _lists(stems: Sequence[str], vocabulary: Vocabulary) -> dict[str, list[Span]]:
    """Return which lists the words are in, each with where."""
    found: dict[str, list[Span]] = {}
    for start in range(len(stems)):
        if "/" in stems[start] or "." in stems[start]:
            found.setdefault(PATH, []).append((start, start))
        for end in range(start, min(start + LONGEST_PHRASE, len(stems))):
            for name in vocabulary.get(" ".join(stems[start : end + 1]), ()):
                found.setdefault(name, []).append((start, end))
    return found


def _says(rule: Rule, lists: Mapping[str, Sequence[Span]]) -> bool:
    if any(name in lists for name in rule.but) or not all(name in lists for name in rule.says):
        return False
    return _placed([lists[name][:EACH] for name in rule.says], ())


def _placed(places: Sequence[Sequence[Span]], taken: tuple[Span, ...]) -> bool:
    """Whether each list can have words of its own, all near one another."""
    if not places:
        return max(end for _, end in taken) - min(start for start, _ in taken) < APART
    return any(
        _placed(places[1:], (*taken, span))
        for span in places[0]
        if all(span[1] < start or end < span[0] for start, end in taken)
    )
