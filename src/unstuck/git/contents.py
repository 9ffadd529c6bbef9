"""Read the files of git trees and the differences between two trees, in few git commands."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unstuck.git.git_command import Git
from unstuck.model.changes import Change, Changes, Touch

MAX_FILE_BYTES = 1_000_000
"""A larger file counts as binary."""
MAX_TOTAL_BYTES = 32_000_000
"""Files after this total size count as binary."""
OBJECT_FIELDS = 3
"""Git prints name, kind and size of an object."""
NO_INDEX = "/proc/no-index"
"""A path that cannot be created."""
GITLINK = "160000"
NO_MODE = "000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDifference:
    """One path that differs between two trees: modes as git prints them, and object ids."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.old_mode, self.old), (self.new_mode, self.new)


def raw_difference(git: Git, base: str, tree: str) -> tuple[str, ...]:
    """Return git's raw output about where two trees differ, without reading an index."""
    return git.using(GIT_INDEX_FILE=NO_INDEX).names(
        "diff-tree", *PLAIN, "-z", "--raw", "--numstat", "--no-abbrev", base, tree
    )


def parse_differences(output: Sequence[str]) -> Iterator[TreeDifference]:
    """Yield each path that differs, from the output of `raw_difference`."""
    for facts, path in zip(output[::2], output[1::2], strict=False):
        if not facts.startswith(":"):  # the counts of lines come last
            return
        old_mode, new_mode, old, new, _ = facts.removeprefix(":").split(" ")
        yield TreeDifference(path=path, old_mode=old_mode, new_mode=new_mode, old=old, new=new)


def changes(git: Git, differences: Sequence[TreeDifference]) -> tuple[Change, ...]:
    """Return the changes with their texts. A rename is one deleted and one new path."""
    blobs = _read(git, [blob for row in differences for mode, blob in row.sides if mode not in (NO_MODE, GITLINK)])
    return tuple(
        Change(
            path=row.path,
            old=_text(row.old_mode, row.old, blobs),
            new=_text(row.new_mode, row.new, blobs),
            old_mode=int(row.old_mode, 8) or None,
            new_mode=int(row.new_mode, 8) or None,
            binary=any(mode != NO_MODE and blobs.get(blob) is None for mode, blob in row.sides),
        )
        for row in differences
    )


def tree_files(git: Git, tree: str) -> tuple[str, ...]:
    """List the paths of all files in a tree."""
    return git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)


def _text(mode: str, blob: str, blobs: Mapping[str, str | None]) -> str | None:
    return (blobs.get(blob) or "") if mode != NO_MODE else None


def _read(git: Git, names: Sequence[str]) -> dict[str, str | None]:
    """Return the text of each object, or None for one that is too large or binary."""
    texts: dict[str, str | None] = dict.fromkeys(names)
    if not texts:
        return texts
    room = MAX_TOTAL_BYTES
    with git.streaming("cat-file", "--batch", stdin="".join(f"{name}\n" for name in texts)) as out:
        for name in texts:
            facts = out.readline().decode().split()
            if len(facts) != OBJECT_FIELDS:  # it is missing
                continue
            kind, left = facts[1], int(facts[2])
            if kind == "blob" and left <= min(MAX_FILE_BYTES, room):
                room -= left
                content = out.read(left)
                texts[name] = None if b"\0" in content else content.decode("utf-8", "replace")
                left = 0
            while left and (skipped := out.read(min(left, MAX_FILE_BYTES))):
                left -= len(skipped)
            out.read(1)
    return texts


MAX_LISTED_FILES = 300
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_BLAMED = re.compile(r"([0-9a-f]{40,64}) (\d+) \d+")
AuthoredLine = tuple[str, str]
"""The commit that added a line, empty for an old line, and its text."""
PLAIN = ("-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def summarize_changes(output: Sequence[str]) -> Changes:
    """Return the created, modified and deleted files, from the output of `raw_difference`."""
    entries = iter(output)
    paths: dict[str, list[str]] = {"A": [], "D": [], "M": []}
    counts = []
    for entry in entries:  # a path follows each entry with a colon, and the counts of lines come last
        if entry.startswith(":"):
            paths.get(entry[-1], paths["M"]).append(next(entries))
        else:
            counts.append(entry.split("\t")[:2])
    return Changes(
        created=tuple(paths["A"][:MAX_LISTED_FILES]),
        modified=tuple(paths["M"][:MAX_LISTED_FILES]),
        deleted=tuple(paths["D"][:MAX_LISTED_FILES]),
        plus=sum(int(plus) for plus, _ in counts if plus.isdigit()),
        minus=sum(int(minus) for _, minus in counts if minus.isdigit()),
    )


def touches(git: Git, base: str, tree: str, files: Sequence[str]) -> tuple[Touch, ...]:
    """Return how each file changed, with the first and last line of `base` that changed."""
    result: list[Touch] = []
    for file in files:
        patch = git.attempt("diff-tree", *PLAIN, "-p", "-U0", base, tree, "--", f":(top,literal){file}").stdout
        if not patch:
            continue
        head = patch.split("\n@@", 1)[0]
        if "\nnew file mode" in head:
            result.append(Touch(task="", file=file, how="created"))
        elif "\ndeleted file mode" in head:
            result.append(Touch(task="", file=file, how="deleted"))
        else:
            hunks = [tuple(int(number or 1) for number in hunk.groups()) for hunk in _HUNK.finditer(patch)]
            first = min((start for start, *_ in hunks), default=1)
            last = max((start + max(count - 1, 0) for start, count, *_ in hunks), default=1)
            result.append(Touch(task="", file=file, how="modified", first=max(first, 1), last=max(last, 1)))
    return tuple(result)


def line_authors(
    git: Git, path: str, commit: str, since: str, old_lines: Sequence[AuthoredLine] = ()
) -> tuple[AuthoredLine, ...] | None:
    """Return the lines of a file, each with the commit after `since` that added it.

    `old_lines` are the lines at `since`, with their commits. Return None if git fails, or if an old line comes from
    another file or commit than these.
    """
    plain = ("--porcelain", "--no-textconv", "--no-ignore-revs-file")  # a missing file would be an error
    done = git.attempt("blame", *plain, f"{since}..{commit}", "--", path)
    lines: list[tuple[str, int, str]] = []
    author, number, old_commits, file_names = "", 0, set[str](), dict[str, str]()
    for line in done.stdout.split("\n"):
        if line.startswith("\t"):
            lines.append((author, number, line[1:]))
        elif head := _BLAMED.match(line):
            author, number = head[1], int(head[2])
        elif line == "boundary":
            old_commits.add(author)
        elif line.startswith("filename "):
            file_names[author] = line.removeprefix("filename ")
    if done.returncode != 0:
        return None
    if old_lines and any(commit != since or file_names[commit] != path for commit in old_commits):
        return None
    return tuple(
        (author, text) if author not in old_commits else old_lines[number - 1] if old_lines else ("", text)
        for author, number, text in lines
    )
