"""Edge: The git side of a run whose sessions are elsewhere: slots are trees without folders, and the remote knows every tip."""

from dataclasses import dataclass, field
from pathlib import Path

from unstuck.errors import OwnershipLost
from unstuck.fleet.remote import HERE, NEVER, Moved, Remote, tip_ref, work_ref, worked
from unstuck.git import GitWorkspace, make_commit
from unstuck.journal import RunState
from unstuck.ports import Conflict, Landing, Snapshot, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf(GitWorkspace):
    """The workspace of a supervisor with a fleet. Slots for verifying, from `first` on, are real: it can verify, too."""

    remote: Remote
    first: int
    held: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    """What each slot holds: a commit, and a tree on top of it."""
    published: dict[str, str] = field(default_factory=dict)
    """The tip that the remote was last told."""
    tips: set[str] = field(default_factory=set)
    """Commits that are on the branch as the remote has it."""
    merged: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Of which work, a tree on its base, a tree on the tip was made."""

    def take_up(self) -> None:
        """Bring everything of the run that another machine may have left in the remote, and its branch."""
        self.remote.bring(f"refs/unstuck/{self.run}/*")
        theirs = self._resolve(f"{HERE}{self.run}/@tip")
        ours = self._resolve(self.branch)
        if theirs is None:
            return
        self.published[self.run] = theirs
        self.tips.add(theirs)
        if ours is None or not self._git.succeeds("merge-base", "--is-ancestor", theirs, ours):
            # The remote hears of a landing before the journal does: what only we have was never recorded.
            if ours is not None and not self._git.succeeds("merge-base", "--is-ancestor", ours, theirs):
                self.keep("never-published", ours)
            self._git("update-ref", self.branch, theirs, ours or "")

    def restore(self, state: RunState) -> None:
        """Put the work of sessions that ended before this supervisor began on the shelf again."""
        for task in (state.tasks[name] for name in state.open):
            if not task.attempts:
                continue
            attempt = task.current
            ref = work_ref(self.run, task.task.id, attempt.number).replace("refs/unstuck/", HERE, 1)
            told = self._git.attempt("log", "-1", "--format=%H %T %s", ref, "--").stdout.split(" ", 2)
            if len(told) == len(("commit", "tree", "text")) and told[2].startswith(worked(attempt.sessions)):
                self.held[attempt.slot] = (attempt.base, told[1])

    def open_branch(self, base: str) -> None:
        GitWorkspace.open_branch(self, base)
        self._publish()

    def land(self, landing: Landing) -> str | None:
        """Land, and tell the remote before anybody records it: who takes the run over elsewhere needs the commit."""
        commit = GitWorkspace.land(self, landing)
        if commit is not None:
            self._publish()
        return commit

    def bring_in(self, commit: str, *, message: str, at: float) -> str | Conflict:
        tip = GitWorkspace.bring_in(self, commit, message=message, at=at)
        self._publish()
        return tip

    def move_branch(self, commit: str, *, expected: str) -> None:
        GitWorkspace.move_branch(self, commit, expected=expected)
        self.tips.clear()  # it may have moved back
        self._publish()

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        merged = GitWorkspace.merge(self, landing, tip)
        if isinstance(merged, str):
            self.merged[tip, merged] = (landing.base, landing.tree)
        return merged

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        if slot >= self.first:
            return GitWorkspace.prepare(self, slot, base, tree, clean=clean)
        self.held[slot] = (base, tree)
        return self.path(slot)

    def present(self, slot: int) -> bool:
        return slot in self.held if slot < self.first else GitWorkspace.present(self, slot)

    def tree(self, slot: int, base: str) -> Tree:
        if slot >= self.first or slot not in self.held:
            return GitWorkspace.tree(self, slot, base)
        begun, tree = self.held[slot]
        return Tree(id=tree or self.tree_of(begun))

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        if slot >= self.first or slot not in self.held:
            return None if slot < self.first else GitWorkspace.snapshot(self, slot, name)
        base, tree = self.held[slot]
        if tree is None or tree == self.tree_of(base):
            return None
        text = f"snapshot {name}\n"
        commit = make_commit(self._git, self.identity, tree=tree, parents=(base,), message=text, at=0)
        return self.keep(name, commit)

    def _publish(self) -> None:
        tip, before = self.tip(), self.published.get(self.run, NEVER)
        if before == tip:
            return
        try:
            self.remote.put(tip_ref(self.run), tip, before)
        except Moved as error:
            raise OwnershipLost(
                f"Another supervisor moved the branch of run {self.run} in the remote; this one stops.",
                hint="See `unstuck status`.",
            ) from error
        self.published[self.run] = tip
        self.tips.add(tip)
