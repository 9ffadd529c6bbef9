"""Ways out of failed tool calls: chains, situations, strategies, steps, and what they teach."""
