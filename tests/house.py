"""What the laws of the house measure: which modules there are, what they touch, and whom they use."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from unstuck.shipped import shipped_table

ROOT = Path(__file__).parents[1] / "src" / "unstuck"
SOURCE = ROOT.parent
WORLD = frozenset(
    (
        *("os", "subprocess", "sqlite3", "socket", "threading", "time", "random", "shutil", "tempfile", "signal"),
        *("fcntl", "select", "selectors", "secrets", "concurrent", "http", "queue", "resource", "platform", "uuid"),
        *("psycopg", "glob", "ctypes", "asyncio", "click", "rich", "urllib.request", "sys", "mmap", "pty", "termios"),
    )
)
"""Modules that reach the world; whoever imports one is an edge."""
TOUCHES = frozenset(
    (
        *("read_text", "write_text", "read_bytes", "write_bytes", "iterdir", "rglob", "is_file", "is_dir", "mkdir"),
        *("unlink", "lstat", "is_symlink", "symlink_to", "hardlink_to", "touch"),
    )
)
"""Methods of paths that reach the disk and mean nothing else."""
NEUTRAL = frozenset({"unstuck", "unstuck.shipped", "unstuck.__main__"})
"""The package itself and its shipped data: they are the same at every reading."""
SCRIPTS = {"unstuck.process.shim", "unstuck.agents.scripted_agent"}
"""Run as a program of its own, so that nothing of the package is loaded around an agent."""
GROUND = ("git", "process", "kit")
"""Rooms that every edge above may stand on: git's commands, processes and our files, and the kit of a run."""


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    text: str

    @classmethod
    def of(cls, name: str, text: str) -> "Module":
        return cls(name, Path(), text)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        """The folder it stands in; modules at the top have none."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 2 or (ROOT / parts[-1]).is_dir() else ""  # unstuck.room.module

    @cached_property
    def touches(self) -> set[str]:
        """What of the world it reaches by itself."""
        found = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {
                    alias.name for alias in node.names if alias.name.split(".")[0] in WORLD or alias.name in WORLD
                }
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module} & WORLD or ({node.module} if node.module.split(".")[0] in WORLD else set())
            elif isinstance(node, ast.Attribute) and node.attr in TOUCHES:
                found.add(f".{node.attr}")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
                found.add("open")
        return found

    @cached_property
    def uses(self) -> set["Module"]:
        """The modules whose names it imports."""
        found = set()
        only_types = {
            id(inner)
            for node in self.nodes
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for statement in node.body
            for inner in ast.walk(statement)
        }
        for node in self.nodes:
            if (
                isinstance(node, ast.ImportFrom)
                and id(node) not in only_types
                and (node.module or "").startswith("unstuck")
            ):
                for alias in node.names:
                    target = _behind(node.module or "", alias.name)
                    if target in MODULES and target != self.name and target not in NEUTRAL:
                        found.add(MODULES[target])
        return found

    @property
    def is_edge(self) -> bool:
        return self.name in edges()

    def __hash__(self) -> int:
        return hash(self.name)


def _behind(module: str, name: str) -> str:
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else module


def _modules() -> dict[str, Module]:
    found: dict[str, Module] = {}
    for path in sorted(ROOT.rglob("*.py")):
        if "catalog" not in path.parts:
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            found[name] = Module(name, path, path.read_text(encoding="utf-8"))
    return found


MODULES = _modules()


@cache
def edges() -> frozenset[str]:
    """Modules that touch the world, and those that use one of them; asked for by tests, not while they are collected."""
    found = {name for name, module in MODULES.items() if module.touches and name not in NEUTRAL}
    while more := {
        name
        for name, module in MODULES.items()
        if name not in found and name not in NEUTRAL and any(used.name in found for used in module.uses)
    }:
        found |= more
    return frozenset(found)


def _says_edge(module: Module) -> bool:
    return (ast.get_docstring(module.tree) or "").startswith("Edge: ")


def edges_without_the_word() -> list[str]:
    return [name for name in sorted(edges()) if not _says_edge(MODULES[name])]


def words_without_an_edge() -> list[str]:
    return [name for name, module in MODULES.items() if _says_edge(module) and name not in edges() | NEUTRAL]


def callers() -> list[str]:
    """Public functions and classes that nobody in the package names but their own definition."""
    words = Counter(word for module in MODULES.values() for word in re.findall(r"\w+", module.text))
    words.update(way for ways in shipped_table("chains")["filled_by"].values() for way in ways.split())
    return [
        node.name
        for module in MODULES.values()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_") and words[node.name] == 1
    ]


def up_to_date(page: str) -> str:
    """Return the page about the architecture with its figures as they are now."""
    return re.sub(
        r"`([\w/]+\.py)` \(\d+ lines\)", lambda found: f"`{found[1]}` ({_lines(ROOT / found[1])} lines)", page
    )


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())
