"""What an output says: the tests that ran and failed, the findings, the measures."""

from unstuck.doors import door

__getattr__ = door(__name__)
