"""Processes of which nothing is left, and our own files, time and owners."""

from unstuck.doors import door

__getattr__ = door(__name__)
