"""Edge: see whether a dangerous call would really destroy something here, and refuse it if so."""

import fnmatch
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unstuck.hook.guard import Danger, dangers, literal, written
from unstuck.hook.heads import concerned, root_of
from unstuck.hook.heard import Heard
from unstuck.tell import one_line

if TYPE_CHECKING:
    from unstuck.config import Config

GIT_SECONDS = 10
FEW = 3
EVERYTHING = ("*", ".*", "{*,.*}")


def objection(heard: Heard) -> str:
    """Say why a call must not be made, and what to do instead; nothing if it may."""
    cwd = Path(heard.cwd or ".").absolute()
    root = Path(root_of(str(cwd)))
    config = configured(root)
    if config is not None and not config.hook.guard:
        return ""
    touched = [heard.path] if heard.path else list(written(heard.command)) if heard.command else []
    if config is not None and (path := _protected(touched, cwd, root, config.hook.protected)):
        return f"{one_line(path, 200)} is protected: it is what your work is judged by. Make the code right instead; if the test itself is wrong, tell the person why."
    for danger in dangers(heard.command, os.environ) if heard.command else ():
        folder = cwd / danger.folder
        lost = _lost(danger, folder, root, config.remedies.allowed_folders if config is not None else ())
        if lost:
            seen = f" ({lost})" if danger.stake != "always" else ""
            return f"{danger.what[0].upper()}{danger.what[1:]}{seen}. {danger.instead}"
    return ""


def configured(root: Path) -> "Config | None":
    """Return the configuration; where it says nothing that a hook asks for, nothing heavy is loaded."""
    if not concerned(str(root)):
        return None
    from unstuck.config_file import read_config  # noqa: PLC0415  # only with such a configuration

    return read_config(root)


def _protected(paths: Sequence[str], cwd: Path, root: Path, patterns: Sequence[str]) -> str:
    for path in paths if patterns else ():
        try:
            inside = (cwd / path).resolve().relative_to(root.resolve())
        except (ValueError, OSError):
            continue
        for pattern in patterns:
            if fnmatch.fnmatch(str(inside), pattern) or str(inside).startswith(f"{pattern.rstrip('/')}/"):
                return str(inside)
    return ""


def _lost(danger: Danger, folder: Path, root: Path, allowed: Sequence[str]) -> str:
    """Name what would be lost; nothing if nothing would."""
    match danger.stake:
        case "always":
            return "always"
        case "outside" | "beyond":
            return _outside(danger, folder, root, allowed)
        case "changes":
            paths = danger.paths if danger.paths != (".",) else ()
            return _named(_git(folder, "status", "--porcelain", "--untracked-files=no", "--", *paths), "changed")
        case "untracked":
            return _named(_git(folder, "status", "--porcelain", "--", *danger.paths), "not in git", "??")
        case "ignored":
            return _named(
                _git(folder, "status", "--porcelain", "--ignored", "--", *danger.paths), "not in git", "??", "!!"
            )
        case "stashes":
            return _named(_git(folder, "stash", "list"), "stashed")
        case "commits":
            return next((f"{name} has them" for name in danger.paths if _alone(folder, name)), "")


def _named(listed: str, how: str, *marks: str) -> str:
    lines = [line for line in listed.splitlines() if not marks or line.startswith(marks)]
    more = f" and {len(lines) - FEW} more" if len(lines) > FEW else ""
    return f"{how}: {', '.join(one_line(line, 80) for line in lines[:FEW])}{more}" if lines else ""


def _alone(folder: Path, branch: str) -> bool:
    others = (f"--exclude={branch}", "--branches", "--remotes", "--tags")
    return bool(_git(folder, "rev-list", "-1", branch, "--not", *others))


def _outside(danger: Danger, folder: Path, root: Path, allowed: Sequence[str]) -> str:
    """Name the first path that lies outside of the workspace, or holds all of it."""
    home = root.resolve()
    roots = [home, *(Path(one).resolve() for one in allowed)]
    for path in danger.paths:
        start = literal(path)
        if start is None:
            continue  # only the shell knows where it leads
        try:
            place = (folder / start).resolve()
            part = start != path and path.rpartition("/")[2] not in EVERYTHING
            own = place == home and (part or danger.stake == "beyond")
            whole = place == home or place in home.parents or place == home / ".git"
            inside = any(place.is_relative_to(one) for one in roots) or _of_no_value(place)
            if (whole and not own) or not inside:
                return str(place)
        except (OSError, ValueError):
            continue
    return ""


def _of_no_value(place: Path) -> bool:
    """Whether it is a scratch folder as `mktemp` and its like make them, or a scratch name that is free."""
    scratch = Path(tempfile.gettempdir()).resolve()
    inside = place.relative_to(scratch).parts if place.is_relative_to(scratch) else ()
    made = bool(inside) and any(fnmatch.fnmatch(inside[0], shape) for shape in ("tmp.*", "tmp????????"))
    return made or (len(inside) == 1 and not os.path.lexists(place))


def _git(folder: Path, *words: str) -> str:
    import subprocess  # noqa: PLC0415  # only where something is at stake

    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *words],
            cwd=folder,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").rstrip() if done.returncode == 0 else ""
