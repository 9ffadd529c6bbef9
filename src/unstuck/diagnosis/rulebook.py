"""Diagnose one command with the rules of the catalogue and of the user.

A hook may call this after every failing command, so nothing heavy is loaded here: no pydantic, no rich.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstuck.diagnosis.evidence import Evidence, Hit, lines, plain
from unstuck.diagnosis.judging import OWN_WORDS, Diagnosis, holding
from unstuck.diagnosis.judging import diagnose as judge
from unstuck.diagnosis.rule import Rule
from unstuck.diagnosis.rule_files import catalog_guidance, catalog_rules, catalog_words, read_rules, user_file
from unstuck.diagnosis.scanning import RuleScanner
from unstuck.model.failure import KINDS, Kind
from unstuck.toolchain.command_roles import is_system_command

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from unstuck.diagnosis.wording import Words


@dataclass(frozen=True)
class Rulebook:
    """The rules in force, ready to be used many times."""

    rules: tuple[Rule, ...]

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:
        """Say what went wrong, or None if nothing did."""
        found = lines(evidence)
        texts = [plain(line.text) for line in found]
        rules = self._by_id
        hits = holding(evidence, found, self.scan(texts), rules)
        if not any(rules[hit.rule].strength >= OWN_WORDS and rules[hit.rule].proves in KINDS for hit in hits):
            from unstuck.diagnosis.wording import read  # noqa: PLC0415  # not where a tool's own words are enough

            said = read(texts, self._words, evidence.exit_code, guess=not is_system_command(evidence.command))
            hits, rules = [*hits, *said], self._with_words
        judged = judge(evidence, found, hits, rules)
        return replace(judged, evidence=evidence) if judged is not None else None

    def resets_at(self, found: Diagnosis, now: float) -> float | None:
        """Return when the limit ends that was found, where the provider says so."""
        from datetime import datetime  # noqa: PLC0415  # only for a limit

        until = limit_end(found.resets, datetime.fromtimestamp(now).astimezone()) if found.resets else None
        return until.timestamp() if until else None

    def scan(self, texts: Sequence[str]) -> tuple[Hit, ...]:
        """Return what the rules find in plain lines."""
        return self._scanner.scan(texts)

    @cached_property
    def _by_id(self) -> dict[str, Rule]:
        return {rule.id: rule for rule in self.rules}

    @cached_property
    def _sought(self) -> tuple[Rule, ...]:
        """What is looked for in all lines; whether a line is noise is asked only where something was found."""
        return tuple(rule for rule in self.rules if rule.proves != "noise")

    @cached_property
    def _words(self) -> "Words":
        return catalog_words()

    @cached_property
    def _with_words(self) -> dict[str, Rule]:
        from unstuck.diagnosis.wording import rules_of  # noqa: PLC0415  # as above

        return self._by_id | {rule.id: rule for rule in rules_of(self._words)}

    @cached_property
    def _scanner(self) -> RuleScanner:
        return RuleScanner(self._sought)


def open_rulebook(cwd: Path | None = None) -> Rulebook:
    """Return our own rules, and the user's where there are some; theirs win over ours of the same id."""
    return _rulebook(user_file((cwd or Path.cwd()).absolute()))


@lru_cache(maxsize=8)
def _rulebook(own: Path | None) -> Rulebook:
    theirs = read_rules(own) if own else ()
    taken = {rule.id for rule in theirs}
    ours = (rule for rule in catalog_rules() if rule.id not in taken)
    return Rulebook((*theirs, *ours))


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
    """Say what a command's output means: the failure, or None if it did what it should."""
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


def as_json(found: Diagnosis | None, evidence: Evidence, now: "datetime | None" = None) -> dict[str, Any]:
    """Return the public form of a diagnosis."""
    if found is None:
        return {"schema": 1, "failed": False}
    facts = found.facts
    until = limit_end(found.resets, now) if found.resets else None
    return {
        "schema": 1,
        "failed": True,
        "kind": str(found.kind),
        "type": facts.type,
        "category": found.category,
        "phase_type": found.phase_type,
        "blame": facts.blame,
        "retryable": facts.retryable,
        "severity": facts.severity,
        "difficulty": facts.difficulty,
        "confidence": found.confidence,
        "message": found.message,
        "line": found.line,
        "rule": found.rule or None,
        "signature": replace(found, evidence=evidence).signature,
        "where": [{"file": file, "line": line} for file, line in found.where],
        "tests": list(found.tests),
        "names": dict(found.names),
        "resets_at": until.isoformat() if until else None,
        "alternatives": [{"kind": str(kind), "confidence": weight} for kind, weight in found.alternatives],
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
