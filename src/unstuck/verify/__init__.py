"""Whether the work holds: checks, verdicts, baselines, and the audit of what a change does to its judge."""

from unstuck.doors import door

__getattr__ = door(__name__)
