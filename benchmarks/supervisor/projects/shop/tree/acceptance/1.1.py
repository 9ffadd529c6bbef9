import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import money

for text, cents in {"-1.05": -105, "-0.50": -50, "2.10": 210}.items():
    assert money.parse(text) == cents, f"acceptance 1.1: parse({text!r}) is {money.parse(text)}, not {cents}"
