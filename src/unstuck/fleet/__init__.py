"""Runs over many machines: the shared journal, jobs and workers."""
