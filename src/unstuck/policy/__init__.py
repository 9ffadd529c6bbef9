"""Choose the next action from the failure, the history and the profile."""
