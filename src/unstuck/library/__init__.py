"""The recovery manager for a loop of one's own: history, decisions, hints, reports and remedies without a supervisor."""

from unstuck.doors import door

__getattr__ = door(__name__)
