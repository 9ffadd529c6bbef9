"""Merge the run's branch back into the user's branch at the end of a run.

Rules: uncommitted work of the user is never overwritten. A merge happens only where every touched file is clean.
Where it is not possible, the result names the reason and the command to type.
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
"""Characters with a meaning in git's patterns."""
Change = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Returns the new contents of files from the old ones, both by path."""
PICK = """\
pick() {
  commit=$1
  shift
  git merge-base --is-ancestor "$commit" HEAD && return
  test $# -gt 0 && test -n "$(git log -1 --format=%h -E --all-match "$@" HEAD)" && return
  git cherry-pick --ff --cleanup=verbatim "$commit"
}"""
"""Picks a commit unless the branch has it, or has one with the same trailers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeBack:
    """The merge of one run's branch back into the user's branch."""

    repository: Repository
    """The repository at the start of the run. The work goes to its branch."""
    run: str
    identity: Identity
    mode: Literal["auto", "single"] = "auto"
    sign: bool = False

    @property
    def run_branch(self) -> str:
        return run_branch(self.run)

    def plan_merge(self, *, message: str, at: float) -> MergePlan:
        """Return what `apply_merge` would do. Write at most a commit object, with this message."""
        checkout = self._user_branch()
        if isinstance(checkout, NotPossible):
            return checkout
        _undo_half_a_merge(self._git, self.repository)
        git, (branch, head) = self._git, checkout
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
        """Move the user's branch and files forward to `commit`, or refuse where files would be overwritten."""
        checkout = self._user_branch()
        if isinstance(checkout, NotPossible):
            return checkout
        git, (branch, head) = self._git, checkout
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
        """Commit a change to the plan's committed files. Return the commit, or None if nothing changes.

        The user's own edits stay uncommitted. If they are staged, the index gets the change, too. Files that HEAD does
        not have stay uncommitted. The index is written first: after a crash it is correct, and the rest is done again.
        """
        checkout = self._user_branch()
        if isinstance(checkout, NotPossible):
            return checkout
        git, (_, head) = self._git, checkout
        committed = _entries(git, "ls-tree", "-z", "--full-tree", head, "--", *paths) if paths else {}
        pathspecs = [f":(top,literal){path}" for path in committed]
        staged = _entries(git, "ls-files", "-z", "--stage", "--", *pathspecs) if committed else {}
        try:
            after = _changed(git, committed, change)
            entries = _changed(git, {path: facts for path, facts in staged.items() if path in committed}, change)
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
            files = tuple(committed)
            return NotPossible(
                reason=f"The plan's changes could not be committed: {error}",
                command=f"git commit --only {' '.join(map(shlex.quote, files))}",
                files=files,
            )
        return commit

    def write_script(self) -> Path:
        """Write `.unstuck/commits.sh`, which makes the landed commits on the current branch when the user runs it."""
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
                shlex.join(["pick", commit, *_trailer_options(message)]),
            ]
        path = self.repository.unstuck_folder / "commits.sh"
        with report_write_errors(path):
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            path.chmod(0o755)
        return path

    def _files(self, commit: str) -> list[str]:
        """Return the files of a commit as comments. A line break in a name must not start a command."""
        listed = self._git.names("diff-tree", "-r", "-z", "--no-commit-id", "--name-status", "--no-renames", commit)
        pairs = list(zip(listed[::2], listed[1::2], strict=True))
        more = [f"#   and {len(pairs) - SCRIPT_FILES} more"] if len(pairs) > SCRIPT_FILES else []
        return [f"#   {letter} {_in_one_line(displayable(path))}" for letter, path in pairs[:SCRIPT_FILES]] + more

    @property
    def _git(self) -> Git:
        return Git(self.repository.root, sign=self.sign, env=self.identity.env(), settings=DURABLE)

    def _user_branch(self) -> tuple[str, str] | NotPossible:
        """Return the user's branch and its commit, if it is checked out and no merge is in progress."""
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
        """Return one commit with all that landed, on the newest commit of the user that the run has."""
        parent = self._git("merge-base", "HEAD", tip)
        tree, old_tree = self._git("rev-parse", f"{tip}^{{tree}}", f"{parent}^{{tree}}").split()
        if tree == old_tree:
            return parent
        return make_commit(
            self._git, self.identity, tree=tree, parents=(parent,), message=message, at=at, sign=self.sign
        )

    def _refusal(self, head: str, target: str) -> NotPossible | None:
        """Return why the move from `head` to `target` would overwrite files of the user, or None."""
        touched = _touched(self._git, head, target)
        status = self._git.names("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=no")
        dirty = tuple(sorted(touched.keys() & {entry[3:] for entry in status}))
        if dirty:
            return self._not_possible(
                f"You have uncommitted changes in {listed_names(dirty)}, which the run changed, too. Commit or stash them first.",
                files=dirty,
                dirty="--autostash ",  # without dirty files it stashes nothing
            )
        added = [path for path, kind in touched.items() if kind == "A"]
        obstacles = {_in_the_way(self.repository.root, path, touched) for path in added}
        hidden = tuple(sorted(path for path in obstacles if path is not None))
        if hidden:
            return self._not_possible(
                f"Files that git does not track are in the way: {listed_names(hidden)}. Move them away first.",
                files=hidden,
            )
        return None

    def _rewritten(self, branch: str) -> NotPossible:
        """Return the commands for a branch that was rewritten from its first commit on.

        A merge would bring the old commits back.
        """
        commits = f"{self.repository.head}..{self.run_branch}"
        single = f"git cherry-pick --no-commit {commits} && git commit"
        return NotPossible(
            reason=f"{_short(branch)} has no commit in common with the run any more: it was amended or rewritten.",
            command=single if self.mode == "single" else f"git cherry-pick {commits}",
        )

    def _not_possible(self, reason: str, files: tuple[str, ...] = (), dirty: str = "") -> NotPossible:
        commands = {
            "auto": f"git merge {dirty}{self.run_branch}",
            "single": f"git merge --squash {dirty}{self.run_branch} && git commit",
        }
        return NotPossible(reason=reason, command=commands[self.mode], files=files)


def _setting(name: str, value: str) -> dict[str, str]:
    """Return the variables that add one setting. A branch name may contain characters that `-c` cannot."""
    count = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    return {"GIT_CONFIG_COUNT": str(count + 1), f"GIT_CONFIG_KEY_{count}": name, f"GIT_CONFIG_VALUE_{count}": value}


def _in_the_way(root: Path, path: str, touched: Mapping[str, str]) -> str | None:
    """Return the untracked file that `path` would overwrite, or None. Git overwrites ignored ones."""
    for folder in reversed(Path(path).parents[:-1]):
        place = root / folder
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            return None if touched.get(str(folder)) == "D" else str(folder)
    place = root / path
    if place.is_dir() and not place.is_symlink():
        files = (str(file.relative_to(root)) for file in place.rglob("*") if file.is_symlink() or not file.is_dir())
        return next((file for file in files if touched.get(file) != "D"), None)
    return path if place.exists() or place.is_symlink() else None


def _trailer_options(message: str) -> list[str]:
    """Return the options of `git log` that match the run, task and attempt of a commit message.

    Return none if the message lacks one of them.
    """
    trailers = [line for line in message.splitlines() if line.startswith(TRAILERS)]
    if len(trailers) != len(TRAILERS):
        return []
    return ["--grep=^" + SPECIAL.sub(r"\\\g<0>", line) + "$" for line in trailers]


def _in_one_line(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")


def _entries(git: Git, *listing: str) -> dict[str, str]:
    """Return the regular files of a listing, each path with `mode blob`. Files in conflict are left out."""
    entries: dict[str, str] = {}
    for line in git.names(*listing):
        facts, _, path = line.partition("\t")
        mode, *kind, blob = facts.removesuffix(" 0").split(" ")
        if mode.startswith("100") and kind in ([], ["blob"]):
            entries[path] = f"{mode} {blob}"
    return entries


def _changed(git: Git, entries: Mapping[str, str], change: Change) -> list[str]:
    """Apply a change to the contents of entries. Return the changed ones, as `mode blob<tab>path`."""
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
    """Write a note while the user's checkout is changed. Only a crash leaves it behind."""
    note = _note(repository)
    with report_write_errors(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"head": head, "target": target}))
    yield
    note.unlink(missing_ok=True)


def _undo_half_a_merge(git: Git, repository: Repository) -> None:
    """Restore the checkout after a merge that a crash interrupted. Do nothing without one."""
    note = _note(repository)
    try:
        record, since = json.loads(note.read_text()), note.stat().st_mtime
        head, target = str(record["head"]), str(record["target"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    wait_for_git(repository.root, only_own=True)  # the merge may have outlived its supervisor
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
    """Restore the old content of every file that holds only content of the interrupted merge."""
    changed = {
        path: kind
        for path, kind in _touched(git, head, target).items()
        if _is_from_merge(git, root / path, f"{target}:{path}")
    }
    added = [path for path, kind in changed.items() if kind == "A"]
    replaced = [path for path, kind in changed.items() if kind != "A"]
    if added:
        git("rm", "--cached", "--force", "--quiet", "--ignore-unmatch", *FROM_STDIN, stdin=_pathspecs(added))
        for path in added:
            (root / path).unlink(missing_ok=True)
    if replaced:
        git("checkout", "--quiet", *FROM_STDIN, head, stdin=_pathspecs(replaced))


def _is_from_merge(git: Git, place: Path, blob: str) -> bool:
    """Return whether a file is missing, or holds the merged content or the beginning of it."""
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
