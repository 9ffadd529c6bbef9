"""Edge: The remote that a fleet shares: commits go there and come from there by refs that only compare-and-swap moves."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from urllib.parse import quote

from unstuck.errors import GitFailed
from unstuck.git import Git, Identity, make_commit
from unstuck.tell import one_line

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

    def fetch(self, *wanted: tuple[str, str]) -> None:
        """Bring refs' commits, and hold them here; those that are known to be here are not asked for."""
        missing = [(ref, commit) for ref, commit in wanted if commit not in self.there and not self._is_loose(commit)]
        if missing:
            self.bring(*(ref for ref, _ in missing))
        for ref, commit in missing:
            if not self._is_loose(commit) and not self.git.succeeds("cat-file", "-e", f"{commit}^{{commit}}"):
                raise GitFailed(
                    f"The remote {self.name} has no {commit[:12]} at {ref}.",
                    hint="Somebody moved it; it is given out again.",
                )
        self.there.update(commit for _, commit in wanted)

    def _is_loose(self, commit: str) -> bool:
        """Whether a commit is here as a file of its own, as what came lately is; asking git takes a process."""
        return (self.objects / commit[:2] / commit[2:]).exists()

    def bring(self, *refs: str) -> None:
        """Fetch refs, `*` at the end for all below, and hold them under the same names in our corner."""
        options = ("--quiet", "--no-tags", "--no-write-fetch-head")
        names = [f"+{ref}:{HERE}{ref.removeprefix('refs/unstuck/')}" for ref in refs]
        for done in self._tried("fetch", *options, self.name, *names, problem=f"gives no {' and '.join(refs)}"):
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
            hint="See whether it can be reached and written.",
        )


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
