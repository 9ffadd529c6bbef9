import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cart import Cart

ours, theirs = Cart(), Cart()
ours.add("tea", 300)
theirs.add("tea", 300, 2)
theirs.add("cup", 50)
assert hasattr(ours, "merge"), "acceptance 2.1: Cart has no merge()"
ours.merge(theirs)
assert ours.lines == {"tea": (300, 3), "cup": (50, 1)}, f"acceptance 2.1: {ours.lines}"
assert theirs.lines == {"tea": (300, 2), "cup": (50, 1)}, "acceptance 2.1: the other cart changed"
