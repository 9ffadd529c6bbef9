"""Values to text: briefs, reports, questions and the lines of events."""

from unstuck.doors import door

__getattr__ = door(__name__)
