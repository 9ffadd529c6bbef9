"""Check the work in a clean checkout and give a verdict."""
