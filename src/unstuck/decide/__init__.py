"""What to do next: policies, histories, circles, fix tasks and experience."""

from unstuck.doors import door

__getattr__ = door(__name__)
