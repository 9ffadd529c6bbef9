"""Edge: Open the door of a room: its public names stand in `__init__.pyi`, and each is loaded when it is first asked for.

Type checkers and people read that file; at run time nobody who needs one name of a room loads the others.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def door(room: str) -> Callable[[str], Any]:
    """Return what a room's `__getattr__` is: it finds a public name in the module that the door names."""
    where: dict[str, str] = {}

    def named(name: str) -> Any:
        if not where:
            where.update(public_names(Path(sys.modules[room].__path__[0])))
        if name not in where:
            raise AttributeError(f"module {room!r} has no public name {name!r}")
        value = getattr(import_module(where[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    return named


def public_names(folder: Path) -> dict[str, str]:
    """Read a door: each public name with the module that it is from. Its lines have one form, `from M import A as A`."""
    found: dict[str, str] = {}
    module = ""
    for line in (folder / "__init__.pyi").read_text(encoding="utf-8").splitlines():
        words = line.translate({ord(sign): " " for sign in "(),"}).split()
        if words[:1] == ["from"]:
            module, words = words[1], words[3:]
        found.update(dict.fromkeys(words[::3], module))
    return found
