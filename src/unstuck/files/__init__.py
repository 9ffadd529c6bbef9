"""What lies in a repository: the store, the files that people read and edit, and what predecessors left."""
