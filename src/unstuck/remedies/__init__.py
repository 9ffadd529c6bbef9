"""Recovery chains for failed tool calls: plan, steps and learning."""
