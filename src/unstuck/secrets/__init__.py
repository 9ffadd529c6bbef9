"""What secrets look like, and what is left of a text without them."""

from unstuck.doors import door

__getattr__ = door(__name__)
