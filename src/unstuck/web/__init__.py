"""The face in the browser: a live board, and a page to keep."""

from unstuck.doors import door

__getattr__ = door(__name__)
