import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

import money
from cart import Cart

assert [money.parse(text) for text in ("0.05", "7", "120.99")] == [5, 700, 12099]
assert [money.show(cents) for cents in (5, 700, 12099, -105)] == ["0.05", "7.00", "120.99", "-1.05"]
cart = Cart()
cart.add("pen", 120, 4)
cart.add("ink", 75)
cart.add("pen", 120, 2)
assert cart.lines == {"pen": (120, 6), "ink": (75, 1)}
