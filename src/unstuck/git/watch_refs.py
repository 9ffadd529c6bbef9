"""Put back refs and stash entries that an agent moved, removed or made in the user's repository.

A ref is moved back only on evidence that a worktree of ours moved it; what is gone comes back, because that loses
nothing; what the agent had made is kept first; the rest is left as it is and told. Every change is compare-and-swap,
so that a change which the user makes at the same moment wins.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unstuck.errors import GitFailed
from unstuck.git.command import Git, shown
from unstuck.git.watch_evidence import HEADS, Checkout, Doer, Entry, Evidence, read_log
from unstuck.git.watch_files import Foreign

RENAMED = re.compile(r"Branch: renamed (\S+) to ")
DROPPED = re.compile(r"\(([0-9a-f]{40,64})\)")

STASH = "refs/stash"
TAGS = "refs/tags/"
NOUNS = {HEADS: "Branch", TAGS: "Tag"}

TOLD_AT_MOST = 5
"""Names in one sentence; a fetch may bring hundreds of tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the repository looked like at one moment."""

    refs: Mapping[str, str]
    stash: tuple[Entry, ...]
    """Newest first, as `git stash list` has them."""
    checkouts: tuple[Checkout, ...]


@dataclass(slots=True)
class Comparison:
    """Before and now, side by side with the evidence."""

    git: Git
    common: Path
    before: Seen
    now: Seen
    evidence: Evidence
    foreign: Foreign
    returned: set[tuple[str, str]]
    """What was put back once in this run. Whoever takes it away again means it: it is kept, not put back."""
    revived: list[str] = field(default_factory=list)

    def put_back_refs(self) -> list[str]:
        old, new = ({ref: at for ref, at in seen.refs.items() if ref != STASH} for seen in (self.before, self.now))
        created = sorted(new.keys() - old.keys())
        moved = sorted(ref for ref in old.keys() & new.keys() if old[ref] != new[ref])
        commits = self._commits([*created, *moved])
        makers = {ref: self.evidence.created(ref, commits[ref]) for ref in created}
        # New ones first: a branch a/b of the agent's stands in the way of the user's branch a.
        said = [self._take_away(ref, new[ref]) for ref in created if makers[ref] == "agent"]
        for ref in moved:
            doer = self.evidence.moved(ref, commits[ref], self._was_there)
            said += self._move_back(ref, old[ref], new[ref], doer)
        renamed = {ref for name in created for ref in self._renamed_to(name)}
        for ref in sorted(old.keys() - new.keys()):
            said += self._revive(ref, old[ref], self.evidence.removed(ref, renamed))
        strangers = [ref for ref in created if makers[ref] == "unknown"]
        return said + ([_appeared(strangers)] if strangers else [])

    def put_back_stash(self) -> list[str]:
        before, now = self.before.refs.get(STASH), self.now.refs.get(STASH)
        if before != now and not (self.before.stash or self.now.stash):
            return [
                f"The stash changed from {before} to {now} during the session and was left as it is: it has no reflog."
            ]
        known = {entry.new for entry in self.before.stash}
        there = {entry.new for entry in self.now.stash}
        added = [(entry, self.evidence.stashed(entry.message)) for entry in self.now.stash if entry.new not in known]
        said = [
            f'Stash entry "{shown(entry.message)}" appeared during the session and was left: it may be yours.'
            for entry, doer in added
            if doer == "unknown"
        ]
        said += [self._take_off(entry) for entry, doer in added if doer == "agent"]
        gone = [entry for entry in self.before.stash if entry.new not in there]
        said += [self._keep_gone(entry) for entry in gone if (STASH, entry.new) in self.returned]
        back = [entry for entry in gone if (STASH, entry.new) not in self.returned]
        if back:
            theirs = [entry for entry, doer in added if doer != "agent"]
            stays = [entry for entry in self.before.stash if entry.new in there or entry in back]
            said += self._return_entries([*theirs, *stays], back)
        return said

    # --- refs ---

    def _take_away(self, ref: str, at: str) -> str:
        try:
            kept = self.foreign.keep_commit(ref.removeprefix("refs/"), at)
            self._detach(ref, at)
            self.git("update-ref", "-d", ref, at)
        except GitFailed as error:
            return _failed(ref, error)
        return f"The agent made {_label(ref, lower=True)}; it was taken away, its commit is kept at {kept}."

    def _move_back(self, ref: str, old: str, new: str, doer: Doer) -> list[str]:
        # The user's own commits of this session come first: back to where their checkout is.
        target = self.evidence.tips.get(ref, old)
        if doer == "user" or target == new:
            return []
        if doer == "unknown":
            left = f"{_label(ref)} changed from {old[:7]} to {new[:7]} during the session and was left as it is"
            return [f"{left}: nothing shows that the agent did it. To put it back: git update-ref {ref} {old} {new}"]
        try:
            kept = self.foreign.keep_commit(ref.removeprefix("refs/"), new)
            self._detach(ref, new)
            self.git("update-ref", "-m", "unstuck: put back", ref, target, new)
        except GitFailed as error:
            return [_failed(ref, error)]
        moved = f"The agent moved {_label(ref, lower=True)} from {target[:7]} to {new[:7]}"
        return [f"{moved}; it was put back, the agent's commit is kept at {kept}."]

    def _revive(self, ref: str, old: str, doer: Doer) -> list[str]:
        if doer == "user":
            return []
        if doer == "unknown":
            return [f"{_label(ref)} was renamed during the session and was left as it is."]
        target = self.evidence.tips.get(ref, old)
        try:
            if (ref, target) in self.returned:
                kept = self.foreign.keep_commit(ref.removeprefix("refs/"), target)
                return [f"{_label(ref)} was removed once more; it was left so, its commit is kept at {kept}."]
            self.git("update-ref", "-m", "unstuck: put back", ref, target, "0" * len(target))
        except GitFailed as error:
            return [_failed(ref, error)]
        self.returned.add((ref, target))
        self.revived.append(ref.removeprefix(HEADS))
        return [
            f"{_label(ref)} was removed during the session; it was put back at {target[:7]}. If that was you, remove it again."
        ]

    def _commits(self, refs: Sequence[str]) -> dict[str, str]:
        """Return the commits of refs that are there now; an annotated tag is an object of its own."""
        commits = {ref: self.now.refs[ref] for ref in refs}
        if any(ref.startswith(TAGS) for ref in refs):
            for line in self.git("for-each-ref", "--format=%(refname) %(*objectname)", TAGS).splitlines():
                ref, _, commit = line.partition(" ")
                if ref in commits and commit:
                    commits[ref] = commit
        return commits

    def _was_there(self, commit: str) -> bool:
        """Tell whether a commit was part of a branch before the session, or of what the user did since."""
        tips = {at for ref, at in self.before.refs.items() if ref.startswith(HEADS)} | self.evidence.user_values
        new = self.git.attempt(
            "rev-list",
            "--max-count=1",
            "--ignore-missing",
            "--stdin",
            stdin="\n".join([commit, *(f"^{tip}" for tip in tips)]),
        )
        return new.returncode == 0 and not new.stdout.strip()

    def _renamed_to(self, ref: str) -> list[str]:
        entries = read_log(self.common / "logs" / ref)
        found = RENAMED.match(entries[-1].message) if entries else None
        return [found[1]] if found else []

    def _detach(self, ref: str, at: str) -> None:
        """Leave a worktree of ours that is on this branch at its commit, so that its files stay as they are."""
        for checkout in self.now.checkouts:
            if checkout.ours and checkout.branch == ref and checkout.path.is_dir():
                self.git.at(checkout.path)("update-ref", "--no-deref", "-m", "unstuck: leave the branch", "HEAD", at)

    # --- stash ---

    def _take_off(self, entry: Entry) -> str:
        label = f'stash entry "{shown(entry.message)}"'
        try:
            kept = self.foreign.keep_commit(_stash_name(entry), entry.new)
            self._drop(entry.new)
        except GitFailed as error:
            return f"The agent's {label} is still on your stash: {error.message}"
        return f"The agent left a {label}; it was taken off your stash and is kept at {kept}."

    def _keep_gone(self, entry: Entry) -> str:
        label = f'Stash entry "{shown(entry.message)}" was taken once more'
        try:
            return f"{label}; it was left so and is kept at {self.foreign.keep_commit(_stash_name(entry), entry.new)}."
        except GitFailed as error:
            return f"{label} and could not be kept: {error.message}"

    def _return_entries(self, wanted: Sequence[Entry], back: Sequence[Entry]) -> list[str]:
        """Make the stash hold `wanted`, newest first. What is there is stored again before the old place is dropped."""
        order, current = list(wanted), list(read_stash(self.common))
        while order and current and order[-1].new == current[-1].new:
            del order[-1], current[-1]
        try:
            for entry in reversed(order):
                self.git("stash", "store", "-m", entry.message, entry.new)
            for entry in current:
                self._drop(entry.new)
        except GitFailed as error:
            return [f"Your stash lost entries during the session and they could not be put back: {error.message}"]
        self.returned |= {(STASH, entry.new) for entry in back}
        return [
            f'Stash entry "{shown(entry.message)}" was taken from your stash during the session; it was put back. '
            f"If that was you: git stash drop stash@{{{wanted.index(entry)}}}"
            for entry in back
        ]

    def _drop(self, commit: str) -> None:
        """Drop the oldest entry with this commit; put back what a push of the user's moved into its place meanwhile."""
        stash = read_stash(self.common)
        places = [place for place, entry in enumerate(stash) if entry.new == commit]
        if not places:
            return
        said = DROPPED.search(self.git("stash", "drop", f"stash@{{{places[-1]}}}"))
        if said and said[1] != commit:
            message = next((entry.message for entry in stash if entry.new == said[1]), "put back by unstuck")
            self.git("stash", "store", "-m", message, said[1])


def _label(ref: str, *, lower: bool = False) -> str:
    noun, name = next(
        ((noun, ref.removeprefix(prefix)) for prefix, noun in NOUNS.items() if ref.startswith(prefix)), ("Ref", ref)
    )
    return f"{noun.lower() if lower else noun} {shown(name)}"


def _appeared(refs: Sequence[str]) -> str:
    names = ", ".join(_label(ref, lower=True) for ref in refs[:TOLD_AT_MOST])
    more = f" and {len(refs) - TOLD_AT_MOST} more" if len(refs) > TOLD_AT_MOST else ""
    return f"New during the session and left as they are: {names}{more}."


def _stash_name(entry: Entry) -> str:
    return f"stash/{entry.new[:12]}"


def _failed(ref: str, error: GitFailed) -> str:
    return f"{_label(ref)} was changed by the agent and could not be put back: {error.message}"


def read_stash(common: Path) -> tuple[Entry, ...]:
    """List the stash, newest first."""
    return read_log(common / "logs" / STASH)[::-1]
