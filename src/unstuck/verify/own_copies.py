"""Edge: Let a check see the tree that it is asked about, where another copy of the project is installed on this machine.

Law: what an editable installation finds in the checkout or in another slot, a check finds in its own folder first.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from unstuck.verify.check_cache import tools

PYTHON = "python python3 pytest"
"""What runs in a check that names none of them, as below `make`."""
SYSTEM = Path("/usr/local")
_QUOTED = re.compile(r"['\"](/[^'\"\n]+)['\"]")


def own_first(line: str, folder: Path, root: Path) -> dict[str, str]:
    """Return the variables that put a folder's own packages before those that are found in other copies of it."""
    copies = [copy.resolve() for copy in (root, *folder.parent.glob(f"{folder.name[:1]}*")) if copy != folder]
    given = os.environ.get("PYTHONPATH", "")
    leads = [*map(Path, filter(os.path.isabs, given.split(os.pathsep))), *_editable(line, folder)]
    places = [Path(os.path.realpath(lead)) for lead in leads]
    own = [folder / place.relative_to(copy) for place in places for copy in copies if place.is_relative_to(copy)]
    if not own:
        return {}
    return {"PYTHONPATH": os.pathsep.join([*dict.fromkeys(map(str, own)), *([given] if given else [])])}


def _editable(line: str, folder: Path) -> Iterator[Path]:
    """Yield the folders elsewhere that the installations of a line's programs take modules from."""
    found = [*tools(f"{line} {PYTHON}", folder)]
    for top in (SYSTEM, Path.home() / ".local"):
        found += top.glob("lib/python*/*-packages")
    for packages in dict.fromkeys(place for place in found if place.name.endswith("-packages")):
        for file in packages.iterdir() if packages.is_dir() else ():
            text = _text(file) if file.name.endswith((".pth", ".egg-link")) or _is_finder(file) else ""
            named = [Path(one).parent for one in _QUOTED.findall(text)] if _is_finder(file) else []
            named += [Path(one.strip()) for one in text.splitlines() if one.startswith("/")]
            yield from (one for one in named if not one.is_relative_to(packages.parents[2]))


def _is_finder(file: Path) -> bool:
    return file.name.startswith("__editable__") and file.suffix == ".py"


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
