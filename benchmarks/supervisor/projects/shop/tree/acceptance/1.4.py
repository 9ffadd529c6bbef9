import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

try:
    from discount import discounted
except ImportError as error:
    raise SystemExit(f"acceptance 1.4: {error}") from None

assert discounted(333, 10) == 299, f"acceptance 1.4: 333 less 10 % is {discounted(333, 10)}, not 299"
try:
    discounted(100, 101)
except ValueError:
    pass
else:
    raise SystemExit("acceptance 1.4: 101 % is taken")
