"""The event store and the state that is folded from its events."""
