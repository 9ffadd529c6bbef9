import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from cart import Cart
from report import summary

cart = Cart()
cart.add("pen", 333, 3)
assert summary(cart, 25) == "total 9.99, to pay 7.49"
assert summary(cart, 0) == "total 9.99, to pay 9.99"
