"""Edge: The remote that a fleet shares, and the workspace of a supervisor that tells it every tip.

Law: commits go there and come from there by refs that only compare-and-swap moves.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from urllib.parse import quote

from unstuck.git.git_command import Git
from unstuck.git.repository import Identity
from unstuck.git.workspace import GitWorkspace, make_commit
from unstuck.journal.run_state import RunState
from unstuck.model.errors import GitFailed, OwnershipLost
from unstuck.model.landing import Conflict, Landing, Snapshot, Tree
from unstuck.model.text import one_line

HERE = "refs/unstuck/fleet/"
"""Where what came from the remote is held in a repository of ours."""
TRIES, PAUSE_SECONDS = 6, 0.5
"""A remote that is away for a moment is waited for; each pause is twice the last one."""
SETTINGS = ("transfer.fsckObjects=false", "protocol.version=2")
"""The remote looks at what it takes (`receive.fsckObjects`). To look again at every fetch would leave a pack for each,
and git looks through all packs for everything."""
NEVER = ""
"""What a ref holds that does not exist."""


class Moved(Exception):
    """The ref is not what it should be: somebody else moved it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A remote, as seen from one repository."""

    git: Git
    objects: Path
    """Where the repository keeps its objects."""
    identity: Identity
    name: str
    """A URL, a path, or the name of a configured remote."""
    tries: int = TRIES
    there: set[str] = field(default_factory=set)
    """Commits that the remote is known to have."""
    seen: dict[str, str] = field(default_factory=dict)
    """What its refs were last seen to hold."""

    def commit(self, tree: str, base: str, text: str, *beside: str) -> str:
        """Write a commit of a tree on its base, and on what else must come with it; the same text gives the same commit."""
        return make_commit(self.git, self.identity, tree=tree, parents=(base, *beside), message=text, at=0)

    def put(self, ref: str, commit: str, expected: str, *spent: tuple[str, str]) -> None:
        """Move a ref of the remote to a commit of ours; raise Moved if it is not what was expected.

        Refs that are spent go with it, as every push reads all refs that are there: with it or not at all, so that who
        was overtaken takes nothing from whoever goes on. They stay where they hold something else by now.
        """
        swaps = ((ref, expected, f"{commit}:{ref}"), *((old, held, f":{old}") for old, held in spent))
        leases = (f"--force-with-lease={name}:{before}" for name, before, _ in swaps)
        for done in self._tried(
            "push", "--quiet", "--no-verify", "--porcelain", *self._receiver, *(["--atomic"] if spent else []), *leases,
            self.name, *(how for _, _, how in swaps), problem=f"takes no {ref}",
        ):  # fmt: skip
            told = next((line for line in done.stdout.splitlines() if f":{ref}\t" in line), "")
            if done.returncode == 0 or (told and not told.startswith("!")):
                break
            if spent and ("(atomic push fail" in told or "does not support --atomic" in done.stderr):
                self.put(ref, commit, expected)
                return
            if "[rejected]" in told or "stale info" in told:
                if self.look(ref) != commit:
                    raise Moved(ref)
                break  # an earlier try of ours arrived, and its answer did not
        self.there.add(commit)
        self.seen.update(dict.fromkeys((old for old, _ in spent), NEVER), **{ref: commit})

    @property
    def _receiver(self) -> tuple[str, ...]:
        """Have a remote that is a folder here look at what it takes, and not for garbage after every push."""
        command = "--receive-pack=git -c receive.autogc=false -c receive.fsckObjects=true receive-pack"
        return (command,) if Path(self.name).is_dir() else ()

    def look(self, ref: str) -> str:
        """Say what a ref of the remote holds; empty if it does not exist."""
        found = ""
        for done in self._tried("ls-remote", "--quiet", self.name, ref, problem="does not answer"):
            if done.returncode == 0:
                found = done.stdout.split("\t")[0].strip()
                break
        self.seen[ref] = found
        return found

    def fetch(self, ref: str, commit: str, corner: str) -> None:
        """Bring a ref's commit, and hold it here in a corner; one that is known to be here is not asked for."""
        if commit not in self.there and not self._is_loose(commit):
            self.bring(ref, corner)
            if not self._is_loose(commit) and not self.git.succeeds("cat-file", "-e", f"{commit}^{{commit}}"):
                raise GitFailed(
                    f"The remote {self.name} has no {commit[:12]} at {ref}.",
                    hint="See who else writes to the remote; then go on with: unstuck resume",
                )
        self.there.add(commit)

    def _is_loose(self, commit: str) -> bool:
        """Whether a commit is here as a file of its own, as what came lately is; asking git takes a process."""
        return (self.objects / commit[:2] / commit[2:]).exists()

    def bring(self, ref: str, corner: str = "") -> None:
        """Fetch a ref, `*` at the end for all below, and hold it under its own name or in a corner.

        Corners are few, one for each slot: git looks at every ref of ours whenever it fetches.
        """
        options = ("--quiet", "--no-tags", "--no-write-fetch-head")
        name = f"+{ref}:{HERE}{corner or ref.removeprefix('refs/unstuck/')}"
        for done in self._tried("fetch", *options, self.name, name, problem=f"gives no {ref}"):
            if done.returncode == 0:
                return

    def _tried(self, *command: str, problem: str) -> "Iterator[CompletedProcess[str]]":
        """Yield how a command went, until nobody asks for more; a remote that is away for long is told."""
        reason = ""
        for attempt in range(self.tries):
            done = self.git.with_settings(*SETTINGS).attempt(*command)
            yield done
            reason = (done.stderr or done.stdout).strip()
            time.sleep(PAUSE_SECONDS * 2**attempt if attempt + 1 < self.tries else 0)
        raise GitFailed(
            one_line(f"The remote {self.name} {problem}: {reason}", 500),
            hint="See whether it can be reached and written; then go on with: unstuck resume",
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the remote has a tree."""

    ref: str
    commit: str
    spent: bool
    """Whether nobody can write there any more: one worker alone was given the place, and has said that it is done."""


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
    placed: dict[tuple[str, str], Placed] = field(default_factory=dict)
    """Where the remote has trees, each with its base."""
    merged: dict[tuple[str, str], Placed | None] = field(default_factory=dict)
    """Trees that were made here by merging, each with the tip that it stands on; and where the work is that was merged."""
    owed: dict[int, Placed] = field(default_factory=dict)
    """The work of each slot that the remote has, and that was not needed here yet."""

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
                self.keep_commit("never-published", ours)
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

    def open_branch(self, base: str) -> bool:
        made = GitWorkspace.open_branch(self, base)
        self._publish()
        return made

    def land(self, landing: Landing) -> str | None:
        """Land, and tell the remote before anybody records it: who takes the run over elsewhere needs the commit."""
        commit = GitWorkspace.land(self, landing)
        if commit is not None:
            work = self._work(landing)
            self._publish(*([(work.ref, work.commit)] if work is not None and work.spent else []))
        return commit

    def merge_user_commit(self, commit: str, *, message: str, at: float) -> str | Conflict:
        tip = GitWorkspace.merge_user_commit(self, commit, message=message, at=at)
        self._publish()
        return tip

    def move_branch(self, commit: str, *, expected: str) -> None:
        GitWorkspace.move_branch(self, commit, expected=expected)
        self.tips.clear()  # it may have moved back
        self._publish()

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        merged = GitWorkspace.merge(self, landing, tip)
        if isinstance(merged, str):
            self.merged[tip, merged] = self._work(landing)
        return merged

    def _work(self, landing: Landing) -> Placed | None:
        key = landing.base, landing.tree
        return self.placed.get(key) or self.merged.get(key)

    def collect(self, slot: int) -> None:
        """Bring the work of a slot here, if the remote alone has it."""
        if (work := self.owed.pop(slot, None)) is not None:
            self.remote.fetch(work.ref, work.commit, f"{self.run}/@{slot}")

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        if slot >= self.first:
            return GitWorkspace.prepare(self, slot, base, tree, clean=clean)
        self.held[slot] = (base, tree)
        self.owed.pop(slot, None)
        return self.path(slot)

    def has_slot(self, slot: int) -> bool:
        return slot in self.held if slot < self.first else GitWorkspace.has_slot(self, slot)

    def write_tree(self, slot: int, base: str) -> Tree:
        if slot >= self.first or slot not in self.held:
            return GitWorkspace.write_tree(self, slot, base)
        begun, tree = self.held[slot]
        return Tree(id=tree or self.tree_of(begun))

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        if slot >= self.first or slot not in self.held:
            return None if slot < self.first else GitWorkspace.snapshot(self, slot, name)
        self.collect(slot)
        base, tree = self.held[slot]
        if tree is None or tree == self.tree_of(base):
            return None
        text = f"snapshot {name}\n"
        commit = make_commit(self._git, self.identity, tree=tree, parents=(base,), message=text, at=0)
        return self.keep_commit(name, commit)

    def _publish(self, *spent: tuple[str, str]) -> None:
        tip, before = self.tip(), self.published.get(self.run, NEVER)
        if before == tip:
            return
        try:
            self.remote.put(tip_ref(self.run), tip, before, *spent)
        except Moved as error:
            raise OwnershipLost(
                f"Another supervisor moved the branch of run {self.run} in the remote; this one stops.",
                hint="See `unstuck status`.",
            ) from error
        self.published[self.run] = tip
        self.tips.add(tip)


def tip_ref(run: str) -> str:
    """Name the run's branch as the remote has it; no task can be called so."""
    return f"refs/unstuck/{run}/@tip"


def work_ref(run: str, task: str, attempt: int) -> str:
    """Name the place of an attempt's work."""
    return f"refs/unstuck/{run}/{_part(task)}/{attempt}"


def worked(session: int) -> str:
    """Say how the commit of a session's work begins: by this it is told from what the session began with."""
    return f"work of session {session} "


def check_ref(run: str, task: str) -> str:
    """Name the place of a tree that is only to be verified."""
    return f"refs/unstuck/{run}/{_part(task)}/check"


def _part(name: str) -> str:
    """Write a task's name as a part of a ref: git takes neither `..` nor a dot or `.lock` at the wrong end."""
    text = quote(name, safe="").replace("..", "%2E%2E").replace("~", "%7E")
    text = "%2E" + text[1:] if text.startswith(".") else text
    return text[:-1] + "%2E" if text.endswith(".") else text.replace(".lock", "%2Elock")
