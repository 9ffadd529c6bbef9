"""Whether the work holds: checks, verdicts, baselines, and the audit of what a change does to its judge."""
