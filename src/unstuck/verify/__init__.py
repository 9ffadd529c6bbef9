"""Verify what an attempt did: its checks, and its change."""
