"""Use cases: open a run, inspect it, initialise, diagnose the machine, draft plans."""
