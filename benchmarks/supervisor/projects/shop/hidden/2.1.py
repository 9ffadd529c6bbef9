import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from cart import Cart

ours, theirs = Cart(), Cart()
ours.add("pen", 120, 2)
ours.add("ink", 75)
theirs.add("pen", 120, 3)
theirs.add("pad", 210)
ours.merge(theirs)
assert ours.lines == {"pen": (120, 5), "ink": (75, 1), "pad": (210, 1)}
assert theirs.lines == {"pen": (120, 3), "pad": (210, 1)}
