"""Agent manifests, how agents are called, and the output they print."""
