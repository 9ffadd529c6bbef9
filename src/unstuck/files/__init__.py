"""What lies in a repository: the store, the files that people read and edit, and what predecessors left."""

from unstuck.doors import door

__getattr__ = door(__name__)
