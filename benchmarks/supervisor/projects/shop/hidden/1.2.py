import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from cart import Cart

cart = Cart()
cart.add("pen", 120, 5)
cart.remove("pen", 2)
assert cart.lines == {"pen": (120, 3)}
cart.remove("pen", 3)
assert cart.lines == {}
try:
    cart.remove("pen")
except KeyError:
    sys.exit()
sys.exit("no KeyError")
