"""Watch what worktrees share with the user's repository, and put back what an agent changed there.

The law: the user works in the same repository at the same time, and their doing is never undone.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from unstuck.git.command import Git, shown
from unstuck.git.watch_evidence import HEADS, Checkout, checkouts, gather
from unstuck.git.watch_files import Foreign, Shared, look_at_files, put_back_files, settings
from unstuck.git.watch_refs import STASH, Comparison, Seen, read_stash

WATCHED = ("refs/heads", "refs/tags", "refs/notes", "refs/replace", STASH)
OURS = "refs/heads/unstuck/"


class Watches:
    """All watches of one run. They share one memory, so that sessions side by side never undo each other's restoring."""

    def __init__(self, git: Git, run: str) -> None:
        """Take a git that works in the root of the user's checkout."""
        self._git = git
        self._run = run
        self._common = Path(git("rev-parse", "--path-format=absolute", "--git-common-dir"))
        self._worktrees = (git.cwd / ".unstuck" / "worktrees").resolve()
        self._lock = Lock()
        self._open = 0
        self._files: Mapping[str, Shared] = {}
        self._seen: Seen | None = None
        self._ours_from: dict[Path, int] = {}
        self._returned: set[tuple[str, str]] = set()

    def begin(self) -> "GitWatch":
        """Remember how things are, unless another watch that is still open did."""
        with self._lock:
            if self._open == 0:
                self._files = look_at_files(self._common)
                self._seen = self._look()
                if not self._ours_from:
                    self._ours_from = {checkout.git_dir: checkout.size for checkout in self._seen.checkouts}
            self._open += 1
        return GitWatch(self)

    def end(self) -> tuple[str, ...]:
        """Put back what was changed since the last look; for GitWatch, once each."""
        with self._lock:
            self._open -= 1
            return tuple(self._put_back())

    def _put_back(self) -> list[str]:
        before = self._seen
        assert before is not None
        foreign = Foreign(self._git, self._run)
        # Files first: with a config that the agent broke, no git command would work.
        said = put_back_files(self._git, self._common, self._files, foreign)
        now = self._look()
        if (now.refs, now.stash) != (before.refs, before.stash):
            evidence = gather(before=before.checkouts, refs=before.refs, now=now.checkouts, ours_from=self._ours_from)
            comparison = Comparison(self._git, self._common, before, now, evidence, foreign, self._returned)
            said += [*comparison.put_back_refs(), *comparison.put_back_stash()]
            self._put_back_tracking(comparison.revived)
            now = self._look()
        said += _heads_moved(before.checkouts, now.checkouts)
        self._seen = now
        if said:
            self._files = look_at_files(self._common)
        return said

    def _put_back_tracking(self, branches: list[str]) -> None:
        """Give branches that were put back the settings that git removed with them."""
        if not branches:
            return
        left = settings(self._git, look_at_files(self._common).get("config"))
        for key, values in settings(self._git, self._files.get("config")).items():
            if key not in left and any(key.startswith(f"branch.{branch}.") for branch in branches):
                for value in values:
                    self._git.attempt("config", "--add", key, value)

    def _look(self) -> Seen:
        lines = self._git("for-each-ref", "--format=%(objectname) %(symref) %(refname)", *WATCHED).splitlines()
        parts = (line.split(" ") for line in lines)
        # A ref that only points at another one changes with it.
        refs = {name: value for value, points_at, name in parts if not points_at and not name.startswith(OURS)}
        return Seen(
            refs=refs,
            stash=read_stash(self._common),
            checkouts=checkouts(self._common, self._worktrees),
        )


class GitWatch:
    """One session's watch."""

    def __init__(self, watches: Watches) -> None:
        self._watches: Watches | None = watches

    def restore(self) -> tuple[str, ...]:
        """Put back what was changed since, keeping a copy; return what was done as sentences. A second call does nothing."""
        watches, self._watches = self._watches, None
        return watches.end() if watches else ()


def _heads_moved(before: Sequence[Checkout], now: Sequence[Checkout]) -> list[str]:
    heads = {checkout.git_dir: checkout.head for checkout in before if not checkout.ours}
    return [
        f"The checkout {shown(str(checkout.path))} went from {_place(heads[checkout.git_dir])} to {_place(checkout.head)} "
        "during the session; it was left as it is."
        for checkout in now
        if heads.get(checkout.git_dir, checkout.head) != checkout.head
    ]


def _place(head: str) -> str:
    return head.removeprefix("ref: ").removeprefix(HEADS) if head.startswith("ref: ") else head[:7]
