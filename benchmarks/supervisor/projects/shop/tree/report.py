#@ 2.2
"""Sums."""

import discount
import money


def summary(cart, percent: int) -> str:
    """Return what it costs and what is to be paid."""
    total = cart.total()
    return f"total {money.show(total)}, to pay {money.show(discount.discounted(total, percent))}"
#@ half
"""Sums."""

import money


def summary(cart, percent: int) -> str:
    """Return what it costs and what is to be paid."""
    return f"total {money.show(cart.total())}"
#@ end
