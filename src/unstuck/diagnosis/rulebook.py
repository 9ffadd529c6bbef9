"""Diagnose one command with the rules of the catalogue and of the user.

A hook may call this after every failing command, so nothing heavy is loaded here: no pydantic, no rich.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstuck.diagnosis.diagnosis_result import TOOL_WORDING, Diagnosis
from unstuck.diagnosis.evidence import Evidence, Hit, lines, plain
from unstuck.diagnosis.judging import judge, valid_hits
from unstuck.diagnosis.rule import Rule
from unstuck.diagnosis.rule_files import catalog_guidance, catalog_rules, catalog_words, read_rules, user_file
from unstuck.diagnosis.wording import Words, word_hits, word_rules
from unstuck.model.failure import KINDS, Kind
from unstuck.toolchain.command_roles import is_system_command

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

BLOCK_CHARS = 1 << 18
LONG_TEXT = 1 << 14
MOST_HITS_AT_AN_END = 40
"""Hits of one rule at either end. Hits between them change no judgement, and a flood must not fill memory."""


@dataclass(frozen=True)
class Rulebook:
    """The rules in force, ready to be used many times."""

    rules: tuple[Rule, ...]

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:
        """Return what went wrong, or None if nothing did."""
        output = lines(evidence)
        texts = [plain(line.text) for line in output]
        rules = self._by_id
        hits = valid_hits(evidence, output, self.scan(texts), rules)
        if not any(_is_tool_wording(rules[hit.rule]) for hit in hits):
            is_project_command = not is_system_command(evidence.command)
            hits += word_hits(texts, self._words, evidence.exit_code, with_guesses=is_project_command)
            rules = self._with_words
        diagnosis = judge(evidence, output, hits, rules)
        return replace(diagnosis, evidence=evidence) if diagnosis is not None else None

    def resets_at(self, diagnosis: Diagnosis, now: float) -> float | None:
        """Return when the limit ends that was found, where the provider says so."""
        from datetime import datetime  # noqa: PLC0415  # only for a limit

        until = limit_end(diagnosis.resets, datetime.fromtimestamp(now).astimezone()) if diagnosis.resets else None
        return until.timestamp() if until else None

    def scan(self, texts: Sequence[str]) -> tuple[Hit, ...]:
        """Return what the rules find in plain lines."""
        return self._scanner.scan(texts)

    @cached_property
    def _by_id(self) -> dict[str, Rule]:
        return {rule.id: rule for rule in self.rules}

    @cached_property
    def _searched(self) -> tuple[Rule, ...]:
        """Return the rules for all lines, without the rules about noise, which matter only in lines with a hit."""
        return tuple(rule for rule in self.rules if rule.proves != "noise")

    @cached_property
    def _words(self) -> Words:
        return catalog_words()

    @cached_property
    def _with_words(self) -> dict[str, Rule]:
        return self._by_id | {rule.id: rule for rule in word_rules(self._words)}

    @cached_property
    def _scanner(self) -> "RuleScanner":
        return RuleScanner(self._searched)


def _is_tool_wording(rule: Rule) -> bool:
    return rule.strength >= TOOL_WORDING and rule.proves in KINDS


def open_rulebook(cwd: Path | None = None) -> Rulebook:
    """Return the rules of the catalogue and of the user, whose rules win over others with the same id."""
    return _rulebook(user_file((cwd or Path.cwd()).absolute()))


@lru_cache(maxsize=8)
def _rulebook(own: Path | None) -> Rulebook:
    user_rules = read_rules(own) if own else ()
    user_ids = {rule.id for rule in user_rules}
    return Rulebook((*user_rules, *(rule for rule in catalog_rules() if rule.id not in user_ids)))


def diagnose(
    text: str = "",
    *,
    stderr: str = "",
    exit_code: int | None = None,
    signal: str = "",
    tool: str = "",
    command: str = "",
    timed_out: bool = False,
) -> Diagnosis | None:
    """Return the failure that the output of a command shows, or None if it succeeded."""
    return open_rulebook().diagnose(
        Evidence(
            stdout=text,
            stderr=stderr,
            exit_code=exit_code,
            signal=signal,
            tool=tool,
            command=command,
            timed_out=timed_out,
        )
    )


def guidance(kind: Kind) -> str:
    """Return what to do about a failure of this kind, in a sentence or two."""
    return catalog_guidance()[kind]


def as_json(diagnosis: Diagnosis | None, evidence: Evidence, now: "datetime | None" = None) -> dict[str, Any]:
    """Return the public form of a diagnosis."""
    if diagnosis is None:
        return {"schema": 1, "failed": False}
    facts = diagnosis.facts
    until = limit_end(diagnosis.resets, now) if diagnosis.resets else None
    return {
        "schema": 1,
        "failed": True,
        "kind": str(diagnosis.kind),
        "type": facts.type,
        "category": diagnosis.category,
        "phase_type": diagnosis.phase_type,
        "blame": facts.blame,
        "retryable": facts.retryable,
        "severity": facts.severity,
        "difficulty": facts.difficulty,
        "confidence": diagnosis.confidence,
        "message": diagnosis.message,
        "line": diagnosis.line,
        "rule": diagnosis.rule or None,
        "signature": replace(diagnosis, evidence=evidence).signature,
        "where": [{"file": file, "line": line} for file, line in diagnosis.where],
        "tests": list(diagnosis.tests),
        "names": dict(diagnosis.names),
        "resets_at": until.isoformat() if until else None,
        "alternatives": [{"kind": str(kind), "confidence": weight} for kind, weight in diagnosis.alternatives],
    }


def limit_end(words: str, now: "datetime | None") -> "datetime | None":
    """Return when a limit ends, from a provider's words."""
    from datetime import datetime  # noqa: PLC0415  # only for a limit

    from unstuck.agents.reset_times import reset_time  # noqa: PLC0415  # as above

    return reset_time(words, now or datetime.now().astimezone(), _zone)


def _zone(name: str) -> "tzinfo | None":
    from zoneinfo import ZoneInfo  # noqa: PLC0415  # only where a provider names one

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None


# --- scanning ---------------------------------------------------------------------------------------------


class RuleScanner:
    """A search for many rules at once. It compiles only patterns whose literal text occurs."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rule for rule in rules if rule.pattern)

    def scan(self, lines: Sequence[str]) -> tuple[Hit, ...]:
        """Return the hits in the order of the lines. `lines` are plain, as returned by `evidence.plain`."""
        pairs = _bounded(pair for start, block in _blocks(lines) for pair in self._block(start, block))
        return tuple(Hit(self._rules[rule].id, line, self._groups(rule, lines[line])) for line, rule in pairs)

    def _block(self, start: int, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        text = "\n".join(lines)
        lower = text.lower()
        starts: list[int] = []
        words = _words(lower) if len(text) > LONG_TEXT else ""
        for index, rule in enumerate(self._rules):
            where = lower if rule.ignores_case else text
            needles = [
                needle for needle in rule.needles if (not words or _may_contain(needle, words)) and needle in where
            ]
            if rule.needles and not needles:
                continue
            if not all(any(needle in where for needle in texts) for texts in rule.also):
                continue
            if len(lower) != len(text) or not needles:
                candidates = list(range(len(lines)))
            else:
                starts = starts or _starts(lines)
                candidates = sorted({line for needle in needles for line in _lines_with(needle, where, starts)})
            search = _compiled(rule.pattern).search
            yield from ((start + line, index) for line in candidates if search(lines[line]))

    def _groups(self, rule: int, line: str) -> dict[str, str]:
        match = _compiled(self._rules[rule].pattern).search(line)
        return {name: value for name, value in match.groupdict().items() if value} if match else {}


def _bounded(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first and the last pairs (line, rule) of every rule, sorted by line and rule."""
    first: dict[int, list[int]] = {}
    last: dict[int, list[int]] = {}
    for line, rule in pairs:
        start = first.setdefault(rule, [])
        if len(start) < MOST_HITS_AT_AN_END:
            start.append(line)
            continue
        end = last.setdefault(rule, [])
        end.append(line)
        if len(end) > 2 * MOST_HITS_AT_AN_END:
            del end[:MOST_HITS_AT_AN_END]
    bounded = [(line, rule) for rule, lines in first.items() for line in lines]
    bounded += [(line, rule) for rule, lines in last.items() for line in lines[-MOST_HITS_AT_AN_END:]]
    return sorted(bounded)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield blocks of bounded size, each with the index of its first line."""
    start = size = 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size > BLOCK_CHARS:
            yield start, lines[start : index + 1]
            start, size = index + 1, 0
    if start < len(lines):
        yield start, lines[start:]


def _words(lower: str) -> str:
    """Return the different words of a long text, in which a missing needle is noticed sooner."""
    return " ".join(set(_numbers().sub("0", lower).split()))


def _may_contain(needle: str, words: str) -> bool:
    """Return whether every part of the needle is part of some word."""
    return all(part in words for part in _parts(needle))


@cache
def _parts(needle: str) -> tuple[str, ...]:
    return tuple(_numbers().sub("0", needle.lower()).split())


@lru_cache(maxsize=1)
def _numbers() -> re.Pattern[str]:
    return re.compile(r"\d+", re.ASCII)


def _starts(lines: Sequence[str]) -> list[int]:
    starts, offset = [], 0
    for line in lines:
        starts.append(offset)
        offset += len(line) + 1
    return starts


def _lines_with(needle: str, text: str, starts: list[int]) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        line = bisect_right(starts, at) - 1
        yield line
        at = text.find(needle, starts[line + 1]) if line + 1 < len(starts) else -1


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
