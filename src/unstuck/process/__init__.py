"""Processes of which nothing is left, and our own files, time and owners."""
