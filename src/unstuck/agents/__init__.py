"""Coding agents: how they are called, what they print, and what they say of their work."""

from unstuck.doors import door

__getattr__ = door(__name__)
