"""The edges of the system, as protocols. The line knows these; `compose/` fills them with what this machine has."""
