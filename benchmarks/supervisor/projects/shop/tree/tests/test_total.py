#@ 1.3
from cart import Cart


def test_the_total_counts_everything():
    cart = Cart()
    cart.add("tea", 300, 2)
    assert cart.total() == 600
#@ end
