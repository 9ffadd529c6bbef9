#@ 1.5
from cart import Cart
from receipt import lines


def test_a_receipt_has_a_line_per_thing():
    cart = Cart()
    cart.add("tea", 300, 2)
    assert lines(cart) == ["2 x tea 6.00"]
#@ end
