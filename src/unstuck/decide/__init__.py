"""What to do next: policies, histories, circles, fix tasks and experience."""
