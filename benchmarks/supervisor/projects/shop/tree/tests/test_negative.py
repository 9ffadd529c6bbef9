#@ 1.1
import money


def test_negative_amounts_are_read():
    assert money.parse("-1.05") == -105
#@ end
