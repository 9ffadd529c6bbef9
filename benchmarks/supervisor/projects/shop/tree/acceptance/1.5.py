import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cart import Cart

try:
    from receipt import lines
except ImportError as error:
    raise SystemExit(f"acceptance 1.5: {error}") from None

cart = Cart()
cart.add("tea", 300, 2)
assert lines(cart) == ["2 x tea 6.00"], f"acceptance 1.5: {lines(cart)}"
