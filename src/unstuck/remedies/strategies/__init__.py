"""Strategies of the recovery chains, by the kind of failure."""
