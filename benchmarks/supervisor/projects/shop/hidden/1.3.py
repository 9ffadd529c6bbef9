import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from cart import Cart

cart = Cart()
assert cart.total() == 0
cart.add("pen", 120, 5)
cart.add("ink", 75, 3)
assert cart.total() == 825
