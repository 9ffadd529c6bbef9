"""Amounts are whole cents."""


def parse(text: str) -> int:
    """Read an amount such as 12.50."""
    #@ 1.1
    sign = -1 if text.startswith("-") else 1
    units, _, cents = text.lstrip("-").partition(".")
    return sign * (int(units) * 100 + int(cents or 0))
    #@ half
    units, _, cents = text.partition(".")
    return int(units) * 100 - int(cents or 0) if int(units) < 0 else int(units) * 100 + int(cents or 0)
    #@ before
    units, _, cents = text.partition(".")
    return int(units) * 100 + int(cents or 0)
    #@ end


#@ 0
def show(cents: int) -> str:
    """Write an amount."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"
#@ half
def show(cents: int) -> str:
    """Write an amount."""
    return f"{cents / 100:.1f}"
#@ end
