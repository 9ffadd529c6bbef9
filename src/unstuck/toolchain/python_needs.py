"""Edge: Find out what a Python project's checks need: extras, dependency groups, requirement files, and tools named elsewhere."""

import ast
import configparser
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.toolchain.command_roles import listed
from unstuck.toolchain.toolchains import Setup, Signs, Toolchain

VENVS = (".venv", "venv")
_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_OWN_EXTRAS = re.compile(r"^\s*[\w.-]+\[([\w.,\s-]+)\]\s*$")
_PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]+\])?(?:\s*[<>=!~]=?[\w.*,<>=!~ ]*)?")
"""A requirement that means the same to everybody: no variable of tox's, no option, no address."""
_CARET = re.compile(r"([\^~])\s*(\d+(?:\.\d+)*)")
"""How poetry says "from here on, and compatible"."""
_INCLUDE = re.compile(r"^\s*-r\s*(\S+)", re.MULTILINE)
_TOX_FILE = re.compile(r"-r\s*(?:\{toxinidir\}/)?([\w./-]+)")
_TOX_FACTOR = re.compile(r"^[\w{},.!-]+:\s+")

Listed = Mapping[str, tuple[str, ...]]
"""Requirements by the name of the extra, the group or the file that holds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What is installed for the checks."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    """Requirements that this installer does not read: in the settings of tox, hatch and poetry, or only imported."""
    declared: frozenset[str] = frozenset()
    """The names of all packages that this names; what they need themselves is not known."""

    def names(self, tool: str) -> bool:
        """Whether a tool is among them, or comes along with a plug-in of its own."""
        return any(name == tool or name.startswith(f"{tool}-") for name in self.declared)

    def line(self, row: Setup) -> str:
        """Return the command that installs them."""
        together = row.extra == "[]"
        project = shlex.quote(f".[{','.join(self.extras)}]" if self.extras and together else ".")
        line = row.line.format(
            project=project,
            extras="" if together else "".join(row.extra.format(name) for name in self.extras),
            groups="".join(row.group.format(name) for name in self.groups) if row.group else "",
            files="".join(row.each.format(shlex.quote(name)) for name in self.files)
            + "".join(f" {shlex.quote(one)}" for one in self.loose),
        )
        # Groups are known to pip since 25.1, and a new venv may hold an older one.
        groups = self.groups and row.manager == "pip" and "{groups}" in row.line
        newer = " install -q -U pip && .venv/bin/python -m pip install -q"
        return line.replace(" install -q", newer, 1) if groups else line


def python_needs(root: Path, chain: Toolchain, manager: str = "") -> Needs:
    """Look at everything in which a project names what it is developed with; the user's venv says what is in use."""
    document = _toml(root / "pyproject.toml")
    setup_cfg, own = _ini(root / "setup.cfg"), _setup_call(root / "setup.py")
    extras = {
        **_extras(document),
        **_listed(setup_cfg, "options.extras_require"),
        **_literal(own.get("extras_require")),
    }
    own_groups, files = _groups(document), dict(_files(root, chain))
    groups = {name: held for of in ("", manager) for name, held in own_groups.get(of, {}).items()}
    foreign = {name: held for of in own_groups.keys() - {"", manager} for name, held in own_groups[of].items()}
    installed = _installed(root)
    chosen = [_chosen(part, chain, installed) for part in (extras, groups)]
    base = _requirements(document.get("project", {}).get("dependencies"))
    poetry = document.get("tool", {}).get("poetry", {}).get("dependencies", {})
    kept = [name for name in files if "{}" not in name]
    apart = [one for name in _chosen(foreign, chain, installed) for one in foreign[name]]
    written = (
        *_hatch(document, chain),
        *_tox(root),
        *filter(_PLAIN.fullmatch, _requirements(_value(own.get("tests_require")))),
        *apart,
    )
    imported = [one for one in _imported(root, chain) if one not in map(_name, written)]
    loose = tuple(dict.fromkeys((*written, *imported)))
    named = [one for part, names in zip((extras, groups), chosen, strict=True) for name in names for one in part[name]]
    inside = [one for name in kept for one in files[name]]
    declared = frozenset(map(_name, (*base, *poetry, *named, *inside, *loose)))
    more = tuple(one for one in loose if _name(one) not in {_name(other) for other in (*base, *named, *inside)})
    return Needs(extras=chosen[0], groups=chosen[1], files=tuple(kept), loose=more, declared=declared)


def _chosen(listed: Listed, chain: Toolchain, installed: frozenset[str]) -> tuple[str, ...]:
    """Choose the extras or groups in use: by what is installed, else those whose names say that they are for checking."""
    if installed:
        used = [name for name, held in listed.items() if held and {_name(one) for one in held} <= installed]
        if used:
            return tuple(used)
    known = {name.lower().replace("_", "-"): name for name in listed}
    found = [known[name] for name in (*chain.checking, *chain.linting) if name in known]
    return tuple(found or [known[name] for name in chain.developing if name in known])


def _installed(root: Path) -> frozenset[str]:
    """Name the packages in the user's own venv."""
    folders = [path for name in VENVS for path in (root / name).glob("lib/python*/site-packages")]
    return frozenset(_name(path.name.split("-")[0]) for folder in folders for path in folder.glob("*.dist-info"))


def _extras(document: Mapping[str, Any]) -> Listed:
    project = document.get("project", {})
    listed = {name: _requirements(held) for name, held in _table(project.get("optional-dependencies")).items()}
    poetry = _table(document.get("tool", {}).get("poetry", {}).get("extras"))
    listed |= {name: _requirements(held) for name, held in poetry.items()}
    own = str(project.get("name", ""))
    return {name: tuple(_spread(held, listed, own)) for name, held in listed.items()}


def _spread(held: Iterable[str], listed: Listed, own: str) -> Iterator[str]:
    """Follow an extra that names other extras of the project itself."""
    for one in held:
        inner = _OWN_EXTRAS.match(one)
        if inner and own and _name(one) == _name(own):
            yield from (other for name in inner[1].split(",") for other in listed.get(name.strip(), ()))
        else:
            yield one


def _groups(document: Mapping[str, Any]) -> Mapping[str, Listed]:
    """Return the groups by who can install them: everybody, or only the tool in whose settings they stand."""
    tool = document.get("tool", {})
    poetry, pdm = _table(tool.get("poetry")), _table(tool.get("pdm"))
    tables = {name: _table(group).get("dependencies") for name, group in _table(poetry.get("group")).items()}
    tables |= {"dev": poetry["dev-dependencies"]} if "dev-dependencies" in poetry else {}
    return {
        "": {name: tuple(_grouped(document, name)) for name in _table(document.get("dependency-groups"))},
        "pdm": {name: _requirements(held) for name, held in _table(pdm.get("dev-dependencies")).items()},
        "poetry": {name: tuple(_poetry(_table(table))) for name, table in tables.items()},
    }


def _poetry(table: Mapping[str, Any]) -> Iterator[str]:
    """Say poetry's requirements in everybody's words; one that cannot be said is asked for by its name."""
    for name, value in table.items():
        version = str(value.get("version", "") if isinstance(value, dict) else value).strip("* ")
        if (kept := _CARET.fullmatch(version)) is not None:
            numbers = [int(part) for part in kept[2].split(".")]
            first = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
            last = first if kept[1] == "^" else min(1, len(numbers) - 1)
            beyond = ".".join(map(str, (*numbers[:last], numbers[last] + 1)))
            version = f">={kept[2]},<{beyond}"
        whole = f"{name}{version}"
        yield whole if _PLAIN.fullmatch(whole) else name


def _imported(root: Path, chain: Toolchain) -> Iterator[str]:
    """Yield the runners that tests are written for, though nothing may name them as needed."""
    for gate in chain.gate:
        inside = [sign for sign in gate.shown_by if sign[0] in chain.tests]
        if gate.kind == "test" and gate.needs and shows(root, inside):
            yield gate.needs


def _grouped(document: Mapping[str, Any], name: str, depth: int = 5) -> Iterator[str]:
    held = _table(document.get("dependency-groups")).get(name)
    for one in held if isinstance(held, list) else ():
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict) and depth:
            yield from _grouped(document, str(one.get("include-group")), depth - 1)


def _files(root: Path, chain: Toolchain) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the requirement files to install: the plain one, then those for checking, else those of tox, or for developing."""
    plain = [pattern for pattern in chain.requirements if "{}" not in pattern]
    patterns = [pattern for pattern in chain.requirements if "{}" in pattern]
    there = [name for name in plain if (root / name).is_file()]
    named = [
        [pattern.format(word) for word in words for pattern in patterns if (root / pattern.format(word)).is_file()]
        for words in ((*chain.checking, *chain.linting), chain.developing)
    ]
    in_tox = [found[1] for line in _tox_lines(root) if (found := _TOX_FILE.fullmatch(line))]
    there += next(filter(None, (named[0], [name for name in in_tox if (root / name).is_file()], named[1])), [])
    for name in there:
        text = text_of(root / name)
        more = [text_of((root / name).parent / inner) for inner in _INCLUDE.findall(text)]
        yield name, tuple(one for part in (text, *more) for one in part.splitlines() if _NAME.match(one))


def _hatch(document: Mapping[str, Any], chain: Toolchain) -> Iterator[str]:
    wanted = {"default", "hatch-test", *chain.checking, *chain.linting}
    for name, env in _table(_table(document.get("tool", {}).get("hatch")).get("envs")).items():
        if name in wanted:
            held = [_table(env).get(key) for key in ("dependencies", "extra-dependencies")]
            yield from (one for some in held for one in _requirements(some) if _PLAIN.fullmatch(one))


def _tox(root: Path) -> Iterator[str]:
    """Yield what tox's main environment installs by plain names."""
    return (line for line in _tox_lines(root) if not _TOX_FACTOR.match(line) and _PLAIN.fullmatch(line))


def _tox_lines(root: Path) -> list[str]:
    return [line.strip() for line in _ini(root / "tox.ini").get("testenv", {}).get("deps", "").splitlines()]


def _setup_call(path: Path) -> Mapping[str, ast.expr]:
    """Return the arguments of `setup(…)`, unread; nothing of it is run."""
    try:
        tree = ast.parse(text_of(path))
    except (SyntaxError, ValueError):
        return {}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) == "setup"]
    return {word.arg: word.value for call in named for word in call.keywords if word.arg}


def _literal(node: ast.expr | None) -> Listed:
    found = _value(node)
    return {str(name): _requirements(held) for name, held in found.items()} if isinstance(found, dict) else {}


def _value(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None


def _listed(sections: Mapping[str, Mapping[str, str]], name: str) -> Listed:
    held = sections.get(name, {})
    return {key: tuple(line.strip() for line in value.splitlines() if line.strip()) for key, value in held.items()}


def _requirements(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else ()


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError:
        return {}


def _ini(path: Path) -> Mapping[str, Mapping[str, str]]:
    reader = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        reader.read_string(text_of(path))
    except configparser.Error:
        return {}
    return {section: dict(reader[section]) for section in reader.sections()}


def text_of(path: Path) -> str:
    """Return a file's text; one that cannot be read has none."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern that are the project's own: not what is installed, built or an example."""
    *above, last = pattern.split("/")
    folders, foreign = [folder], listed("no_parts")
    for part in above:
        inside = [one for outer in folders for one in sorted(outer.glob(part)) if one.is_dir()]
        folders = [one for one in inside if one.name == part or not (one.name.startswith(".") or one.name in foreign)]
    return [path for outer in folders for path in sorted(outer.glob(last)) if path.is_file()]


def shows(folder: Path, signs: Signs) -> bool:
    """Whether one of the files is there and holds its text."""
    return any(
        not text or re.search(text, text_of(path), re.MULTILINE) is not None
        for name, text in signs
        for path in files(folder, name)
    )
