import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from cart import Cart
from receipt import lines

cart = Cart()
assert lines(cart) == []
cart.add("pen", 120, 5)
cart.add("ink", 75)
assert lines(cart) == ["5 x pen 6.00", "1 x ink 0.75"]
