"""Audit what a change does to its own judges: the reader of tests, the law of conservation, the rules for settings."""

from unstuck.verify.audit.auditing import Test, accounted, audit
from unstuck.verify.audit.change import RULES, Change, Finding, Severity, added_lines, found, is_declared
from unstuck.verify.audit.part import is_judge, part_of
from unstuck.verify.audit.settings import is_harmless

__all__ = [
    "RULES",
    "Change",
    "Finding",
    "Severity",
    "Test",
    "accounted",
    "added_lines",
    "audit",
    "found",
    "is_declared",
    "is_harmless",
    "is_judge",
    "part_of",
]
