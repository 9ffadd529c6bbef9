"""Edge: Read what a repository's CI runs: the commands of its workflows that test, lint, check types, format or build."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import join, normpath

from unstuck.model.verdict import CheckKind
from unstuck.toolchain.command_roles import listed, role_of
from unstuck.toolchain.detection import Proposal, Stack
from unstuck.toolchain.python_needs import text_of
from unstuck.toolchain.shell import can_fail, programs

FILES = (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".gitlab-ci/*.yml")
KEY = re.compile(r"^(?P<indent> *(?:- +)?)(?P<key>run|script|before_script) *: *(?P<value>.*)$")
ITEM = re.compile(r"^ *- +")
FOLDER = re.compile(r"^ *(?:- +)?working-directory *: *(?P<folder>\S+)", re.MULTILINE)
NOT_HERE = re.compile(r"\$\{\{|\$(?:\{)?(?:CI|GITHUB|RUNNER|GITLAB)_|\bsudo\b|>>? *\$|<<")
"""What only makes sense on a CI's machine."""
BRINGS_OUT = re.compile(r"release|deploy|publish|pages|docs|nightly|stale", re.IGNORECASE)
"""Workflows whose builds are no checks."""
MAKES = re.compile(
    r"(?<![\w-])(?:docs?|html|site|package|pack|requirements|coverage|release|sdist|bdist\w*|wheel|mkdocs|sphinx(?:-build)?|jekyll|hugo"
    r"|docusaurus|vitepress|typedoc|jsdoc|javadoc|doxygen|pandoc|latexmk|pdflatex|rpmbuild|makepkg|debuild|dpkg-buildpackage)(?![\w/.])"
    r"|-m build\b|\b(?:poetry|hatch|uv|flit|pdm) build\b"
)
"""Builds that make documents, packages or lists: whether the work is right shows in none of them."""
MOVES = re.compile(r"(?:cd|pushd) +(?P<folder>[^\s;&|$`]+)")
BARE = re.compile(r"^python[\d.]*\s+-m\s+")
"""What stands before a program that is whatever PATH has."""
KINDS: tuple[CheckKind, ...] = ("test", "lint", "types", "format", "build")
MOST_LINES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class CiCommand:
    """One command that a CI runs, and where that is written."""

    kind: CheckKind
    command: str
    place: str
    """File and line."""


def ci_commands(root: Path) -> tuple[CiCommand, ...]:
    """List the commands that the repository's CI checks with, each once."""
    found: dict[tuple[str, str], CiCommand] = {}
    for pattern in FILES:
        for path in sorted(root.glob(pattern)):
            for number, line, folder in _lines(text_of(path)):
                kind = _kind(line)
                if kind is None or NOT_HERE.search(f"{folder} {line}") or not can_fail(line):
                    continue
                if kind == "build" and (BRINGS_OUT.search(path.name) or MAKES.search(line)):
                    continue
                command = f"(cd {shlex.quote(folder)} && {line})" if folder not in ("", ".") else line
                one = CiCommand(kind=kind, command=command, place=f"{path.relative_to(root)}:{number}")
                found.setdefault((kind, _plain(command)), one)
    return tuple(found.values())


def with_ci(stack: Stack, root: Path) -> Stack:
    """Propose what the CI runs before what fits the stack, which is left for where the CI's own line cannot run here."""
    commands = ci_commands(root)
    fitting = {one.kind: one.lines for one in reversed(stack.proposals)}
    same = {one.kind: one for one in reversed(commands) if _here(one.command, fitting.get(one.kind, ()))}
    of_ci = []
    for one in commands:
        lines = fitting.get(one.kind, ())
        rest = fitting.pop(one.kind, ()) if same.get(one.kind, one) is one else ()
        tried = dict.fromkeys((*_here(one.command, lines), one.command, *rest))
        of_ci.append(Proposal(stack="ci", kind=one.kind, lines=tuple(tried)))
    kinds = {one.kind for one in commands}
    others = [one for one in stack.proposals if one.kind not in kinds]
    notes = [f"{one.kind} comes from {one.place}: {one.command}" for one in commands]
    return replace(stack, proposals=(*of_ci, *others), notes=(*stack.notes, *notes))


def _here(command: str, fitting: Sequence[str]) -> tuple[str, ...]:
    """Return a CI's command as the set-up's own runner runs it, where a line that fits has the same one: PATH may have another."""
    plain = _plain(command)
    for line in fitting:
        program = _plain(line)
        if program.split()[:1] == plain.split()[:1] and line.endswith(program) and BARE.sub("", command) == plain:
            return (line.removesuffix(program) + plain,)
    return ()


def drifted(configured: Iterable[tuple[CheckKind, str]], commands: Sequence[CiCommand]) -> Iterator[tuple[str, str]]:
    """Say what the CI checks and the configuration does not, or differently, what the CI leaves out, and what to do."""
    checks = dict(configured)
    for one in commands:
        ours = checks.get(one.kind, "")
        if not ours:
            line = json.dumps(one.command, ensure_ascii=False)
            says = f"CI runs `{one.command}` ({one.place}), and no check does."
            yield says, f"Add it under [checks]: {one.kind} = {line}"
        elif not _hidden(ours) and not _hidden(one.command) and not _parts(one.command) <= _parts(ours):
            says = f"CI runs `{one.command}` ({one.place}); the check {one.kind} is `{ours}`."
            yield says, "Make them the same: what lands here should pass there."
    kinds = {one.kind for one in commands}
    for kind, ours in checks.items() if commands else ():
        if kind in KINDS and kind not in kinds and not any(map(_hidden, (ours, *(one.command for one in commands)))):
            yield f"The check {kind} (`{ours}`) is not run by CI.", ""


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each line of shell in a workflow: its number, the command, and the folder that it runs in."""
    lines = text.splitlines()[:MOST_LINES]
    for at, line in enumerate(lines):
        found = KEY.match(line)
        if found is None:
            continue
        depth, value = len(found["indent"]), found["value"].strip()
        inner = _inside(lines, at + 1, depth, items=found["key"] != "run")
        folder = _folder(lines, at, depth)
        if value and value[0] in "|>":
            yield from _moving(_block(inner, folded=value[0] == ">"), folder)
        elif value and not value.startswith("["):
            yield at + 1, _scalar(value), folder
        elif found["key"] != "run":
            yield from _moving(_list(inner), folder)


def _moving(commands: Iterable[tuple[int, str]], folder: str) -> Iterator[tuple[int, str, str]]:
    """Yield commands that one shell runs, each with its folder: a `cd` on a line of its own holds for all after it."""
    for number, command in commands:
        if moved := MOVES.fullmatch(command):
            folder = normpath(join(folder, moved["folder"].strip("'\"")))
        yield number, command, folder


def _inside(lines: Sequence[str], start: int, depth: int, *, items: bool = False) -> list[tuple[int, str]]:
    """Return the lines below a key that belong to it; the items of its list may stand as far out as the key does."""
    inner = []
    for number in range(start, len(lines)):
        line = lines[number]
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= depth and not (items and indent == depth and ITEM.match(line)):
            break
        inner.append((number + 1, line))
    return inner


def _block(inner: Sequence[tuple[int, str]], *, folded: bool) -> Iterator[tuple[int, str]]:
    """Yield the commands of a block of text: one a line, continued ones and folded blocks as one."""
    kept, first = "", 0
    for number, line in inner:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        first = first or number
        kept = f"{kept} {text.removesuffix(chr(92)).strip()}".strip()
        if not folded and not text.endswith("\\"):
            yield first, kept
            kept, first = "", 0
    if kept:
        yield first, kept


def _list(inner: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for at, (number, line) in enumerate(inner):
        if not ITEM.match(line):
            continue
        value = ITEM.sub("", line).strip()
        if value and value[0] in "|>":
            depth = len(line) - len(line.lstrip())
            below = _inside([text for _, text in inner], at + 1, depth)
            yield from _block(
                [(number + place, text) for place, (_, text) in enumerate(below, 1)], folded=value[0] == ">"
            )
        else:
            yield number, _scalar(value)


def _folder(lines: Sequence[str], at: int, depth: int) -> str:
    """Return the folder of the step that a `run` stands in."""
    first = at
    while first > 0 and not ITEM.match(lines[first]) and lines[first].strip():
        first -= 1
    last = at + 1
    while last < len(lines) and not ITEM.match(lines[last]) and len(lines[last]) - len(lines[last].lstrip()) >= depth:
        last += 1
    found = FOLDER.search("\n".join(lines[first:last]))
    return found["folder"].strip("'\"").removeprefix("./") if found else ""


def _scalar(value: str) -> str:
    """Return a value without its quotes, or without the comment behind it."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace("''", "'") if value[0] == "'" else value[1:-1].replace('\\"', '"')
    return re.sub(r"\s+#.*$", "", value)


def _kind(line: str) -> CheckKind | None:
    found = next((role for part in reversed(programs(line)) if (role := role_of(part))), "")
    return next((kind for kind in KINDS if kind == found), None)


def _parts(command: str) -> set[str]:
    """Return the simple commands in their plainest form, so that `uv run pytest` and `python -m pytest` are one."""
    return {_plain(part) for part in programs(command) if role_of(part)}


def _plain(command: str) -> str:
    return " && ".join(" ".join(part.split()) for part in programs(command))


def _hidden(command: str) -> bool:
    """Whether a command may run others of any kind: `make check`, `tox`, `pre-commit`."""
    return any(part.split()[0] in listed("runs_others") for part in programs(command) if role_of(part))
