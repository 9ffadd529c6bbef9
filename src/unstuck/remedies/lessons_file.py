"""Edge: Keep what remedies teach: one small JSON file, replaced atomically, safe when two write at once."""

import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from unstuck.model.errors import BadUsage, unwritable
from unstuck.model.failure import Kind, RecentFailure
from unstuck.remedies.learning import LATEST, Counts, Lessons


def read_lessons(path: Path) -> Lessons:
    """Return what was learned; a file that cannot be read is as good as none."""
    return _lessons(_content(path))


def read_recent(path: Path) -> tuple[RecentFailure, ...]:
    """Return the failures of the recent past, oldest first."""
    rows = _content(path).get("recent", [])
    return tuple(
        RecentFailure(kind=Kind(row["kind"]), name=str(row["name"]), at=float(row["at"]))
        for row in rows
        if row.get("kind") in set(Kind)
    )


def change_lessons(path: Path, change: Callable[[Lessons], Lessons], seen: RecentFailure | None = None) -> None:
    """Change what is kept, under a lock of its own so that two at once both count."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _set_aside_if_broken(path)
            recent = [*read_recent(path), *([seen] if seen else [])][-LATEST:]
            _write(path, _object(change(read_lessons(path)), recent))
    except OSError as error:
        raise unwritable(path, error) from error


def export_lessons(path: Path) -> str:
    return json.dumps(_object(read_lessons(path), list(read_recent(path))), indent=1) + "\n"


def import_lessons(text: str, source: str) -> Lessons:
    """Read an export; one that is none is refused."""
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("schema") != 1 or not isinstance(content.get("rows"), list):
            raise ValueError("it is no export of `unstuck experience`")  # noqa: TRY301  # told as one below
        return _lessons(content, strict=True)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadUsage(
            f"{source} cannot be imported: {error}.", hint="Make one with `unstuck experience --export FILE`."
        ) from error


def _lessons(content: dict[str, Any], *, strict: bool = False) -> Lessons:
    counts = {}
    for row in content.get("rows", []):
        try:
            values = {name: row[name] for name in ("tried", "worked", "tries", "successes", "steps", "seconds")}
            values["cost"] = row.get("cost", 0.0)
            if not all(isinstance(value, int | float) and 0 <= value < float("inf") for value in values.values()):
                raise ValueError("a count is no number")  # noqa: TRY301  # told as one below
            key = (str(row["chain"]), str(row["strategy"]), str(row["context"]), str(row.get("tool", "")))
            counts[key] = Counts(**values)
        except (KeyError, TypeError, ValueError):
            if strict:
                raise
    consents = content.get("consents")
    return Lessons(
        counts=counts,
        consents={str(key): int(value) for key, value in consents.items()} if isinstance(consents, dict) else {},
    )


def _object(lessons: Lessons, recent: list[RecentFailure]) -> dict[str, Any]:
    rows = [
        {"chain": chain, "strategy": way, "context": context, "tool": tool, **counts._asdict()}
        for (chain, way, context, tool), counts in sorted(lessons.counts.items())
    ]
    seen = [{"kind": str(one.kind), "name": one.name, "at": one.at} for one in recent]
    return {"schema": 1, "rows": rows, "consents": dict(lessons.consents), "recent": seen}


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _set_aside_if_broken(path: Path) -> None:
    if path.exists() and not _content(path):
        path.rename(path.with_name(f"{path.name}.broken-{int(time.time())}"))


def _write(path: Path, content: dict[str, Any]) -> None:
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
