import unittest

from cart import Cart


class AddTest(unittest.TestCase):
    def test_the_same_thing_twice_is_one_line(self) -> None:
        cart = Cart()
        cart.add("tea", 300)
        cart.add("tea", 300, 2)
        self.assertEqual(cart.lines, {"tea": (300, 3)})


if __name__ == "__main__":
    unittest.main()
