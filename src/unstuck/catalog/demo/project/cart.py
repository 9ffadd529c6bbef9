"""A shopping cart."""


class Cart:
    def __init__(self) -> None:
        self.lines: dict[str, tuple[int, int]] = {}

    def add(self, name: str, cents: int, count: int = 1) -> None:
        """Put something into the cart."""
        _, before = self.lines.get(name, (cents, 0))
        self.lines[name] = (cents, before + count)
