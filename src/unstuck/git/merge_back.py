"""Edge: Bring the run's branch home to the user's branch at the end, or say exactly why not and what to type.

Law: what the user has not committed is never overwritten. A merge happens only where every touched file is clean.
"""

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from unstuck.git.git_command import Git, displayable, remove_stale_lock, report_write_errors, wait_for_git
from unstuck.git.repository import Identity, Repository, listed_names
from unstuck.git.slots import DURABLE
from unstuck.git.staging import put_entries, tree_with_entries
from unstuck.git.workspace import make_commit, merge_trees
from unstuck.model.errors import GitFailed
from unstuck.model.landing import AlreadyMerged, Conflict, FastForward, Merge, MergePlan, NotPossible, run_branch

UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
SCRIPT_FILES = 200
TRAILERS = ("Unstuck-Run: ", "Unstuck-Task: ", "Unstuck-Attempt: ")
SPECIAL = re.compile(r"[][.*+?(){}|^$\\]")
"""What means something in a pattern of git's."""
Change = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""What we have to write into files, given and returned by their paths."""
PICK = """\
pick() {
  commit=$1
  shift
  git merge-base --is-ancestor "$commit" HEAD && return
  test $# -gt 0 && test -n "$(git log -1 --format=%h -E --all-match "$@" HEAD)" && return
  git cherry-pick --ff --cleanup=verbatim "$commit"
}"""
"""Takes a commit over unless the branch has it, or one picked from it, which the trailers of its message tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeBack:
    """One run's way home."""

    repository: Repository
    """As it was when the run began: its branch is where the work goes."""
    run: str
    identity: Identity
    mode: Literal["auto", "single"] = "auto"
    sign: bool = False

    @property
    def run_branch(self) -> str:
        return run_branch(self.run)

    def plan_merge(self, *, message: str, at: float) -> MergePlan:
        """Say what would be done. Writes at most a commit object; the message is for a single or a merge commit."""
        place = self._user_branch()
        if isinstance(place, NotPossible):
            return place
        _undo_half_a_merge(self._git, self.repository)
        git, (branch, head) = self._git, place
        tip = git("rev-parse", f"refs/heads/{self.run_branch}")
        if not git.succeeds("merge-base", head, tip):
            return self._rewritten(branch)
        if self.mode == "single":
            tip = self._single(tip, message=message, at=at)
        if git.succeeds("merge-base", "--is-ancestor", tip, head):
            return AlreadyMerged(commit=head)
        if git.succeeds("merge-base", "--is-ancestor", head, tip):
            return self._refusal(head, tip) or FastForward(commit=tip)
        tree = merge_trees(git, head, tip)
        if isinstance(tree, Conflict):
            return self._not_possible(
                f"{_short(branch)} has moved and changes the same lines in {listed_names(tree.files)}.",
                files=tree.files,
            )
        if git("rev-parse", f"{head}^{{tree}}") == tree:
            return AlreadyMerged(commit=head)
        parents = (head,) if self.mode == "single" else (head, tip)
        commit = make_commit(git, self.identity, tree=tree, parents=parents, message=message, at=at, sign=self.sign)
        return self._refusal(head, commit) or Merge(commit=commit, tree=tree)

    def apply_merge(self, commit: str) -> AlreadyMerged | NotPossible:
        """Move the user's branch and files on to `commit`, a descendant of where they are; refuse rather than overwrite."""
        place = self._user_branch()
        if isinstance(place, NotPossible):
            return place
        git, (branch, head) = self._git, place
        if git.succeeds("merge-base", "--is-ancestor", commit, head):
            return AlreadyMerged(commit=head)
        if refusal := self._refusal(head, commit):
            return refusal
        with _intent(self.repository, head, commit):
            # The user's own merge options could turn a fast-forward into something else.
            plain = git.using(**_setting(f"branch.{_short(branch)}.mergeOptions", ""))
            done = plain.attempt(
                "merge", "--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-stat", "--quiet", commit
            )
        if done.returncode != 0:
            return self._not_possible(f"git refused: {displayable(' '.join(done.stderr.split()))}")
        return AlreadyMerged(commit=commit)

    def commit_plan(self, paths: Sequence[str], change: Change, *, message: str, at: float) -> str | NotPossible | None:
        """Make a change of ours in the plan's files as they were committed, and commit that; None if it changes nothing.

        A person's own edits stay theirs, staged or not: the change is made in what is staged, too. What HEAD does not
        have stays so. The index comes first: cut short, it holds a tick that is true, and the rest is done again.
        """
        place = self._user_branch()
        if isinstance(place, NotPossible):
            return place
        git, (_, head) = self._git, place
        there = _entries(git, "ls-tree", "-z", "--full-tree", head, "--", *paths) if paths else {}
        listed = [f":(top,literal){path}" for path in there]
        staged = _entries(git, "ls-files", "-z", "--stage", "--", *listed) if there else {}
        try:
            after = _changed(git, there, change)
            entries = _changed(git, {path: facts for path, facts in staged.items() if path in there}, change)
            with _intent(self.repository, head, head):
                if entries:
                    put_entries(git, entries)
                    git.attempt("update-index", "-q", "--refresh")
                if not after:
                    return None
                tree = tree_with_entries(git, self.repository.store, head, after)
                commit = make_commit(
                    git, self.identity, tree=tree, parents=(head,), message=message, at=at, sign=self.sign
                )
                git("update-ref", "-m", f"commit: {message.splitlines()[0]}", "HEAD", commit, head)
        except GitFailed as error:
            files = tuple(there)
            return NotPossible(
                reason=f"The plan's changes could not be committed: {error}",
                command=f"git commit --only {' '.join(map(shlex.quote, files))}",
                files=files,
            )
        return commit

    def write_script(self) -> Path:
        """Write `.unstuck/commits.sh`, which makes the landed commits on the branch the user is on."""
        start = self.repository.head
        listed = self._git(
            "rev-list", "--reverse", "--first-parent", "--no-merges", f"{start}..refs/heads/{self.run_branch}"
        )
        lines = [
            "#!/bin/sh",
            f"# Makes the commits of run {self.run} on the branch you are on. Running it twice does no harm.",
            "set -e",
            'cd "$(git rev-parse --show-toplevel)"',
            PICK,
        ]
        for commit in listed.split():
            message = displayable(self._git("show", "--no-patch", "--format=%B", commit))
            lines += [
                "",
                *(f"# {line}".rstrip() for line in message.splitlines()),
                "#",
                *self._files(commit),
                shlex.join(["pick", commit, *_known_by(message)]),
            ]
        path = self.repository.ours / "commits.sh"
        with report_write_errors(path):
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            path.chmod(0o755)
        return path

    def _files(self, commit: str) -> list[str]:
        """List what a commit changes, as comments: a name with a line break in it must not become a command."""
        listed = self._git.names("diff-tree", "-r", "-z", "--no-commit-id", "--name-status", "--no-renames", commit)
        pairs = list(zip(listed[::2], listed[1::2], strict=True))
        more = [f"#   and {len(pairs) - SCRIPT_FILES} more"] if len(pairs) > SCRIPT_FILES else []
        return [f"#   {letter} {_in_one_line(displayable(path))}" for letter, path in pairs[:SCRIPT_FILES]] + more

    @property
    def _git(self) -> Git:
        return Git(self.repository.root, sign=self.sign, env=self.identity.env(), settings=DURABLE)

    def _user_branch(self) -> tuple[str, str] | NotPossible:
        """Return the branch of the user's that the work goes to and its commit, if the checkout stands on it, at rest."""
        started = self.repository.branch
        if started is None:
            return self._not_possible("The run began on a detached HEAD, so there is no branch to move.")
        listed = self._git("for-each-ref", "--format=%(HEAD)%(objectname)", started)
        mark, head = listed[:1], listed[1:]
        if not head:
            command = f"git switch -c {shlex.quote(_short(started))} {self.run_branch}"
            return NotPossible(reason=f"The branch {_short(started)} no longer exists.", command=command)
        if mark != "*":
            now = self._git.attempt("symbolic-ref", "--quiet", "HEAD").stdout.removesuffix("\n") or None
            where = "on a detached HEAD" if now is None else f"on {_short(now)}"
            command = f"git switch {shlex.quote(_short(started))} && git merge {self.run_branch}"
            return NotPossible(
                reason=f"The run began on {_short(started)} and your checkout is now {where}.", command=command
            )
        for name, what in UNFINISHED.items():
            if (self.repository.git_dir / name).exists():
                return self._not_possible(f"Your checkout is in the middle of {what}. Finish it first.")
        return started, head

    def _single(self, tip: str, *, message: str, at: float) -> str:
        """Fold all that landed into one commit on the newest commit of the user's that the run has seen."""
        seen = self._git("merge-base", "HEAD", tip)
        tree, had = self._git("rev-parse", f"{tip}^{{tree}}", f"{seen}^{{tree}}").split()
        if tree == had:
            return seen
        return make_commit(self._git, self.identity, tree=tree, parents=(seen,), message=message, at=at, sign=self.sign)

    def _refusal(self, head: str, target: str) -> NotPossible | None:
        """Look for files of the user's that the move from `head` to `target` would overwrite."""
        touched = _touched(self._git, head, target)
        status = self._git.names("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no")
        dirty = tuple(sorted(touched.keys() & {entry[3:] for entry in status}))
        if dirty:
            return self._not_possible(
                f"You have uncommitted changes in {listed_names(dirty)}, which the run changed, too. Commit or stash them first.",
                files=dirty,
                dirty="--autostash ",  # where nothing is dirty any more, it takes nothing out of the stash
            )
        added = [path for path, kind in touched.items() if kind == "A"]
        found = {_in_the_way(self.repository.root, path, touched) for path in added}
        hidden = tuple(sorted(path for path in found if path is not None))
        if hidden:
            return self._not_possible(
                f"Files that git does not track are in the way: {listed_names(hidden)}. Move them away first.",
                files=hidden,
            )
        return None

    def _rewritten(self, branch: str) -> NotPossible:
        """Say how the work comes to a branch that was rewritten from its first commit on: a merge would bring the old one back."""
        commits = f"{self.repository.head}..{self.run_branch}"
        one = f"git cherry-pick --no-commit {commits} && git commit"
        return NotPossible(
            reason=f"{_short(branch)} has no commit in common with the run any more: it was amended or rewritten.",
            command=one if self.mode == "single" else f"git cherry-pick {commits}",
        )

    def _not_possible(self, reason: str, files: tuple[str, ...] = (), dirty: str = "") -> NotPossible:
        commands = {
            "auto": f"git merge {dirty}{self.run_branch}",
            "single": f"git merge --squash {dirty}{self.run_branch} && git commit",
        }
        return NotPossible(reason=reason, command=commands[self.mode], files=files)


def _setting(name: str, value: str) -> dict[str, str]:
    """Set one more setting than the user's environment does; a branch name may hold what `-c` cannot."""
    count = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    return {"GIT_CONFIG_COUNT": str(count + 1), f"GIT_CONFIG_KEY_{count}": name, f"GIT_CONFIG_VALUE_{count}": value}


def _in_the_way(root: Path, path: str, touched: Mapping[str, str]) -> str | None:
    """Return the untracked file, ignored or not, that stands where `path` must go: git overwrites ignored ones."""
    for folder in reversed(Path(path).parents[:-1]):
        place = root / folder
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            return None if touched.get(str(folder)) == "D" else str(folder)
    place = root / path
    if place.is_dir() and not place.is_symlink():
        files = (str(file.relative_to(root)) for file in place.rglob("*") if file.is_symlink() or not file.is_dir())
        return next((file for file in files if touched.get(file) != "D"), None)
    return path if place.exists() or place.is_symlink() else None


def _known_by(message: str) -> list[str]:
    """Return the options of `git log` that find a commit with the same run, task and attempt; none if it lacks one."""
    trailers = [line for line in message.splitlines() if line.startswith(TRAILERS)]
    if len(trailers) != len(TRAILERS):
        return []
    return ["--grep=^" + SPECIAL.sub(r"\\\g<0>", line) + "$" for line in trailers]


def _in_one_line(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")


def _entries(git: Git, *listing: str) -> dict[str, str]:
    """Return what git lists of regular files, each path with `mode blob`; what is in conflict is left alone."""
    found: dict[str, str] = {}
    for line in git.names(*listing):
        facts, _, path = line.partition("\t")
        mode, *kind, blob = facts.removesuffix(" 0").split(" ")
        if mode.startswith("100") and kind in ([], ["blob"]):
            found[path] = f"{mode} {blob}"
    return found


def _changed(git: Git, entries: Mapping[str, str], change: Change) -> list[str]:
    """Make a change in the contents of entries; return those that are others now, as `mode blob<tab>path`."""
    contents = {path: git.attempt("cat-file", "blob", facts.split(" ")[1]).stdout for path, facts in entries.items()}
    after = change({path: text.encode("utf-8", "surrogateescape") for path, text in contents.items()})
    written = {path: content.decode("utf-8", "surrogateescape") for path, content in after.items()}
    return [
        f"{entries[path].split(' ')[0]} {git('hash-object', '-w', '--no-filters', '--stdin', stdin=text)}\t{path}"
        for path, text in written.items()
        if text != contents[path]
    ]


FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


@contextlib.contextmanager
def _intent(repository: Repository, head: str, target: str) -> Iterator[None]:
    """Note what is about to happen in the user's checkout; the note outlives a crash and nothing else."""
    note = _note(repository)
    with report_write_errors(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"head": head, "target": target}))
    yield
    note.unlink(missing_ok=True)


def _undo_half_a_merge(git: Git, repository: Repository) -> None:
    """Put the checkout back to where it was before a merge of ours that was cut short; do nothing if none was."""
    note = _note(repository)
    try:
        noted, since = json.loads(note.read_text()), note.stat().st_mtime
        head, target = str(noted["head"]), str(noted["target"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    wait_for_git(repository.root, ours=True)  # the merge may have outlived its supervisor
    git_dir, branch = repository.git_dir, repository.common_dir / f"{repository.branch}.lock"
    for lock in (git_dir / "index.lock", git_dir / "HEAD.lock", git_dir / "ORIG_HEAD.lock", branch):
        with contextlib.suppress(FileNotFoundError):
            if lock.stat().st_mtime >= since:
                remove_stale_lock(lock)
    if git("rev-parse", "HEAD") == head:
        _put_back(git, repository.root, head, target)
    note.unlink(missing_ok=True)


def _touched(git: Git, head: str, target: str) -> dict[str, str]:
    """Return the paths in which two commits differ, each with git's letter for how."""
    fields = git(
        "diff-tree", "-r", "-z", "--name-status", "--no-renames", "--ignore-submodules=none", head, target
    ).split("\0")
    return dict(zip(fields[1::2], fields[::2], strict=False))


def _put_back(git: Git, root: Path, head: str, target: str) -> None:
    """Give back the old content to every touched file that holds nothing but what we wrote."""
    changed = {
        path: kind
        for path, kind in _touched(git, head, target).items()
        if _is_ours(git, root / path, f"{target}:{path}")
    }
    added = [path for path, kind in changed.items() if kind == "A"]
    others = [path for path, kind in changed.items() if kind != "A"]
    if added:
        git("rm", "--cached", "--force", "--quiet", "--ignore-unmatch", *FROM_STDIN, stdin=_pathspecs(added))
        for path in added:
            (root / path).unlink(missing_ok=True)
    if others:
        git("checkout", "--quiet", *FROM_STDIN, head, stdin=_pathspecs(others))


def _is_ours(git: Git, place: Path, blob: str) -> bool:
    """Tell whether a file is missing, or holds the merged content or the beginning of it."""
    if place.parent.resolve() != place.parent:
        return False
    try:
        content = os.fsencode(place.readlink()) if place.is_symlink() else place.read_bytes()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    merged = git.attempt("cat-file", "--filters", blob)
    return merged.returncode == 0 and merged.stdout.encode("utf-8", "surrogateescape").startswith(content)


def _pathspecs(paths: Sequence[str]) -> str:
    return "".join(f":(top,literal){path}\0" for path in paths)


def _note(repository: Repository) -> Path:
    return repository.store / "homecoming.json"
