"""Plans as values, and the documents that they are read from and written to."""

from unstuck.doors import door

__getattr__ = door(__name__)
