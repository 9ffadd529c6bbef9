#@ 1.4
"""Discounts."""


def discounted(cents: int, percent: int) -> int:
    """Return the reduced amount, rounded down."""
    if not 0 <= percent <= 100:
        raise ValueError(percent)
    return cents * (100 - percent) // 100
#@ half
"""Discounts."""


def discounted(cents: int, percent: int) -> int:
    """Return the reduced amount, rounded down."""
    return round(cents * (100 - percent) / 100)
#@ end
