"""Tell the user's doing from the agent's: what the reflogs of their checkouts and of our worktrees say.

Pure judging over what was read. The law: without evidence the answer is "unknown", and unknown is left alone.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Doer = Literal["agent", "user", "unknown"]

HEADS = "refs/heads/"

LINE = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*(?:\t(.*))?")
MOVE = re.compile(r"checkout: moving from (\S+) to (\S+)")
STASHED = re.compile(r"(?:WIP on|On) (\(no branch\)|[^ :]+):")
MADE = re.compile(
    r"(?:commit|cherry-pick|revert|am|merge|pull|rebase [^:]*\((?:pick|reword|edit|squash|fixup|continue))\b"
)
"""How a reflog entry begins whose commit was new."""

FORWARD = re.compile(r"(?:merge|pull|cherry-pick)\b.*: fast-forward", re.IGNORECASE)
"""An entry that went to a commit which was there before."""

UNSETTLED = ("checkout:", "rebase", "pull --rebase", "bisect")
"""Entries in a user's reflog between which their HEAD may have been on no branch."""

TAIL = 4096
"""Bytes from the end of a reflog in which its last line is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a reflog."""

    old: str
    new: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A folder with a HEAD of its own: the user's, one of their worktrees, or one of ours."""

    git_dir: Path
    path: Path
    ours: bool
    head: str
    """What HEAD holds: ``ref: refs/heads/main`` or a commit."""
    size: int
    """How long its reflog was."""
    tip: str
    """The commit at which its reflog ends; empty when there is none."""

    @property
    def branch(self) -> str | None:
        return self.head.removeprefix("ref: ") if self.head.startswith("ref: ") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What happened in the user's checkouts since we last looked, and in our worktrees since the run began."""

    tips: Mapping[str, str]
    """Branch that a user's checkout is on → where that checkout's own reflog ends."""
    user_values: frozenset[str]
    user_messages: tuple[str, ...]
    user_branches: frozenset[str]
    user_settled: bool
    """The user's checkouts were on a branch all the time."""
    made: frozenset[str]
    """Commits that were made in our worktrees."""
    our_values: frozenset[str]
    our_branches: frozenset[str]

    def moved(self, ref: str, new: str, known: Callable[[str], bool]) -> Doer:
        """Say who moved a branch or tag to `new`. `known` tells whether a commit was there before the session."""
        if ref in self.tips:
            # Whatever the user does to the branch they are on is in their own HEAD's reflog.
            if self.tips[ref] == new:
                return "user"
            return "agent" if new in self.made or known(new) else "unknown"
        if new in self.user_values:
            return "user"
        return "agent" if new in self.made or (ref in self.our_branches and new in self.our_values) else "unknown"

    def created(self, ref: str, new: str) -> Doer:
        if ref in self.user_branches or new in self.user_values:
            return "user"
        return "agent" if new in self.made or ref in self.our_branches else "unknown"

    def removed(self, ref: str, renamed: Collection[str]) -> Doer:
        """Say who removed a ref. Without any sign it was the agent: putting a ref back loses nothing."""
        if ref in self.tips:
            return "agent"
        name = re.escape(ref.removeprefix(HEADS))
        left = re.compile(rf"checkout: moving from {name} to |merge {name}: |Branch: renamed {re.escape(ref)} to ")
        if any(left.match(message) for message in self.user_messages):
            return "user"
        return "unknown" if ref in renamed else "agent"

    def stashed(self, message: str) -> Doer:
        found = STASHED.match(message)
        if found is None:
            return "unknown"
        if found[1] == "(no branch)":
            return "agent" if self.user_settled else "unknown"
        branch = HEADS + found[1]
        if branch in self.user_branches:
            return "user"
        return "agent" if branch in self.our_branches else "unknown"


def gather(
    *, before: Iterable[Checkout], refs: Mapping[str, str], now: Iterable[Checkout], ours_from: Mapping[Path, int]
) -> Evidence:
    """Read what the reflogs gained: of checkouts that the user had `before` (with `refs`), and of our worktrees."""
    earlier = {checkout.git_dir: checkout for checkout in before if not checkout.ours}
    # A worktree that appeared in between may be the agent's own: it speaks for nobody.
    users = [checkout for checkout in now if checkout.git_dir in earlier]
    fresh = {user.git_dir: read_log(_log(user.git_dir), earlier[user.git_dir].size) for user in users}
    user_entries = [entry for entries in fresh.values() for entry in entries]
    ours = [checkout for checkout in now if checkout.ours]
    our_entries = [entry for our in ours for entry in read_log(_log(our.git_dir), ours_from.get(our.git_dir, 0))]
    heads = [*users, *(earlier[user.git_dir] for user in users)]
    return Evidence(
        tips={user.branch: user.tip for user in users if user.branch and _is_logged(earlier[user.git_dir], refs)},
        user_values=frozenset(entry.new for entry in user_entries),
        user_messages=tuple(entry.message for entry in user_entries),
        user_branches=_visited(user_entries) | {head.branch for head in heads if head.branch},
        user_settled=all(head.branch for head in heads)
        and not any(entry.message.startswith(UNSETTLED) for entry in user_entries),
        made=frozenset(entry.new for entry in our_entries if _is_new(entry.message)),
        our_values=frozenset(entry.new for entry in our_entries),
        our_branches=_visited(our_entries) | {our.branch for our in ours if our.branch},
    )


def checkouts(common: Path, worktrees: Path) -> tuple[Checkout, ...]:
    """List every checkout of the repository; those under `worktrees` are ours."""
    found = [_checkout(common, common.parent, ours=False)]
    registered = common / "worktrees"
    for git_dir in sorted(registered.iterdir()) if registered.is_dir() else ():
        pointer = _text(git_dir / "gitdir").strip()
        if pointer:
            path = Path(pointer).parent
            found.append(_checkout(git_dir, path, ours=path.is_relative_to(worktrees)))
    return tuple(found)


def read_log(path: Path, start: int = 0) -> tuple[Entry, ...]:
    """Read a reflog from a byte on, oldest first; all of it when it was rewritten shorter."""
    try:
        with path.open("rb") as log:
            log.seek(start if path.stat().st_size >= start else 0)
            text = log.read().decode("utf-8", "surrogateescape")
    except OSError:
        return ()
    lines = (LINE.fullmatch(line) for line in text.split("\n"))
    return tuple(Entry(old=line[1], new=line[2], message=line[3] or "") for line in lines if line)


def _checkout(git_dir: Path, path: Path, *, ours: bool) -> Checkout:
    log = _log(git_dir)
    try:
        size = log.stat().st_size
    except OSError:
        size = 0
    last = read_log(log, max(0, size - TAIL))
    head = _text(git_dir / "HEAD").strip()
    return Checkout(git_dir=git_dir, path=path, ours=ours, head=head, size=size, tip=last[-1].new if last else "")


def _is_logged(checkout: Checkout, refs: Mapping[str, str]) -> bool:
    """Tell whether the checkout's reflog can be trusted: it ended where its HEAD was."""
    at = refs.get(checkout.branch, "") if checkout.branch else checkout.head
    return bool(at) and at == checkout.tip


def _log(git_dir: Path) -> Path:
    return git_dir / "logs" / "HEAD"


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _visited(entries: Iterable[Entry]) -> frozenset[str]:
    moves = (MOVE.match(entry.message) for entry in entries)
    return frozenset(HEADS + name for move in moves if move for name in move.groups())


def _is_new(message: str) -> bool:
    return bool(MADE.match(message)) and not FORWARD.fullmatch(message)
