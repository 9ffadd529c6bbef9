"""Audit what a change does to its own judges: the reader of tests, the law of conservation, the rules for settings."""

from unstuck.doors import door

__getattr__ = door(__name__)
