"""What happened: events, the fold over them, where they are stored, and the files that people read."""

from unstuck.doors import door

__getattr__ = door(__name__)
