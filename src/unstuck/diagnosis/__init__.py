"""Classify what went wrong from exit codes and output."""
