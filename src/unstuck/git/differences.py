"""Edge: How two trees differ: which files, and which of their lines."""

import re
from collections.abc import Iterable, Sequence

from unstuck.diagnosis import Touch
from unstuck.git.command import Git
from unstuck.journal import Changes

MOST_FILES = 300
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_BLAMED = re.compile(r"([0-9a-f]{40,64}) \d+ \d+")
PLAIN = ("-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def listed(git: Git, base: str, tree: str) -> Changes:
    """Sort the files in which the two differ by what happened to them."""
    return sorted_out(git.names("diff-tree", *PLAIN, "-z", "--raw", "--numstat", base, tree))


def sorted_out(entries: Iterable[str]) -> Changes:
    """Read what git prints with `-z --raw --numstat`."""
    told = iter(entries)
    found: dict[str, list[str]] = {"A": [], "D": [], "M": []}
    counts = []
    for entry in told:  # a line that begins with a colon is followed by its path; the numbers come last, with theirs
        if entry.startswith(":"):
            found.get(entry[-1], found["M"]).append(next(told))
        else:
            counts.append(entry.split("\t")[:2])
    return Changes(
        created=tuple(found["A"][:MOST_FILES]),
        modified=tuple(found["M"][:MOST_FILES]),
        deleted=tuple(found["D"][:MOST_FILES]),
        plus=sum(int(plus) for plus, _ in counts if plus.isdigit()),
        minus=sum(int(minus) for _, minus in counts if minus.isdigit()),
    )


def touches(git: Git, base: str, tree: str, files: Sequence[str]) -> tuple[Touch, ...]:
    """Say for each file what happened, with the first and the last line of `base` that it concerns."""
    found: list[Touch] = []
    for file in files:
        patch = git.attempt("diff-tree", *PLAIN, "-p", "-U0", base, tree, "--", f":(top,literal){file}").stdout
        if not patch:
            continue
        hunks = [tuple(int(number or 1) for number in hunk.groups()) for hunk in _HUNK.finditer(patch)]
        head = patch.split("\n@@", 1)[0]
        if "\nnew file mode" in head:
            found.append(Touch(task="", file=file, how="created"))
        elif "\ndeleted file mode" in head:
            found.append(Touch(task="", file=file, how="deleted"))
        elif hunks:
            first = min(start for start, *_ in hunks)
            last = max(start + max(count - 1, 0) for start, count, *_ in hunks)
            found.append(Touch(task="", file=file, how="modified", first=max(first, 1), last=max(last, 1)))
        else:
            found.append(Touch(task="", file=file, how="modified", first=1, last=1))
    return tuple(found)


def authors(git: Git, path: str, commit: str, since: str) -> tuple[tuple[str, str], ...]:
    """Return the lines of a file that came in after `since`, each with the commit that added it."""
    told = git.attempt("blame", "--line-porcelain", "--no-textconv", f"{since}..{commit}", "--", path).stdout
    found, author, old = [], "", False
    for line in told.split("\n"):
        if line.startswith("\t"):
            found += [] if old else [(author, line[1:])]
            old = False
        elif head := _BLAMED.match(line):
            author = head[1]
        elif line == "boundary":
            old = True
    return tuple(found)
