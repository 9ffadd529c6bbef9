"""Shell text, what commands are for, and the stacks of a repository."""
