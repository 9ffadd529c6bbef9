"""Find out whether a failing test run lacks a module, an unwritten file, or only the right behaviour."""

import re
from collections.abc import Container, Iterable
from typing import Literal

RELATIVE = re.compile(r"^(?:\.{1,2}(?:/|\w|$)|/|~/|@/|#/|crate::|self::|super::)")
"""Names that can only mean a file of the project."""
SEPARATOR = re.compile(r"::|[./\\]")
ENDING = re.compile(r"(?:\.d)?\.\w{1,6}$")
NAMED = re.compile(r"""['"`](?P<quoted>[^'"`\s]+)['"`]|(?P<joined>[^\s'"`]*[\w][./:\\][^\s'"`]*)""")
"""Names in a line: they are quoted, or contain a sign of a path."""
WHOLE_FOLDER = frozenset({"__init__", "__main__", "index", "mod", "lib", "main"})
"""Files that stand for their folder."""
ROOTS = frozenset({"src", "lib", "app", "apps", "packages", "python", "source", "crates", "internal", "pkg", "cmd",
                   "test", "tests", "spec", "backend", "frontend", "server", "client"})  # fmt: skip
"""Folders under which modules are named without them."""
FOREIGN = frozenset({"node_modules", "site-packages", "vendor", "third_party", ".venv", "venv", "target", "dist"})
SOURCES = frozenset({"py", "pyi", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "go", "rs", "rb",
                     "php", "java", "kt", "scala", "ex", "exs", "lua", "c", "h", "cpp", "hpp", "cs", "swift", "ml", "hs"})  # fmt: skip


def is_own_module(name: str, files: Iterable[str], paths: Iterable[str]) -> bool:
    """Return whether a missing module belongs to the project, by the files of the task and the repository."""
    name = name.strip("'\"` ")
    if RELATIVE.match(name):
        return True
    parts = tuple(part for part in SEPARATOR.split(ENDING.sub("", name) if "/" in name else name) if part)
    if not parts or name.startswith("@"):
        return False
    return any(_contains(_module(path), parts) for path in files if _is_source(path)) or any(
        _at_root(_module(path), parts) for path in paths if _is_source(path)
    )


def is_unwritten(line: str, files: Iterable[str], paths: Container[str]) -> bool:
    """Return whether a line names a file of the task that does not exist yet."""
    stems = {_module(path)[-1] for path in files if path not in paths and _module(path)}
    words = (match[match.lastgroup or 0] for match in NAMED.finditer(line))
    return any(not stems.isdisjoint(SEPARATOR.split(word.strip(":,;()"))[-2:]) for word in words)


def _is_source(path: str) -> bool:
    return path.rpartition(".")[2].lower() in SOURCES and FOREIGN.isdisjoint(path.split("/"))


def _module(path: str) -> tuple[str, ...]:
    """Return a file as the parts of a module's name."""
    parts = tuple(part for part in ENDING.sub("", path.replace("\\", "/")).split("/") if part not in {"", "."})
    return parts[:-1] if len(parts) > 1 and parts[-1] in WHOLE_FOLDER else parts


def _contains(module: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Return whether the task writes the module, a part of it, or its package."""
    names = (parts, parts[-2:]) if len(parts) > 1 else (parts,)  # Go writes a host before the folder
    runs = {module[start : start + len(name)] for name in names for start in range(len(module))}
    return not runs.isdisjoint(names) or _at_root(module, parts)


def _at_root(module: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Return whether the first part of the name exists at a root of the sources."""
    start = 0
    while start < len(module) - 1 and module[start] in ROOTS and module[start] != parts[0]:
        start += 1
    return module[start : start + 1] == parts[:1] or _below_package(module, parts, start)


def _below_package(module: tuple[str, ...], parts: tuple[str, ...], start: int) -> bool:
    """Return whether the module is in a package of a workspace: packages/<name>/src/<parts>."""
    return (
        start > 0
        and module[start + 1 : start + 2] in {("src",), ("lib",)}
        and module[start + 2 : start + 3] == parts[:1]
    )


Reason = Literal["asserted", "missing", "mistaken"]

_MISTAKEN = re.compile(
    r"\bSyntaxError\b|\bIndentationError\b|\bTabError\b|Transform failed|Unexpected token|fixture '[^'\n]*' not found"
    r"|no tests ran|no tests? found|not found: \S+::|unrecognized arguments|ERR_MODULE_NOT_FOUND.*node_modules"
)
_ASSERTED = re.compile(
    r"\bAssertionError\b|^E +assert\b|ERR_ASSERTION|\bexpect\(|\bExpected\b(?:.*\n)?.*\bReceived\b|- assert\b|Failed: DID NOT RAISE"
    r"|\bassertion .*failed|--- FAIL:",
    re.MULTILINE,
)
_MISSING_NAME = re.compile(
    r"cannot import name '[\w.]+'|No module named '(?P<module>[\w.]+)'|has no attribute '\w+'|name '\w+' is not defined"
    r"|Cannot find module '(?P<file>[^'\n]+)'|[\w.] is not a function|\w is not defined"
    r"|does not provide an export named '\w+'|NotImplementedError"
)
"""Every missing name in an output. A diagnosis has only the decisive one, which may not be the one in the plan."""


def reason(output: str, expected: Iterable[str] = ()) -> Reason:
    """Return why a test run failed. A missing module is missing work only if an `expected` text names it."""
    if _MISTAKEN.search(output):
        return "mistaken"
    if _ASSERTED.search(output):
        return "asserted"
    expected_text = "\n".join(expected)
    for match in _MISSING_NAME.finditer(output):
        module = match["module"] or match["file"]
        if module is None or re.search(rf"\b{re.escape(_stem(module))}\b", expected_text):
            return "missing"
    return "mistaken"


def _stem(module: str) -> str:
    """Return the last part of a module's name, without folders and ending."""
    last = module.rstrip("/").rpartition("/")[2]
    return last.split(".")[0] if "/" in module else last.rpartition(".")[2]
