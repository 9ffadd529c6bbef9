"""Edge: The remote that a fleet shares: commits go there and come from there by refs that only compare-and-swap moves."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

from unstuck.errors import GitFailed
from unstuck.git import Git, Identity, make_commit
from unstuck.tell import one_line

HERE = "refs/unstuck/fleet/"
"""Where what came from the remote is held in a repository of ours."""
TRIES, PAUSE_SECONDS = 6, 0.5
"""A remote that is away for a moment is waited for; each pause is twice the last one."""
SOUND = ("transfer.fsckObjects=true", "protocol.version=2")
NEVER = ""
"""What a ref holds that does not exist."""


class Moved(Exception):
    """The ref is not what it should be: somebody else moved it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A remote, as seen from one repository."""

    git: Git
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

    def put(self, ref: str, commit: str, expected: str) -> None:
        """Move a ref of the remote to a commit of ours; raise Moved if it is not what was expected."""
        lease = f"--force-with-lease={ref}:{expected}"
        for done in self._tried(
            "push", "--quiet", "--no-verify", "--porcelain", *self._receiver, lease, self.name, f"{commit}:{ref}",
            problem=f"takes no {ref}",
        ):  # fmt: skip
            if done.returncode == 0:
                break
            if "[rejected]" in done.stdout or "stale info" in done.stdout:
                if self.look(ref) != commit:
                    raise Moved(ref)
                break  # an earlier try of ours arrived, and its answer did not
        self.there.add(commit)
        self.seen[ref] = commit

    @property
    def _receiver(self) -> tuple[str, ...]:
        """Spare a remote that is a folder here from looking for garbage after every push."""
        return ("--receive-pack=git -c receive.autogc=false receive-pack",) if Path(self.name).is_dir() else ()

    def look(self, ref: str) -> str:
        """Say what a ref of the remote holds; empty if it does not exist."""
        found = ""
        for done in self._tried("ls-remote", "--quiet", self.name, ref, problem="does not answer"):
            if done.returncode == 0:
                found = done.stdout.split("\t")[0].strip()
                break
        self.seen[ref] = found
        return found

    def fetch(self, ref: str, commit: str) -> None:
        """Bring a ref's commit, and hold it here; one that is here already is not asked for."""
        if commit in self.there or self._has(commit):
            self.there.add(commit)
            return
        self.bring(ref)
        if not self._has(commit):
            raise GitFailed(
                f"The remote {self.name} has no {commit[:12]} at {ref}.",
                hint="Somebody moved it; it is given out again.",
            )
        self.there.add(commit)

    def _has(self, commit: str) -> bool:
        return self.git.succeeds("cat-file", "-e", f"{commit}^{{commit}}")

    def bring(self, ref: str) -> None:
        """Fetch refs, `*` at the end for all below, and hold them under the same names in our corner."""
        here = HERE + ref.removeprefix("refs/unstuck/")
        options = ("--quiet", "--no-tags", "--no-write-fetch-head")
        for done in self._tried("fetch", *options, self.name, f"+{ref}:{here}", problem=f"gives no {ref}"):
            if done.returncode == 0:
                return

    def _tried(self, *command: str, problem: str) -> "Iterator[CompletedProcess[str]]":
        """Yield how a command went, until nobody asks for more; a remote that is away for long is told."""
        reason = ""
        for attempt in range(self.tries):
            done = self.git.with_settings(*SOUND).attempt(*command)
            yield done
            reason = (done.stderr or done.stdout).strip()
            time.sleep(PAUSE_SECONDS * 2**attempt if attempt + 1 < self.tries else 0)
        raise GitFailed(
            one_line(f"The remote {self.name} {problem}: {reason}", 500),
            hint="See whether it can be reached and written.",
        )
