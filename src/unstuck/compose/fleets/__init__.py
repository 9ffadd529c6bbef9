"""The journal that machines share, the fleet of a run, and the workers in it."""
