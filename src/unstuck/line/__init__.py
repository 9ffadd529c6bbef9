"""The product: stages, the loop, the pool, landing, resuming and operating a run."""

from unstuck.doors import door

__getattr__ = door(__name__)
