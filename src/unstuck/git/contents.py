"""Edge: Read what two trees hold and where they differ: files, texts and lines, in few git commands, however many files there are."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unstuck.git.git_command import Git
from unstuck.model.changes import Change, Changes, Touch

MAX_FILE_BYTES = 1_000_000
"""Bytes of a file that is still read; a larger one counts as binary."""
LARGEST_ALL = 32_000_000
"""Bytes of all files that are read at once; what comes after counts as binary."""
FACTS = 3
"""What git says of an object: its name, kind and size."""
NO_INDEX = "/proc/no-index"
"""A file that nobody can make."""
GITLINK = "160000"
NO_MODE = "000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDifference:
    """One path in which two trees, or the index and a tree, differ: modes as git writes them, and object ids."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.old_mode, self.old), (self.new_mode, self.new)


def raw_difference(git: Git, base: str, tree: str) -> tuple[str, ...]:
    """Let git say where two trees differ: `rows` and `listed` read it. It would read an index, and needs none."""
    return git.using(GIT_INDEX_FILE=NO_INDEX).names(
        "diff-tree", *PLAIN, "-z", "--raw", "--numstat", "--no-abbrev", base, tree
    )


def parse_rows(told: Sequence[str]) -> Iterator[TreeDifference]:
    """Say which paths differ, and how."""
    for facts, path in zip(told[::2], told[1::2], strict=False):
        if not facts.startswith(":"):  # the numbers come last
            return
        old_mode, new_mode, old, new, _ = facts.removeprefix(":").split(" ")
        yield TreeDifference(path=path, old_mode=old_mode, new_mode=new_mode, old=old, new=new)


def changes(git: Git, found: Sequence[TreeDifference]) -> tuple[Change, ...]:
    """Return every path in which two trees differ, with its texts; a rename is one path gone and another one new."""
    blobs = _read(git, [blob for row in found for mode, blob in row.sides if mode not in (NO_MODE, GITLINK)])
    return tuple(
        Change(
            path=row.path,
            old=_text(row.old_mode, row.old, blobs),
            new=_text(row.new_mode, row.new, blobs),
            old_mode=int(row.old_mode, 8) or None,
            new_mode=int(row.new_mode, 8) or None,
            binary=any(mode != NO_MODE and blobs.get(blob) is None for mode, blob in row.sides),
        )
        for row in found
    )


def tree_files(git: Git, tree: str) -> tuple[str, ...]:
    """List the paths of all files in a tree."""
    return git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)


def _text(mode: str, blob: str, blobs: Mapping[str, str | None]) -> str | None:
    return (blobs.get(blob) or "") if mode != NO_MODE else None


def _read(git: Git, names: Sequence[str]) -> dict[str, str | None]:
    """Return the text of each object that is small enough and is text; None for the others."""
    read: dict[str, str | None] = dict.fromkeys(names)
    if not read:
        return read
    room = LARGEST_ALL
    with git.streaming("cat-file", "--batch", stdin="".join(f"{name}\n" for name in read)) as out:
        for name in read:
            facts = out.readline().decode().split()
            if len(facts) != FACTS:  # it is missing
                continue
            kind, left = facts[1], int(facts[2])
            if kind == "blob" and left <= min(MAX_FILE_BYTES, room):
                room -= left
                content = out.read(left)
                read[name] = None if b"\0" in content else content.decode("utf-8", "replace")
                left = 0
            while left and (passed_over := out.read(min(left, MAX_FILE_BYTES))):
                left -= len(passed_over)
            out.read(1)
    return read


MOST_FILES = 300
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_BLAMED = re.compile(r"([0-9a-f]{40,64}) (\d+) \d+")
AuthoredLine = tuple[str, str]
"""Which commit added it, empty for one that was there before, and its text."""
PLAIN = ("-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def summarize_changes(told: Sequence[str]) -> Changes:
    """Sort the files that differ by what happened to them."""
    entries = iter(told)
    found: dict[str, list[str]] = {"A": [], "D": [], "M": []}
    counts = []
    for entry in entries:  # a line that begins with a colon is followed by its path; the numbers come last, with theirs
        if entry.startswith(":"):
            found.get(entry[-1], found["M"]).append(next(entries))
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
        head = patch.split("\n@@", 1)[0]
        if "\nnew file mode" in head:
            found.append(Touch(task="", file=file, how="created"))
        elif "\ndeleted file mode" in head:
            found.append(Touch(task="", file=file, how="deleted"))
        else:
            hunks = [tuple(int(number or 1) for number in hunk.groups()) for hunk in _HUNK.finditer(patch)]
            first = min((start for start, *_ in hunks), default=1)
            last = max((start + max(count - 1, 0) for start, count, *_ in hunks), default=1)
            found.append(Touch(task="", file=file, how="modified", first=max(first, 1), last=max(last, 1)))
    return tuple(found)


def line_authors(
    git: Git, path: str, commit: str, since: str, known: Sequence[AuthoredLine] = ()
) -> tuple[AuthoredLine, ...] | None:
    """Return the lines of a file, each with the commit after `since` that added it; older ones are as `known` of `since`.

    None if git cannot say, or if a line is older by another way than through what is known.
    """
    plain = ("--porcelain", "--no-textconv", "--no-ignore-revs-file")  # a file that is not there would be an error
    done = git.attempt("blame", *plain, f"{since}..{commit}", "--", path)
    lines: list[tuple[str, int, str]] = []
    author, number, old, named = "", 0, set[str](), dict[str, str]()
    for line in done.stdout.split("\n"):
        if line.startswith("\t"):
            lines.append((author, number, line[1:]))
        elif head := _BLAMED.match(line):
            author, number = head[1], int(head[2])
        elif line == "boundary":
            old.add(author)
        elif line.startswith("filename "):
            named[author] = line.removeprefix("filename ")
    if done.returncode != 0 or (known and any(one != since or named[one] != path for one in old)):
        return None
    return tuple(
        (author, text) if author not in old else known[number - 1] if known else ("", text)
        for author, number, text in lines
    )
