#@ 1.5
"""Receipts."""

import money


def lines(cart) -> list[str]:
    """Return one line per thing."""
    return [f"{count} x {name} {money.show(cents * count)}" for name, (cents, count) in cart.lines.items()]
#@ half
"""Receipts."""

import money


def lines(cart) -> list[str]:
    """Return one line per thing."""
    return [f"{count} x {name} {money.show(cents)}" for name, (cents, count) in cart.lines.items()]
#@ end
