"""The recovery manager for loops of other programs."""
