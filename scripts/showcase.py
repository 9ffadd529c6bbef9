"""Make a scratch repository with a run that has a bit of everything: for the pictures in docs/, and to play with.

python scripts/showcase.py DIR
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Task = tuple[str, str, str, str, str]
TASKS: Sequence[Task] = (
    ("1.1", "Read the shop's settings", "settings.py", "", ""),
    ("1.2 [P]", "Parse amounts of money without losing a cent", "money.py", "1.1", ""),
    ("1.3 [P]", "Keep orders in SQLite", "store.py", "1.1", ""),
    ("1.4 [P]", "Say errors in plain words", "messages.py", "1.1", ""),
    ("2.1 [RECOVERY]", "Accept an order over HTTP", "accept.py", "1.2, 1.3", ""),
    ("2.2 [P]", "Cancel an order within an hour", "cancel.py", "2.1", ""),
    ("2.3 [P]", "List the orders of a day", "listing.py", "2.1", ""),
    ("2.4 [P]", "Import the CSV files of the old shop", "legacy.py", "1.2, 1.3", "grep -q 'cp1252\\|utf-8' legacy.py"),
    ("2.5 [P]", "Send a receipt by mail", "receipt.py", "2.1, 1.4", ""),
    ("3.1 [P]", "Move last year's orders over", "migrate.py", "2.4", ""),
    ("3.2 [P]", "Compare old and new totals", "compare.py", "2.4, 2.3", ""),
    ("3.3 [P]", "Limit how often a customer may order", "limits.py", "2.1", ""),
    ("3.4", "Write the page for operators", "operators.md", "2.2, 2.3, 2.5", ""),
)
CODE = '''"""{title}."""

from dataclasses import dataclass


@dataclass(frozen=True)
class {name}:
    """{title}."""

    customer: str
    cents: int = 0

    def total(self, count: int) -> int:
        return self.cents * count
'''


def write(file: str, title: str, *, broken: bool = False) -> list[dict[str, Any]]:
    """Return the steps that write a file; a broken one has a name that nobody defined."""
    text = CODE.format(title=title, name=file.partition(".")[0].title())
    return [
        {
            "write": file,
            "text": text.replace("self.cents *", "self.price *") + ("\nraise NameError('total')\n" if broken else ""),
        }
    ]


def parts() -> dict[str, Any]:
    """Return what the agent does: it lies, crashes, hangs and asks, as real ones do."""
    plain = {
        head.split()[0]: [[*write(file, title), {"sleep": 1 + number % 3 * 0.7}, {"print": f"APPROACH: one small class in {file}"}, {"cost": round(0.11 + number * 0.07 % 0.3, 2)}]]
        for number, (head, title, file, _, _) in enumerate(TASKS)
    }  # fmt: skip
    plain["1.2"] = [
        [*write("money.py", "Amounts", broken=True), {"sleep": 1.5}, {"print": "All checks pass.\nAPPROACH: floats, rounded at the end\nTASK_COMPLETE"}, {"cost": 0.42}],
        [*write("money.py", "Amounts of money"), {"sleep": 2}, {"print": "APPROACH: whole cents everywhere\nTASK_COMPLETE"}, {"cost": 0.31}],
    ]  # fmt: skip
    plain["1.4"] = [
        [*write("messages.py", "Errors"), {"sleep": 0.5}, {"print": "Waiting for the dev server…"}, {"hang": True}]
    ]
    plain["2.1"] = [
        [*write("accept.py", "Orders", broken=True), {"sleep": 1}, {"print": "APPROACH: a handler with everything in it"}, {"cost": 0.88}],
        [*write("accept.py", "Accept an order"), {"sleep": 1}, {"print": "APPROACH: read, check, store\nTASK_COMPLETE"}, {"cost": 0.47}],
    ]  # fmt: skip
    plain["2.1.1"] = [
        [*write("accept.py", "Accept an order over HTTP"), {"sleep": 1}, {"print": "TASK_COMPLETE"}, {"cost": 0.35}]
    ]
    plain["2.3"] = [
        [{"sleep": 1}, {"error": "Traceback (most recent call last):\nMemoryError"}, {"exit": 1}],
        plain["2.3"][0],
    ]
    plain["2.4"] = [[
        {"write": "legacy.py", "text": '"""Import the old files."""\n\nENCODING = None  # the samples disagree\n'},
        {"sleep": 1.5},
        {"print": "The old files are neither valid UTF-8 nor consistent. I stopped before guessing.\nWhich encoding do the CSV files of 2019 have, cp1252 or UTF-8?"},
        {"cost": 0.66},
    ]]  # fmt: skip
    plain["3.3"] = [
        [
            *write("limits.py", "Limits", broken=True),
            {"sleep": 0.6},
            {"print": "APPROACH: count in memory\nTASK_COMPLETE"},
            {"cost": 0.2},
        ]
    ]
    return {"task": {name: [{"steps": steps} for steps in attempts] for name, attempts in plain.items()}}


def make(root: Path) -> None:
    """Make the repository and run the plan in it."""
    root.mkdir(parents=True)
    blocks = []
    for head, title, file, needs, check in TASKS:
        verify = check or (f"test -s {file}" if file.endswith(".md") else f"python3 {file}")
        lines = [f"- [ ] {head} {title}", f"  - **Do**: {title}, in `{file}`", f"  - **Files**: `{file}`"]
        lines += [f"  - **Depends**: {needs}"] if needs else []
        blocks.append("\n".join([*lines, f"  - **Verify**: `{verify}`", ""]))
    (root / "tasks.md").write_text("# An order service\n\n" + "\n".join(blocks), encoding="utf-8")
    (root / "agent.json").write_text(json.dumps(parts()), encoding="utf-8")
    (root / "unstuck.toml").write_text(
        'agent = ["nova", "terra"]\n\n[agents.nova]\nscript = "agent.json"\n\n[agents.terra]\nscript = "agent.json"\n\n'
        "[limits]\nfirst_output = 20\nsilence = 4\nwall_clock = 30\n",
        encoding="utf-8",
    )
    for arguments in (("init", "-q", "-b", "main"), ("config", "user.name", "Ada"), ("config", "user.email", "ada@example.org"), ("add", "-A"), ("commit", "-q", "-m", "An empty shop")):  # fmt: skip
        subprocess.run(["git", *arguments], cwd=root, check=True)
    subprocess.run(
        [sys.executable, "-m", "unstuck", "run", "tasks.md", "--max-attempts", "3", "--budget-usd", "12"],
        cwd=root,
        check=False,
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
