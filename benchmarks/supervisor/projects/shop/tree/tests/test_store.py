#@ 1.6
from cart import Cart
from store import dump, load


def test_a_cart_comes_back_as_it_was():
    cart = Cart()
    cart.add("tea", 300, 2)
    assert load(dump(cart)).lines == cart.lines
#@ end
