"""Write what `docs/architecture.md` says in figures: the lines of its reading list, and the picture of the doors."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

if __name__ == "__main__":
    from tests.house import up_to_date

    page = ROOT / "docs" / "architecture.md"
    page.write_text(up_to_date(page.read_text(encoding="utf-8")), encoding="utf-8")
