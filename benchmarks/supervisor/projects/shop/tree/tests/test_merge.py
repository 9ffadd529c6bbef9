#@ 2.1
from cart import Cart


def test_two_carts_become_one():
    ours, theirs = Cart(), Cart()
    ours.add("tea", 300)
    theirs.add("tea", 300, 2)
    ours.merge(theirs)
    assert ours.lines == {"tea": (300, 3)}
#@ end
