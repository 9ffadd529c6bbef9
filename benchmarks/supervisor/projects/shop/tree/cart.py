"""A cart: things, their price and how many of them."""


class Cart:
    def __init__(self) -> None:
        self.lines: dict[str, tuple[int, int]] = {}

    #@ 0
    def add(self, name: str, cents: int, count: int = 1) -> None:
        """Put things in."""
        _, before = self.lines.get(name, (cents, 0))
        self.lines[name] = (cents, before + count)
    #@ half
    def add(self, name: str, cents: int, count: int = 1) -> None:
        """Put things in."""
        self.lines[name] = (cents, count)
    #@ end
    #@ 1.2

    def remove(self, name: str, count: int = 1) -> None:
        """Take things out."""
        cents, before = self.lines[name]
        if before > count:
            self.lines[name] = (cents, before - count)
        else:
            del self.lines[name]
    #@ half

    def remove(self, name: str, count: int = 1) -> None:
        """Take things out."""
        cents, before = self.lines[name]
        self.lines[name] = (cents, before - count)
    #@ end
    #@ 1.3

    def total(self) -> int:
        """Return the price of everything."""
        return sum(cents * count for cents, count in self.lines.values())
    #@ half

    def total(self) -> int:
        """Return the price of everything."""
        return sum(cents for cents, _ in self.lines.values())
    #@ end
    #@ 2.1

    def merge(self, other: "Cart") -> None:
        """Take all lines of another cart over."""
        for name, (cents, count) in other.lines.items():
            self.add(name, cents, count)
    #@ half

    def merge(self, other: "Cart") -> None:
        """Take all lines of another cart over."""
        self.lines |= other.lines
    #@ end
