"""Audit what a change does to its own judges: the reader of tests, the law of conservation, the rules for settings."""

from unstuck.verify.audit.auditing import accounted, audit
from unstuck.verify.audit.settings import is_harmless

__all__ = ["accounted", "audit", "is_harmless"]
