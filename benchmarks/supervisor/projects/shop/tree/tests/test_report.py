#@ 2.2
from cart import Cart
from report import summary


def test_a_summary_tells_both_sums():
    cart = Cart()
    cart.add("tea", 325, 2)
    assert summary(cart, 10) == "total 6.50, to pay 5.85"
#@ end
