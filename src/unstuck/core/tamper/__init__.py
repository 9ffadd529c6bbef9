"""The tamper audit: it finds where a change makes the checks mean less."""

from unstuck.core.tamper.audit import audit
from unstuck.core.tamper.change import Change, Finding, Severity
from unstuck.core.tamper.rules import RULES, Rule

__all__ = ["RULES", "Change", "Finding", "Rule", "Severity", "audit"]
