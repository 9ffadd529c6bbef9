import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cart import Cart

try:
    from report import summary
except ImportError as error:
    raise SystemExit(f"acceptance 2.2: {error}") from None

cart = Cart()
cart.add("tea", 300, 2)
cart.add("cup", 50)
assert summary(cart, 10) == "total 6.50, to pay 5.85", f"acceptance 2.2: {summary(cart, 10)}"
