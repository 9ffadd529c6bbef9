"""The memory of one agent session, in a file that is locked while it changes."""

import fcntl
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypedDict

LARGEST = 1 << 18
DAYS_KEPT = 7
LONGEST_NAME = 120
LOG_BYTES = 1 << 18
CALLS = 12
FAILURES = 8
FILES = 20
STATES = 8
TOLD = 50
OPEN = 10
"""The number of red checks that are remembered."""
NAMED = 5
"""Failing tests that are remembered by name."""


class Failed(NamedTuple):
    """A call that failed."""

    kind: str
    message: str
    """Its decisive line."""
    tests: list[str]
    failing: int
    """The number of failing tests, or -1 if it is unknown."""
    what: str
    """The call in one line."""


class Proposed(TypedDict):
    """Remedies that the agent got, to learn whether they work."""

    chain: str
    context: str
    tool: str
    """The program or tool that was called, for which experience counts."""
    strategies: list[list[Any]]
    """Each with its name, and its steps as command lines."""
    left: int
    """The number of calls in which a remedy may still be tried."""


class Memory:
    """The memory of a session. Its lists are shortened when it is saved."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.head: str = content.get("head", "")
        """The commit that the session began with."""
        self.prompt: str = content.get("prompt", "")
        self.edited: bool = content.get("edited", False)
        self.refused: int = content.get("refused", 0)
        """The number of refused stops since the last message of the user."""
        self.nudged: str = content.get("nudged", "")
        """The streak of the last warning."""
        self.calls: list[list[Any]] = content.get("calls", [])
        """Tool, digest of its arguments, digest of its result, whether it failed."""
        self.failures: list[Failed] = [Failed(*row) for row in content.get("failures", [])]
        self.states: dict[str, list[list[str]]] = content.get("states", {})
        """The states before and after each edit, by file."""
        self.told: list[str] = content.get("told", [])
        """Signatures of failures for which the agent got advice."""
        self.red: dict[str, str] = content.get("red", {})
        """The last failure of each check."""
        self.proposed: Proposed | None = content.get("proposed")

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "calls": self.calls[-CALLS:],
            "failures": self.failures[-FAILURES:],
            "states": {path: states[-STATES:] for path, states in list(self.states.items())[-FILES:]},
            "told": self.told[-TOLD:],
            "red": dict(list(self.red.items())[-OPEN:]),
        }


def digest(text: str) -> str:
    """Return a short digest of a text, to compare it with earlier ones."""
    raw = text.encode(errors="replace")
    return f"{zlib.crc32(raw):08x}{len(raw):x}"


@contextmanager
def remembered(agent: str, session: str) -> Iterator[Memory]:
    """Yield the memory of a session and save it afterwards. Each session has its own file."""
    folder = state_folder()
    path = f"{folder}/{agent}-{_file_name(session)}.json"
    if not os.path.exists(path):  # noqa: PTH110  # pathlib costs a tenth of the whole
        _forget_old(folder)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        memory = Memory(_content(file.read(LARGEST)))
        yield memory
        file.seek(0)
        file.truncate()
        file.write(json.dumps(memory.as_json()))


def _file_name(session: str) -> str:
    """Return a file name for a session. It is a digest if the session's id is no plain name."""
    plain = session.replace("/", ".").rstrip(".")
    if plain.replace("-", "").replace(".", "").isalnum() and plain.isascii() and len(plain) <= LONGEST_NAME:
        return plain
    import hashlib  # noqa: PLC0415  # every known agent's ids are plain

    return f"{hashlib.blake2b(session.encode(errors='replace'), digest_size=16).hexdigest()}-"


def state_folder() -> str:
    """Return the folder for the hook's state. It is created for this user only."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111  # as above
    folder = f"{state}/unstuck/hook"
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  # as above
    return folder


def log(line: str) -> None:
    """Write a line about a bug to the log, which is emptied before it grows large."""
    path = f"{state_folder()}/hook.log"
    small = not os.path.exists(path) or os.path.getsize(path) < LOG_BYTES  # noqa: PTH110, PTH202  # as above
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if small else os.O_TRUNC)
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {line[:2000]}\n")


def _content(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text) if text else {}
        Memory(content)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}  # half-written by a killed process, so the memory starts again
    return content if isinstance(content, dict) else {}


def _forget_old(folder: str) -> None:
    now = time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.name.endswith(".json") and now - entry.stat().st_mtime > DAYS_KEPT * 86400:
                    os.unlink(entry.path)  # noqa: PTH108  # as above
            except OSError:
                continue
