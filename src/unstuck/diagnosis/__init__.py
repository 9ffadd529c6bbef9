"""What went wrong: kinds, evidence, rules, and the reading of outputs."""
