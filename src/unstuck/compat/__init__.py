"""File formats and texts of Auto-Claude, smart-ralph, autobuild and forgekeeper."""
