"""Readers of what agents print: one per output format, all tolerant, all ending in the same typed facts."""
