"""The user's repository, the slots of a run, snapshots, landing and the way home."""

from unstuck.doors import door

__getattr__ = door(__name__)
