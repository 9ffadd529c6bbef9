import money
from cart import Cart


def test_amounts_are_read_and_written():
    assert money.parse("12.50") == 1250
    assert money.show(1205) == "12.05"


def test_a_cart_counts_things():
    cart = Cart()
    cart.add("tea", 300)
    cart.add("tea", 300, 2)
    assert cart.lines == {"tea": (300, 3)}
