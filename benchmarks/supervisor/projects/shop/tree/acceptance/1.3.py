import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cart import Cart

cart = Cart()
cart.add("tea", 300, 2)
cart.add("cup", 50)
assert hasattr(cart, "total"), "acceptance 1.3: Cart has no total()"
assert cart.total() == 650, f"acceptance 1.3: the total is {cart.total()}, not 650"
