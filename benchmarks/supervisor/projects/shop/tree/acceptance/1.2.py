import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cart import Cart

cart = Cart()
cart.add("tea", 300, 2)
assert hasattr(cart, "remove"), "acceptance 1.2: Cart has no remove()"
cart.remove("tea")
assert cart.lines == {"tea": (300, 1)}, f"acceptance 1.2: {cart.lines} after one of two was removed"
cart.remove("tea")
assert cart.lines == {}, f"acceptance 1.2: {cart.lines} after all were removed"
