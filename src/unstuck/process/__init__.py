"""Child processes, their logs, the sandbox and our own files on disk."""
