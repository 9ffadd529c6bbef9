"""Edge: The remote that a fleet shares: commits go there and come from there by refs that only compare-and-swap moves."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from unstuck.errors import GitFailed
from unstuck.git import Git, Identity, make_commit

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

    def commit(self, tree: str, base: str, text: str, *beside: str) -> str:
        """Write a commit of a tree on its base, and on what else must come with it; the same text gives the same commit."""
        return make_commit(self.git, self.identity, tree=tree, parents=(base, *beside), message=text, at=0)

    def put(self, ref: str, commit: str, expected: str | None = None) -> None:
        """Move a ref of the remote to a commit of ours; raise Moved if it is not what was expected. None: whatever it is."""
        lease = "--force" if expected is None else f"--force-with-lease={ref}:{expected}"
        reason = ""
        for attempt in range(self.tries):
            done = self.git.with_settings(*SOUND).attempt(
                "push", "--quiet", "--no-verify", "--porcelain", *self._receiver, lease, self.name, f"{commit}:{ref}"
            )
            if done.returncode == 0:
                self.there.add(commit)
                return
            reason = (done.stderr or done.stdout).strip()
            if expected is not None and ("[rejected]" in done.stdout or "stale info" in done.stdout):
                if self.look(ref) == commit:
                    return  # an earlier try of ours arrived, and its answer did not
                raise Moved(ref)
            time.sleep(PAUSE_SECONDS * 2**attempt if attempt + 1 < self.tries else 0)
        raise GitFailed(
            f"The remote {self.name} takes no {ref}: {reason}", hint="See whether it can be reached and written."
        )

    @property
    def _receiver(self) -> tuple[str, ...]:
        """Spare a remote that is a folder here from looking for garbage after every push."""
        return ("--receive-pack=git -c receive.autogc=false receive-pack",) if Path(self.name).is_dir() else ()

    def look(self, ref: str) -> str:
        """Say what a ref of the remote holds; empty if it does not exist."""
        reason = ""
        for attempt in range(self.tries):
            done = self.git.with_settings(*SOUND).attempt("ls-remote", "--quiet", self.name, ref)
            if done.returncode == 0:
                return done.stdout.split("\t")[0].strip()
            reason = done.stderr.strip()
            time.sleep(PAUSE_SECONDS * 2**attempt if attempt + 1 < self.tries else 0)
        raise GitFailed(f"The remote {self.name} does not answer: {reason}", hint="See whether it can be reached.")

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
        reason = ""
        for attempt in range(self.tries):
            done = self.git.with_settings(*SOUND).attempt(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self.name, f"+{ref}:{here}"
            )
            if done.returncode == 0:
                return
            reason = done.stderr.strip()
            time.sleep(PAUSE_SECONDS * 2**attempt if attempt + 1 < self.tries else 0)
        raise GitFailed(f"The remote {self.name} gives no {ref}: {reason}", hint="See whether it can be reached.")
