import unittest

import pytest
from shop.cart import Cart, price


@pytest.fixture
def cart():
    return Cart(currency="EUR")


def test_adds_items(cart):
    cart.add("tea", 2)
    cart.add("milk", 1)
    assert cart.count() == 3
    assert cart.names() == ["tea", "milk"]


@pytest.mark.parametrize(
    ("code", "rate"),
    [
        ("TEN", 0.1),
        ("HALF", 0.5),
        ("NONE", 0.0),
        ("FREE", 1.0),
    ],
)
def test_coupons(cart, code, rate):
    assert cart.rate(code) == rate


def test_refuses_negative_amounts(cart):
    with pytest.raises(ValueError, match="negative"):
        cart.add("tea", -1)
    assert cart.count() == 0


class TestPrice(unittest.TestCase):
    def test_rounds_half_up(self):
        self.assertEqual(price(1.005, digits=2), "1.01")
        self.assertIn(".", price(3, digits=2))

    def test_free_is_free(self):
        self.assertTrue(price(0) == "0.00")
        self.assertFalse(price(0).startswith("-"))
