"""The user's repository, the slots of a run, snapshots, landing and the way home."""
