"""What went wrong: kinds, evidence, rules, and the reading of outputs."""

from unstuck.doors import door

__getattr__ = door(__name__)
