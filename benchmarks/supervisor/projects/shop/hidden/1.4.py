import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from discount import discounted

assert [discounted(999, 25), discounted(50, 0), discounted(50, 100), discounted(101, 50)] == [749, 50, 0, 50]
for percent in (-1, 150):
    try:
        discounted(100, percent)
    except ValueError:
        continue
    sys.exit(f"{percent} is taken")
