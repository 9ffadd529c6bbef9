"""Edge: Remember how checks went: one small file per tree, command, tools and environment. Whatever changes, is forgotten."""

import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unstuck.git.repository import Repository
from unstuck.model.config import Config
from unstuck.model.verdict import Check, CheckResult
from unstuck.process.atomic_files import write_atomically

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMAT, FOLDER = 3, "cache"
PACKAGES = "lib/python*/*-packages"
KEPT_SECONDS = 30 * 86400.0
TAIL_CHARS = 4000
LASTING_CODES = range(126)
"""Exit codes that are a program's own; above are the shell's, for what could not be started or was killed."""
PASSING = re.compile(
    r"UNSTUCK_.*|PWD|OLDPWD|SHLVL|_|TERM.*|COLUMNS|LINES|WINDOWID|STY|TMUX.*|SSH_.*|XDG_SESSION.*|DBUS_.*|GPG_.*|PYTEST_(?:CURRENT_TEST|XDIST_.*)"
    r"|.*_PID|HISTFILE|LS_COLORS|PS1|PROMPT_COMMAND|INVOCATION_ID|JOURNAL_STREAM"
)
"""Variables that change from one terminal to the next and mean nothing to a check."""


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


class NoMemory(ShortMemory):
    """Remembers nothing: every check is run."""

    def remember(self, tree: str, check: Check, result: CheckResult) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True)
class CheckMemory:
    """The engine's memory on disk. Losing any of it costs time and nothing else."""

    repository: Repository
    """Tools are looked for as commands in the user's checkout would find them."""
    config: Config

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
        if (
            result.flaky
            or result.not_meaningful_because
            or ended.ending != "exited"
            or ended.exit_code not in LASTING_CODES
        ):
            return
        short = replace(ended, tail=ended.tail[-TAIL_CHARS:] if ended.ok else ended.tail)
        kept = replace(result, command="", excused_because="", ended=short)
        write_atomically(self._file(tree, check), _adapter().dump_json(kept, by_alias=True).decode())

    def _file(self, tree: str, check: Check) -> Path:
        workspace = self.config.workspace
        seen = {*tools(check.command, self.repository.root)}
        seen |= {*_installed(self.repository.root / name for name in (*workspace.copy, *workspace.link))}
        variables = sorted((name, value) for name, value in os.environ.items() if not PASSING.fullmatch(name))
        facts = [FORMAT, sys.platform, tree, check.command, workspace.setup, sorted(map(_fact, seen)), variables]
        return self.repository.store / FOLDER / f"{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}.json"


def open_memory(repository: Repository, config: Config) -> CheckMemory:
    """Open the memory of a repository, without what was not written for a month."""
    oldest = time.time() - KEPT_SECONDS
    for path in (repository.store / FOLDER).glob("*.json"):
        with suppress(OSError):  # another run may be about the same
            if path.stat().st_mtime < oldest:
                path.unlink()
    return CheckMemory(repository, config)


def tools(command: str, root: Path) -> Iterator[Path]:
    """Yield what tells one version of a command's programs from another, without running any."""
    for word in set(re.findall(r"[\w./+-]+", command)) | {"bash"}:
        program = shutil.which(word, path=None if "/" not in word else str(root)) or shutil.which(str(root / word))
        if program is not None:
            yield Path(program)
            yield from Path(program).parent.parent.glob(PACKAGES)


def _installed(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield what shows that something was installed or removed: folders and the lists that installers keep in them."""
    for folder in folders:
        yield folder
        for shape in (PACKAGES, ".package-lock.json", ".modules.yaml", ".yarn-integrity"):
            yield from folder.glob(shape)


def _fact(path: Path) -> tuple[str, int, int]:
    """Tell one form of a file or folder from another."""
    try:
        about = path.stat()
        return str(path.resolve()), about.st_size, about.st_mtime_ns
    except (OSError, RuntimeError):
        return str(path), 0, 0


@cache
def _adapter() -> "TypeAdapter[CheckResult]":
    from pydantic import TypeAdapter  # noqa: PLC0415  # heavy

    return TypeAdapter(CheckResult)
