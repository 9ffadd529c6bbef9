#@ 1.6
"""Save and load."""

import json

from cart import Cart


def dump(cart: Cart) -> str:
    return json.dumps(cart.lines)


def load(text: str) -> Cart:
    cart = Cart()
    cart.lines = {name: (cents, count) for name, (cents, count) in json.loads(text).items()}
    return cart
#@ half
"""Save and load."""

import json

from cart import Cart


def dump(cart: Cart) -> str:
    return json.dumps(cart.lines)


def load(text: str) -> Cart:
    cart = Cart()
    cart.lines = json.loads(text)
    return cart
#@ end
