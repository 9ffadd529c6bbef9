"""Repair a command line or document that cannot be parsed: candidates, likeliest first. Whether one parses, others say."""

import json
import re
from collections.abc import Iterator

MOST = 16
LONGEST = 16_384
SMART = str.maketrans(
    {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u2013": "-", "\u2014": "--", "\u00a0": " "}
)
BLOCKS = (
    (re.compile(r"(?:^|[;\n&|(]|\bthen|\bdo|\belse)[ \t]*if\b"), re.compile(r"(?:^|[;\n])[ \t]*fi\b"), "fi"),
    (
        re.compile(r"(?:^|[;\n&|(]|\bthen|\bdo|\belse)[ \t]*(?:for|while|until)\b"),
        re.compile(r"(?:^|[;\n])[ \t]*done\b"),
        "done",
    ),
    (re.compile(r"(?:^|[;\n&|(]|\bthen|\bdo|\belse)[ \t]*case\b"), re.compile(r"(?:^|[;\n])[ \t]*esac\b"), "esac"),
)
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
HERE_STRING = re.compile(r"(?<![^;|&\n])[ \t]*(\S[^;|&\n]{0,200}?)\s*<<<\s*(\"[^\"]*\"|'[^']*'|\S+)")
PARENS = re.compile(r"(?<![\w$\\\"'=<>])(?=[^\s'\"`$;|&]{0,200}[()])([^\s'\"`$;|&<>]{1,400})")


def repairs(text: str) -> tuple[str, ...]:
    """Return other spellings of a shell script that may be what was meant."""
    if not text or len(text) > LONGEST:
        return ()
    found: dict[str, None] = {}
    base = text.replace("\r\n", "\n").replace("\r", "\n").translate(SMART)
    for start in dict.fromkeys((base, _spaced(base))):
        for candidate in _candidates(start):
            if candidate != text and candidate.strip():
                found.setdefault(candidate)
    return tuple(found)[:MOST]


def _candidates(text: str) -> Iterator[str]:
    yield text
    line = text.rstrip()
    yield _closed_blocks(line)
    yield _closed_quotes(line)
    yield _closed_blocks(_closed_quotes(line))
    yield _closed_brackets(line)
    yield _closed_blocks(_closed_brackets(_closed_quotes(line)))
    yield re.sub(r"(?<!\s)\s*(?:&&|\|\||\||&|\\)\s*$", "", line)
    yield re.sub(r"^\s*(?:&&|\|\||\||;)\s*", "", line)
    yield re.sub(r"(;\s*){2,}(?!;)", "; ", line)
    yield re.sub(r"([|&;])\s*;", r"\1", line)
    if heredoc := HEREDOC.search(line):
        yield f"{line}\n{heredoc[1]}\n"
    yield PARENS.sub(lambda word: f"'{word[1]}'", line)
    yield re.sub(r"(\bif\b[^;\n]{0,300}?\])\s*(?=\bthen\b)", r"\1; ", line)
    yield re.sub(r"(\b(?:for|while|until)\b[^;\n]{0,300}?)\s+(?=\bdo\b)", r"\1; ", line)
    yield _without_extra_closers(line)


def posix(text: str) -> str:
    """Return the script with bash's own syntax spelled as every shell reads it, as far as that is possible."""
    if len(text) > LONGEST:
        return text
    text = re.sub(r"\[\[\s+([^\n\]]{1,400}?)\s+\]\]", lambda found: _tests(found[1]), text)
    text = re.sub(r"\bfunction\s+([\w-]+)\s*(?:\(\s*\))?\s*\{", r"\1() {", text)
    text = re.sub(r"&>>\s*([^\s;&|]+)", r">>\1 2>&1", text)
    text = re.sub(r"&>\s*([^\s;&|]+)", r">\1 2>&1", text)
    text = re.sub(r"\|&", "2>&1 |", text)
    text = re.sub(r"(^|[;&|\n][ \t]*)source\s", r"\1. ", text)
    if "<<<" in text:
        text = re.sub(HERE_STRING, r"printf '%s\\n' \2 | \1", text)
    text = re.sub(r"\{(\d{1,4})\.\.(\d{1,4})\}", _counted, text)
    return re.sub(r"\(\(\s*(\w+)\+\+\s*\)\)", r"\1=$((\1+1))", text)


def mended_json(text: str) -> str:
    """Return a JSON document without what hand-written ones have too much of; empty if that is not enough."""
    if len(text) > LONGEST:
        return ""
    bare = text.lstrip("\ufeff").translate({ord("\u201c"): '"', ord("\u201d"): '"'})
    bare = re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/', lambda found: found[1] or "", bare)
    bare = re.sub(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[\]}])', lambda found: found[1] or "", bare)
    bare = re.sub(r"(\"(?:[^\"\\\n]|\\.)*\")|'([^'\"\n]*)'", lambda found: found[1] or f'"{found[2]}"', bare)
    bare = re.sub(
        r'("(?:[^"\\\n]|\\.)*")|(?<=[{,\s])([A-Za-z_]\w*)(?=\s*:)', lambda found: found[1] or f'"{found[2]}"', bare
    )
    bare = re.sub(
        r'("(?:[^"\\\n]|\\.)*")|\b(True|False|None)\b',
        lambda found: found[1] or {"True": "true", "False": "false", "None": "null"}[found[2]],
        bare,
    )
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return ""
    return bare


def _spaced(text: str) -> str:
    """Put the blanks around what a test stands between."""
    text = re.sub(r"\b(if|while|until|elif)\[", r"\1 [", text)
    text = re.sub(r"(?<=\s)\[(?=[^\s\[:\]!*?^-])", "[ ", text)
    return re.sub(r"(?<=[^\s\]*?:])\](?=\s*(?:;|$|\n|&&|\|\|))", " ]", text)


def _closed_blocks(text: str) -> str:
    """Add the words that end what was begun, the innermost first."""
    bare = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|#[^\n]*", "x", text)
    begun = [(found.start(), end) for begin, _, end in BLOCKS for found in begin.finditer(bare)]
    ended = {end: len(finish.findall(bare)) for _, finish, end in BLOCKS}
    open_ones = []
    for _, end in sorted(begun):
        if ended[end]:
            ended[end] -= 1
        else:
            open_ones.append(end)
    return "".join((text, *(f"\n{end}" if text.endswith(";;") else f"; {end}" for end in reversed(open_ones))))


def _closed_quotes(text: str) -> str:
    quote, escaped = "", False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
    return text + quote


def _closed_brackets(text: str) -> str:
    bare = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", "", text)
    missing = "".join(
        close * max(0, bare.count(start) - bare.count(close))
        for start, close in (("[[", " ]]"), ("(", ")"), ("{", "; }"))
    )
    single = " ]" if "[[" not in bare and bare.count("[ ") > bare.count(" ]") else ""
    return text + single + missing


def _without_extra_closers(text: str) -> str:
    for start, close in (("(", ")"), ("{", "}")):
        if text.count(close) > text.count(start):
            text = text[: text.rindex(close)] + text[text.rindex(close) + 1 :]
    return text


def _tests(inside: str) -> str:
    clauses = re.split(r"\s*(&&|\|\|)\s*", inside.replace(" == ", " = "))
    return " ".join(clause if clause in {"&&", "||"} else f"[ {clause} ]" for clause in clauses)


def _counted(found: re.Match[str]) -> str:
    first, last = int(found[1]), int(found[2])
    numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
    return " ".join(map(str, numbers)) if len(numbers) <= 200 else found[0]  # noqa: PLR2004  # a list that can be read
