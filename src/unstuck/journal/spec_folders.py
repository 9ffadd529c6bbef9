"""The files of a spec folder that stand beside its plan: `.ralph-state.json` and `.progress.md`."""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.decide import Limits
from unstuck.journal.progress_file import updated
from unstuck.journal.ralph_state import Settings, first_content, merged, progress, settings
from unstuck.journal.run_state import RunState
from unstuck.ports import PlanFile
from unstuck.process import rewrite
from unstuck.tell import one_line

STATE, PROGRESS = ".ralph-state.json", ".progress.md"
NOT_JSON = "State file is not valid JSON"
NAME_CHARS = 100


class NotAState(ValueError):
    """A state file that cannot be read, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFolder:
    """One spec folder. A person and other programs may edit its files at any time; their edits are kept."""

    path: Path
    told: Callable[[str], None]
    """Hears of a file that had to be set aside."""

    def write(self, state: RunState, limits: Limits) -> None:
        """Bring both files up to date."""
        name = one_line(os.fsencode(self.path.resolve().name).decode("utf-8", "backslashreplace"), NAME_CHARS)

        def state_file(before: bytes) -> bytes:
            content = self._object(before) or first_content(name, limits, len(state.tasks))
            after = merged(content, state)
            return before if after == content and before.strip() else _encoded(after)

        def progress_file(before: bytes) -> bytes:
            text = before.decode("utf-8", "surrogateescape")
            return updated(text, progress(state), name).encode("utf-8", "surrogateescape")

        for file, change in ((STATE, state_file), (PROGRESS, progress_file)):
            rewrite(self.path / file, change, create=True)

    def settings(self) -> Settings:
        """Return what the state file asks of a run; nothing, if there is none or it cannot be read."""
        try:
            content = parse((self.path / STATE).read_bytes())
        except (OSError, NotAState):
            return Settings(limits={})
        return settings(content)

    def _object(self, content: bytes) -> dict[str, Any] | None:
        """Return the state file's object; one that cannot be read is kept under another name, never just replaced."""
        if not content.strip():
            return None
        try:
            return parse(content)
        except NotAState as error:
            path = self.path / STATE
            aside = path.with_name(f"{STATE}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}")
            shutil.copyfile(path, aside)
            self.told(f"{error} ({path}). A copy is kept as {aside.name}; the run goes on with its own facts.")
            return None


def spec_folder(plan_file: PlanFile, told: Callable[[str], None] = lambda _text: None) -> SpecFolder | None:
    """Return the folder of a spec whose files are kept up with the plan; None for any other plan."""
    return SpecFolder(path=plan_file.path.parent, told=told) if plan_file.spec_folder else None


def asked_by(plan_file: PlanFile) -> Settings:
    """Return what the plan's own state file asks for."""
    folder = spec_folder(plan_file)
    return folder.settings() if folder is not None else Settings(limits={})


def parse(content: bytes) -> dict[str, Any]:
    """Read a state file; raise NotAState if it holds no JSON object."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotAState(f"{NOT_JSON}: {error}") from error
    if not isinstance(value, dict):
        raise NotAState(f"{NOT_JSON}: it holds no object")
    return value


def _encoded(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):  # a lone half is no UTF-8
        text = json.dumps(content, indent=2)
    return f"{text}\n".encode()
