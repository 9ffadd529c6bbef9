import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cart import Cart

try:
    from store import dump, load
except ImportError as error:
    raise SystemExit(f"acceptance 1.6: {error}") from None

cart = Cart()
cart.add("tea", 300, 2)
assert load(dump(cart)).lines == cart.lines, f"acceptance 1.6: {load(dump(cart)).lines} came back"
