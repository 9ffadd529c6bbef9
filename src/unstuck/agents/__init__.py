"""Coding agents: how they are called, what they print, and what they say of their work."""
