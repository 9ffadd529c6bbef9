"""Plans as values, and the documents that they are read from and written to."""
