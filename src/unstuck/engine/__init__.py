"""The engine of a run: stages, loop, pool, sessions, landing and resuming."""
