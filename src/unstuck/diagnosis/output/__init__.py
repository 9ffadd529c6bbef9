"""Readers of the output of test runners, linters and compilers."""
