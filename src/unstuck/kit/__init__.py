"""What every stage of a run works with: its ports, its settings, its record, and how checks went before."""

from unstuck.doors import door

__getattr__ = door(__name__)
