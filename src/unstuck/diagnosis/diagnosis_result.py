"""The result of diagnosing one failed command."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from unstuck.diagnosis.evidence import Evidence
from unstuck.model.failure import KINDS, Judged, Kind

TOOL_WORDING = 80
"""The least strength of a rule about a tool's own wording."""
LONGEST_SIGNED_OUTPUT = 1 << 16
_GUESS_RULE_PREFIX = "perhaps."

_PHASE_KINDS = frozenset({
    Kind.PLAN_INVALID, Kind.CIRCULAR_DEPENDENCY, Kind.RESULT_UNREADABLE, Kind.CLAIM_REFUTED, Kind.TASK_INCOMPLETE,
})  # fmt: skip
_PHASE_ALTERNATIVES: Mapping[Kind, frozenset[Kind]] = {
    Kind.SYNTAX_ERROR: frozenset({Kind.LINT_FAILED, Kind.TYPES_FAILED}),
    Kind.MALFORMED_INPUT: frozenset({Kind.PLAN_INVALID}),
    **dict.fromkeys((Kind.INVALID_ARGUMENTS, Kind.FILE_NOT_FOUND, Kind.CHECK_FAILED), _PHASE_KINDS),
}
"""Kinds that name the phase better: a linter that cannot parse a file, a plan that is no JSON."""
_CATEGORY_ALTERNATIVES: Mapping[Kind, frozenset[Kind]] = {
    Kind.DEPENDENCY_MISSING: frozenset({Kind.FILE_NOT_FOUND, Kind.MODULE_MISSING}),
    Kind.PACKAGE_NOT_FOUND: frozenset({Kind.FILE_NOT_FOUND}),
}
"""A header that is not installed, or a package that a server does not have, is also a missing file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis(Judged):
    """A failure with its kind, the decisive line, and what that line names."""

    kind: Kind
    confidence: float
    message: str = ""
    line: int | None = None
    rule: str = ""
    where: tuple[tuple[str, int | None], ...] = ()
    tests: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """Names in the decisive line: package, command, port, variable …"""
    resets: str = ""
    """When a limit ends, in the provider's words."""
    alternatives: tuple[tuple[Kind, float], ...] = ()
    evidence: Evidence = field(default=Evidence(), repr=False, compare=False)

    @property
    def is_guess(self) -> bool:
        """Return whether the diagnosis is good enough to show, but too weak to act on."""
        return self.rule.startswith(_GUESS_RULE_PREFIX)

    @property
    def category(self) -> str | None:
        return KINDS[self._alternative(_CATEGORY_ALTERNATIVES)].category

    @property
    def phase_type(self) -> str | None:
        is_tool_wording = self.confidence >= TOOL_WORDING / 100
        if is_tool_wording and _PHASE_ALTERNATIVES.get(self.kind) is _PHASE_KINDS:
            return KINDS[self.kind].phase_type
        return KINDS[self._alternative(_PHASE_ALTERNATIVES)].phase_type

    def _alternative(self, table: Mapping[Kind, frozenset[Kind]]) -> Kind:
        """Return the first alternative that the table prefers, or the kind itself."""
        preferred = table.get(self.kind, frozenset())
        return next((kind for kind, _ in self.alternatives if kind in preferred), self.kind)

    @property
    def signature(self) -> str:
        from unstuck.diagnosis.signature import signature  # noqa: PLC0415  # the hook rarely needs it

        output = f"{self.evidence.stdout}\n{self.evidence.stderr}"
        text = output if len(output) <= LONGEST_SIGNED_OUTPUT else self.message
        return signature(text, str(self.kind), self.tests)


class Judge(Protocol):
    """A diagnosis of the output of failed commands."""

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:
        """Return what went wrong, or None if nothing did."""

    def resets_at(self, diagnosis: Diagnosis, now: float) -> float | None:
        """Return when the limit ends, in seconds since 1970, if the provider says so."""
