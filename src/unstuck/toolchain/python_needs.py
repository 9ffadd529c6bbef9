"""Read which extras, dependency groups and requirement files the checks of a Python project need."""

import ast
import configparser
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.toolchain.toolchains import Setup, Signs, Toolchain

VENVS = (".venv", "venv")
NOT_OWN_FOLDERS = frozenset({"node_modules", "vendor", "target", "build", "dist", "examples", "docs", "venv"})
"""Folders with installed, built and example files."""
_REQUIREMENT_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_INCLUDED_FILE = re.compile(r"^\s*-r\s*(\S+)", re.MULTILINE)
_OWN_EXTRAS = re.compile(r"^\s*([\w.-]+)\[([\w.,\s-]+)\]\s*$")
_MOST_NESTED_GROUPS = 5

Requirements = Mapping[str, tuple[str, ...]]
"""Requirements by the name of the extra, the group or the file that lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonNeeds:
    """The extras, groups and requirement files to install for the checks."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    packages: frozenset[str] = frozenset()
    """Names of the packages that these list; their own requirements are not known."""

    def names(self, tool: str) -> bool:
        """Return whether a tool or one of its plug-ins is listed."""
        return any(name == tool or name.startswith(f"{tool}-") for name in self.packages)

    def install_command(self, setup: Setup) -> str:
        extras_in_project = setup.extra == "[]"
        project = f".[{','.join(self.extras)}]" if self.extras and extras_in_project else "."
        line = setup.line.format(
            project=shlex.quote(project),
            extras="" if extras_in_project else "".join(setup.extra.format(name) for name in self.extras),
            groups="".join(setup.group.format(name) for name in self.groups) if setup.group else "",
            files="".join(setup.each.format(shlex.quote(name)) for name in self.files),
        )
        # pip knows groups since 25.1, and a new venv may hold an older pip.
        needs_newer_pip = self.groups and setup.manager == "pip" and "{groups}" in setup.line
        upgrade = " install -q -U pip && .venv/bin/python -m pip install -q"
        return line.replace(" install -q", upgrade, 1) if needs_newer_pip else line


def python_needs(root: Path, chain: Toolchain, manager: str = "") -> PythonNeeds:
    """Return what the project names for its checks, as far as its package manager can install it."""
    pyproject = _toml(root / "pyproject.toml")
    extras = _pyproject_extras(pyproject) | _setup_cfg_extras(root) | _setup_py_extras(root)
    groups = _groups(pyproject, manager)
    files = _requirement_files(root, chain)
    chosen_extras, chosen_groups = _chosen(extras, chain), _chosen(groups, chain)
    poetry = _table(_table(_table(pyproject.get("tool")).get("poetry")).get("dependencies"))
    requirements = [*_strings(_table(pyproject.get("project")).get("dependencies")), *poetry]
    requirements += [requirement for name in chosen_extras for requirement in extras[name]]
    requirements += [requirement for name in chosen_groups for requirement in groups[name]]
    requirements += [requirement for lines in files.values() for requirement in lines]
    return PythonNeeds(
        extras=chosen_extras,
        groups=chosen_groups,
        files=tuple(files),
        packages=frozenset(map(_package_name, requirements)),
    )


def _chosen(requirements: Requirements, chain: Toolchain) -> tuple[str, ...]:
    """Return the extras or groups whose names say that they are for checking, else for developing."""
    names = {name.lower().replace("_", "-"): name for name in requirements}
    checking = [names[name] for name in (*chain.checking, *chain.linting) if name in names]
    return tuple(checking or [names[name] for name in chain.developing if name in names])


def _pyproject_extras(pyproject: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    project = _table(pyproject.get("project"))
    poetry = _table(_table(pyproject.get("tool")).get("poetry"))
    tables = {**_table(project.get("optional-dependencies")), **_table(poetry.get("extras"))}
    extras = {name: _strings(value) for name, value in tables.items()}
    own_name = _package_name(str(project.get("name", "")))
    return {name: tuple(_with_own_extras(lines, extras, own_name)) for name, lines in extras.items()}


def _with_own_extras(requirements: tuple[str, ...], extras: Requirements, own_name: str) -> Iterator[str]:
    """Yield requirements, with the lists of the project's own extras in place of their names."""
    for requirement in requirements:
        match = _OWN_EXTRAS.match(requirement)
        if match is None or not own_name or _package_name(match[1]) != own_name:
            yield requirement
            continue
        for name in match[2].split(","):
            yield from extras.get(name.strip(), ())


def _setup_cfg_extras(root: Path) -> dict[str, tuple[str, ...]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text_of(root / "setup.cfg"))
    except configparser.Error:
        return {}
    section = "options.extras_require"
    extras = dict(parser[section]) if section in parser else {}
    return {name: tuple(filter(None, map(str.strip, value.splitlines()))) for name, value in extras.items()}


def _setup_py_extras(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the literal `extras_require` of `setup(…)` without running the file."""
    try:
        tree = ast.parse(text_of(root / "setup.py"))
    except (SyntaxError, ValueError):
        return {}
    keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "extras_require"]
    try:
        extras = ast.literal_eval(keywords[0].value) if keywords else {}
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return {}
    return {str(name): _strings(value) for name, value in _table(extras).items()}


def _groups(pyproject: Mapping[str, Any], manager: str) -> dict[str, tuple[str, ...]]:
    """Return the dependency groups that the package manager can install."""
    groups = {name: tuple(_group_lines(pyproject, name)) for name in _table(pyproject.get("dependency-groups"))}
    tool = _table(_table(pyproject.get("tool")).get(manager))
    if manager == "pdm":
        groups |= {name: _strings(value) for name, value in _table(tool.get("dev-dependencies")).items()}
    if manager == "poetry":
        tables = {name: _table(group).get("dependencies") for name, group in _table(tool.get("group")).items()}
        tables |= {"dev": tool["dev-dependencies"]} if "dev-dependencies" in tool else {}
        groups |= {name: tuple(_table(table)) for name, table in tables.items()}
    return groups


def _group_lines(pyproject: Mapping[str, Any], name: str, depth: int = _MOST_NESTED_GROUPS) -> Iterator[str]:
    entries = _table(pyproject.get("dependency-groups")).get(name)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict) and depth:
            yield from _group_lines(pyproject, str(entry.get("include-group")), depth - 1)


def _requirement_files(root: Path, chain: Toolchain) -> dict[str, tuple[str, ...]]:
    """Return the requirement files to install: the plain one, then those for checking, else for developing."""
    plain = [name for name in chain.requirements if "{}" not in name]
    patterns = [pattern for pattern in chain.requirements if "{}" in pattern]
    checking = [pattern.format(word) for word in (*chain.checking, *chain.linting) for pattern in patterns]
    developing = [pattern.format(word) for word in chain.developing for pattern in patterns]
    names = [*_existing(root, plain), *(_existing(root, checking) or _existing(root, developing))]
    return {name: tuple(_requirement_lines(root / name)) for name in names}


def _existing(root: Path, names: list[str]) -> list[str]:
    return [name for name in names if (root / name).is_file()]


def _requirement_lines(path: Path) -> Iterator[str]:
    """Yield the requirements of a file and of the files that it includes."""
    text = text_of(path)
    texts = [text, *(text_of(path.parent / name) for name in _INCLUDED_FILE.findall(text))]
    lines = [line for part in texts for line in part.splitlines()]
    return filter(_REQUIREMENT_NAME.match, lines)


def _package_name(requirement: str) -> str:
    match = _REQUIREMENT_NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else ""


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError:
        return {}


def text_of(path: Path) -> str:
    """Return the text of a file, or an empty string if it cannot be read."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def project_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files that match a pattern, without installed, built and example files."""
    *above, last = pattern.split("/")
    folders = [folder]
    for part in above:
        inside = [path for outer in folders for path in sorted(outer.glob(part)) if path.is_dir()]
        folders = [path for path in inside if path.name == part or _is_own(path.name)]
    return [path for outer in folders for path in sorted(outer.glob(last)) if path.is_file()]


def _is_own(name: str) -> bool:
    return not name.startswith(".") and name not in NOT_OWN_FOLDERS


def has_sign(folder: Path, signs: Signs) -> bool:
    """Return whether one of the files exists and matches its regular expression."""
    return any(
        not pattern or re.search(pattern, text_of(path), re.MULTILINE) is not None
        for name, pattern in signs
        for path in project_files(folder, name)
    )
