"""Edge: What verification asks of git and of its memory: how checks went, one small file per tree, command, tools and environment.

Whatever changes, is forgotten.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unstuck.config import Config
from unstuck.git import Repository
from unstuck.journal import CheckResult
from unstuck.plans import Check
from unstuck.ports import Workspace
from unstuck.process import put
from unstuck.verify.change import Change

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMAT = 1
KEPT_SECONDS = 30 * 86400.0
TAIL_CHARS = 4000
LASTING_CODES = range(126)
"""Exit codes that are a program's own; above are the shell's, for what could not be started or was killed."""
PASSING = re.compile(
    r"UNSTUCK_.*|PWD|OLDPWD|SHLVL|_|TERM.*|COLUMNS|LINES|WINDOWID|STY|TMUX.*|SSH_.*|XDG_SESSION.*|DBUS_.*|GPG_.*|PYTEST_(?:CURRENT_TEST|XDIST_.*)"
    r"|.*_PID|HISTFILE|LS_COLORS|PS1|PROMPT_COMMAND|INVOCATION_ID|JOURNAL_STREAM"
)
"""Variables that change from one terminal to the next and mean nothing to a check."""


class Checkouts(Workspace, Protocol):
    """A workspace that also makes clean checkouts, and reads what trees hold."""

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        """Prepare as ever. A clean worktree loses ignored files, too, but for what was placed or set up.

        Git, asked in a clean worktree, takes all files of the tree for tracked.
        """
        ...

    def settle(self, slot: int, before: Sequence[str], altered: Sequence[str]) -> None:
        """Remember what the set-up made in the slot's worktree, besides what lay about `before`, and what it `altered`.

        A clean `prepare` keeps what it made; none of it is anybody's work.
        """
        ...

    def loose(self, slot: int) -> tuple[str, ...]:
        """List what lies about in the slot's worktree, untracked and not ignored."""
        ...

    def altered(self, slot: int) -> tuple[str, ...]:
        """List the files of the slot's tree that are in another form now, or gone; new ones are not listed."""
        ...

    def mixed(self, base: str, tree: str, paths: Sequence[str]) -> str:
        """Write the tree of `base` with these paths as they are in `tree`."""
        ...

    def changes(self, base: str, tree: str) -> tuple[Change, ...]:
        """Return the paths in which the two differ, with their texts; no renames."""
        ...

    def authors(self, path: str, commit: str, since: str) -> Sequence[tuple[str, str]]:
        """Return the lines of a file that came in after `since`, each with the commit that added it."""
        ...

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        ...

    def files(self, tree: str) -> tuple[str, ...]:
        """List all paths of a tree."""
        ...


class Memory(Protocol):
    """How checks went on trees: a tree has the same result as long as the tools are the same."""

    def recall(self, tree: str, check: Check) -> CheckResult | None: ...

    def remember(self, tree: str, check: Check, result: CheckResult) -> None: ...


@dataclass(frozen=True, slots=True)
class ShortMemory:
    """A memory that lasts as long as its run."""

    known: dict[tuple[str, str], CheckResult] = field(default_factory=dict)

    def recall(self, tree: str, check: Check) -> CheckResult | None:
        return self.known.get((tree, check.command))

    def remember(self, tree: str, check: Check, result: CheckResult) -> None:
        self.known[tree, check.command] = result


class NoMemory:
    """Remembers nothing: every check is run."""

    def recall(self, tree: str, check: Check) -> CheckResult | None:  # noqa: ARG002  # the port's signature
        return None

    def remember(self, tree: str, check: Check, result: CheckResult) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckMemory:
    """The engine's memory on disk. Losing any of it costs time and nothing else."""

    folder: Path
    root: Path
    """The user's checkout: tools are looked for as its commands would find them."""
    setup: tuple[str, ...] = ()
    placed: tuple[str, ...] = ()
    """What worktrees get besides git's files."""
    environment: Mapping[str, str]

    def recall(self, tree: str, check: Check) -> CheckResult | None:
        """Return how the check went on this tree, if nothing that matters has changed since."""
        try:
            found = _adapter().validate_json(self._file(tree, check).read_bytes())
        except (OSError, ValueError):
            return None
        return replace(found, command=check.command)

    def remember(self, tree: str, check: Check, result: CheckResult) -> None:
        """Keep a result that would be the same again."""
        ended = result.ended
        if result.flaky or result.idle or ended.ending != "exited" or ended.exit_code not in LASTING_CODES:
            return
        short = replace(
            result,
            command="",
            although="",
            ended=replace(ended, tail=ended.tail[-TAIL_CHARS:] if ended.ok else ended.tail),
        )
        put(self._file(tree, check), _adapter().dump_json(short).decode())

    def trim(self, now: float | None = None) -> None:
        """Forget what was not written for a month."""
        oldest = (time.time() if now is None else now) - KEPT_SECONDS
        for path in self.folder.glob("*.json"):
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def _file(self, tree: str, check: Check) -> Path:
        facts = [
            FORMAT,
            tree,
            check.command,
            self.setup,
            sorted(_tools(check.command, self.root)),
            sorted(fact for name in self.placed for fact in _contents(self.root / name)),
            sorted((name, value) for name, value in self.environment.items() if not PASSING.fullmatch(name)),
        ]
        return self.folder / f"{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}.json"


def open_memory(repository: Repository, config: Config) -> CheckMemory:
    """Open the memory of a repository, without what is too old."""
    memory = CheckMemory(
        folder=repository.store / "cache",
        root=repository.root,
        setup=config.workspace.setup,
        placed=(*config.workspace.copy, *config.workspace.link),
        environment=dict(os.environ),
    )
    memory.trim()
    return memory


def _tools(command: str, root: Path) -> Iterator[tuple[str, int, int]]:
    """Yield what tells one version of a command's programs from another, without running any."""
    for word in set(re.findall(r"[\w./+-]+", command)) | {"bash"}:
        program = shutil.which(word, path=None if "/" not in word else str(root)) or shutil.which(str(root / word))
        if program is None or not os.access(program, os.X_OK):
            continue
        yield from _facts(Path(program))
        for packages in Path(program).parent.parent.glob("lib/python*/site-packages"):
            yield from _facts(packages)
    yield (sys.platform, 0, 0)


def _contents(path: Path) -> Iterator[tuple[str, int, int]]:
    """Yield what shows that something was installed or removed: a folder and the lists that installers keep in it."""
    yield from _facts(path)
    for pattern in ("lib/python*/site-packages", ".package-lock.json", ".modules.yaml", ".yarn-integrity"):
        for inside in path.glob(pattern):
            yield from _facts(inside)


def _facts(path: Path) -> Iterator[tuple[str, int, int]]:
    try:
        real = path.resolve()
        about = real.stat()
    except (OSError, RuntimeError):
        return
    yield (str(real), about.st_size, about.st_mtime_ns)


@cache
def _adapter() -> "TypeAdapter[CheckResult]":
    from pydantic import TypeAdapter  # noqa: PLC0415  # heavy

    return TypeAdapter(CheckResult)
