"""Audit what a change does to its own judges: the reader of tests, the law of conservation, the rules for settings."""
