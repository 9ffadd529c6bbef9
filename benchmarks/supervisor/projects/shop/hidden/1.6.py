import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from cart import Cart
from store import dump, load

cart = Cart()
cart.add("pen", 120, 5)
cart.add("ink", 75)
again = load(dump(cart))
assert again.lines == cart.lines
again.add("pen", 120)
assert again.lines["pen"] == (120, 6)
