"""What happened: events, the fold over them, where they are stored, and the files that people read."""
