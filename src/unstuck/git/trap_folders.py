"""Edge: Find folders that must not be copied or linked, because what they hold leads back into the user's checkout."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """A folder that would make a worktree use the user's checkout instead of itself, and what to do instead."""

    name: str
    message: str

    @property
    def suggestion(self) -> str:
        return "Make it anew instead, by a `setup` in `[workspace]`: `unstuck init --force` proposes one."


def traps(root: Path, names: Sequence[str], *, linked: bool = False) -> tuple[Trap, ...]:
    """List those of the folders that are traps when copied, or when `linked`."""
    return tuple(trap for name in names for trap in (_venv(root, name), _modules(root, name, linked=linked)) if trap)


def _venv(root: Path, name: str) -> Trap | None:
    """Look for an editable install: it names the user's checkout by its full path, wherever the venv stands."""
    venv = root / name
    if not (venv / "pyvenv.cfg").is_file():
        return None
    for packages in (*venv.glob("lib/python*/site-packages"), *venv.glob("Lib/site-packages")):
        for path in sorted(packages.iterdir()):
            if _leads_back(path, root, venv):
                return Trap(
                    name=name,
                    message=f"{name} cannot be placed: {path.name} in it installs the project from {root}, so tests would import your checkout.",
                )
    return None


def _leads_back(path: Path, root: Path, venv: Path) -> bool:
    """Tell whether a file of site-packages points into the checkout, the venv itself aside."""
    if path.name.endswith((".pth", ".egg-link")):
        return any(_is_in_checkout(line.strip(), root, venv) for line in _text(path).splitlines())
    if path.name.startswith("__editable__"):
        return any(str(place) in _text(path) for place in {root, root.resolve()})
    if path.name.endswith(".dist-info"):
        return _is_editable(_text(path / "direct_url.json"), root, venv)
    return False


def _is_in_checkout(text: str, root: Path, venv: Path) -> bool:
    if not text.startswith("/"):
        return False
    goal = Path(os.path.realpath(text))
    return goal.is_relative_to(root.resolve()) and not goal.is_relative_to(venv.resolve())


def _is_editable(direct_url: str, root: Path, venv: Path) -> bool:
    try:
        origin = json.loads(direct_url)
        editable = origin["dir_info"]["editable"]
        return bool(editable) and _is_in_checkout(origin["url"].removeprefix("file://"), root, venv)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _modules(root: Path, name: str, *, linked: bool) -> Trap | None:
    """Look for workspace links to the project's own packages. A relative one is right in a copy, wrong through a link."""
    if Path(name).name != "node_modules":
        return None
    modules = root / name
    for link in _links(modules):
        text = os.readlink(link)  # noqa: PTH115 - as written, not as a path
        goal = Path(os.path.normpath(link.parent / text))
        if any(_leads_out(goal, place, name, full=linked or text.startswith("/")) for place in (root, root.resolve())):
            return Trap(
                name=name,
                message=f"{name} cannot be placed: {link.relative_to(modules)} in it is a link to {goal}, so code would load your checkout.",
            )
    return None


def _leads_out(goal: Path, root: Path, name: str, *, full: bool) -> bool:
    return full and goal.is_relative_to(root) and not goal.is_relative_to(root / name)


def _links(modules: Path) -> Iterator[Path]:
    for folder in (modules, *modules.glob("@*"), modules / ".pnpm" / "node_modules"):
        entries = sorted(folder.iterdir()) if folder.is_dir() else ()
        yield from (entry for entry in entries if entry.is_symlink())


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
