#@ 1.2
from cart import Cart


def test_things_are_taken_out():
    cart = Cart()
    cart.add("tea", 300, 2)
    cart.remove("tea")
    assert cart.lines["tea"] == (300, 1)
#@ end
