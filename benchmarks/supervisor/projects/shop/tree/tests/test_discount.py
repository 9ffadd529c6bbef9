#@ 1.4
from discount import discounted


def test_a_discount_is_rounded_down():
    assert discounted(333, 10) == 299
#@ end
