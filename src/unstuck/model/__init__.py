"""Frozen values that every package uses."""
