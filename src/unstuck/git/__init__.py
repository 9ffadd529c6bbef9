"""The user's repository, clones for agents, snapshots and landing."""
