import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

import money

assert [money.parse(text) for text in ("-3.07", "-0.01", "-12", "4.40")] == [-307, -1, -1200, 440]
