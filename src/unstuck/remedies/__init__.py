"""Ways out of failed tool calls: chains, situations, strategies, steps, and what they teach."""

from unstuck.doors import door

__getattr__ = door(__name__)
