"""Compare the configured checks with the commands in CI workflow files."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import join, normpath

from unstuck.model.verdict import CheckKind
from unstuck.toolchain.command_roles import role_of, runs_other_checks
from unstuck.toolchain.python_needs import text_of
from unstuck.toolchain.shell import can_fail, programs

WORKFLOW_FILES = (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".gitlab-ci/*.yml")
_SHELL_KEY = re.compile(r"^(?P<indent> *(?:- +)?)(?P<key>run|script|before_script) *: *(?P<value>.*)$")
_LIST_ITEM = re.compile(r"^ *- +")
_WORKING_DIRECTORY = re.compile(r"^ *(?:- +)?working-directory *: *(?P<folder>\S+)", re.MULTILINE)
_ONLY_IN_CI = re.compile(r"\$\{\{|\$(?:\{)?(?:CI|GITHUB|RUNNER|GITLAB)_|\bsudo\b|>>? *\$|<<")
"""Text that means something only on a CI machine."""
_RELEASE_WORKFLOW = re.compile(r"release|deploy|publish|pages|docs|nightly|stale", re.IGNORECASE)
"""File names of workflows whose builds are not checks."""
_MAKES_ARTIFACTS = re.compile(
    r"(?<![\w-])(?:docs?|html|site|package|pack|requirements|coverage|release|sdist|bdist\w*|wheel|mkdocs|sphinx(?:-build)?|jekyll|hugo"
    r"|docusaurus|vitepress|typedoc|jsdoc|javadoc|doxygen|pandoc|latexmk|pdflatex|rpmbuild|makepkg|debuild|dpkg-buildpackage)(?![\w/.])"
    r"|-m build\b|\b(?:poetry|hatch|uv|flit|pdm) build\b"
)
"""Builds of documents, packages or lists, which do not show whether the code is right."""
_CHANGE_DIRECTORY = re.compile(r"(?:cd|pushd) +(?P<folder>[^\s;&|$`]+)")
CHECK_KINDS: tuple[CheckKind, ...] = ("test", "lint", "types", "format", "build")
MOST_LINES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class CiCommand:
    """One command that a CI runs as a check."""

    kind: CheckKind
    command: str
    place: str
    """File and line."""


def ci_commands(root: Path) -> tuple[CiCommand, ...]:
    """Return the commands that the CI of a repository checks with, each once."""
    commands: dict[tuple[str, str], CiCommand] = {}
    for pattern in WORKFLOW_FILES:
        for path in sorted(root.glob(pattern)):
            for number, line, folder in _shell_lines(text_of(path)):
                kind = _check_kind(line)
                if kind is None or _ONLY_IN_CI.search(f"{folder} {line}") or not can_fail(line):
                    continue
                if kind == "build" and (_RELEASE_WORKFLOW.search(path.name) or _MAKES_ARTIFACTS.search(line)):
                    continue
                command = f"(cd {shlex.quote(folder)} && {line})" if folder not in ("", ".") else line
                ci_command = CiCommand(kind=kind, command=command, place=f"{path.relative_to(root)}:{number}")
                commands.setdefault((kind, _unwrapped(command)), ci_command)
    return tuple(commands.values())


def differences(
    configured: Iterable[tuple[CheckKind, str]], commands: Sequence[CiCommand]
) -> Iterator[tuple[str, str]]:
    """Yield where the configured checks and the CI differ, each with a remedy or an empty string."""
    checks = dict(configured)
    for ci_command in commands:
        line = f"CI runs `{ci_command.command}` ({ci_command.place})"
        check = checks.get(ci_command.kind, "")
        if not check:
            value = json.dumps(ci_command.command, ensure_ascii=False)
            yield f"{line}, and no check does.", f"Add it under [checks]: {ci_command.kind} = {value}"
        elif not _is_covered(ci_command.command, check):
            remedy = "Make them the same: what lands here should pass there."
            yield f"{line}; the check {ci_command.kind} is `{check}`.", remedy
    if not commands or any(runs_other_checks(ci_command.command) for ci_command in commands):
        return
    kinds_in_ci = {ci_command.kind for ci_command in commands}
    for kind, check in checks.items():
        if kind in CHECK_KINDS and kind not in kinds_in_ci and not runs_other_checks(check):
            yield f"The check {kind} (`{check}`) is not run by CI.", ""


def _is_covered(command: str, check: str) -> bool:
    """Return whether a check runs what a command of the CI runs, as far as the text shows."""
    if runs_other_checks(check) or runs_other_checks(command):
        return True
    return _checking_programs(command) <= _checking_programs(check)


def _checking_programs(command: str) -> set[str]:
    """Return the checking programs without wrappers, so that `uv run pytest` equals `python -m pytest`."""
    return {_unwrapped(part) for part in programs(command) if role_of(part)}


def _unwrapped(command: str) -> str:
    return " && ".join(" ".join(part.split()) for part in programs(command))


def _check_kind(line: str) -> CheckKind | None:
    roles = [role_of(part) for part in reversed(programs(line))]
    role = next(filter(None, roles), "")
    return next((kind for kind in CHECK_KINDS if kind == role), None)


def _shell_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each shell command of a workflow: its line number, the command, and its folder."""
    lines = text.splitlines()[:MOST_LINES]
    for index, line in enumerate(lines):
        match = _SHELL_KEY.match(line)
        if match is None:
            continue
        depth, value, is_script = len(match["indent"]), match["value"].strip(), match["key"] != "run"
        body = _indented_lines(lines, index + 1, depth, with_items=is_script)
        folder = _step_folder(lines, index, depth)
        if value and value[0] in "|>":
            yield from _with_folders(_block_commands(body, is_folded=value[0] == ">"), folder)
        elif value and not value.startswith("["):
            yield index + 1, _scalar(value), folder
        elif is_script:
            yield from _with_folders(_list_commands(body), folder)


def _with_folders(commands: Iterable[tuple[int, str]], folder: str) -> Iterator[tuple[int, str, str]]:
    """Yield the commands of one shell with their folders: a `cd` on its own line holds for all after it."""
    for number, command in commands:
        if match := _CHANGE_DIRECTORY.fullmatch(command):
            folder = normpath(join(folder, match["folder"].strip("'\"")))
        yield number, command, folder


def _indented_lines(lines: Sequence[str], start: int, depth: int, *, with_items: bool = False) -> list[tuple[int, str]]:
    """Return the numbered lines below a key, `with_items` also list items as far out as the key."""
    body = []
    for number in range(start, len(lines)):
        line = lines[number]
        indent = _indent(line)
        is_item = with_items and indent == depth and _LIST_ITEM.match(line)
        if line.strip() and indent <= depth and not is_item:
            break
        body.append((number + 1, line))
    return body


def _block_commands(body: Sequence[tuple[int, str]], *, is_folded: bool) -> Iterator[tuple[int, str]]:
    """Yield the commands of a block of text: one per line, but continued lines and folded blocks are one."""
    command, first = "", 0
    for number, line in body:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        first = first or number
        command = f"{command} {text.removesuffix(chr(92)).strip()}".strip()
        if not is_folded and not text.endswith("\\"):
            yield first, command
            command, first = "", 0
    if command:
        yield first, command


def _list_commands(body: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for index, (number, line) in enumerate(body):
        if not _LIST_ITEM.match(line):
            continue
        value = _LIST_ITEM.sub("", line).strip()
        if value and value[0] in "|>":
            depth = _indent(line)
            below = _indented_lines([text for _, text in body], index + 1, depth)
            block = [(number + offset, text) for offset, (_, text) in enumerate(below, 1)]
            yield from _block_commands(block, is_folded=value[0] == ">")
        else:
            yield number, _scalar(value)


def _step_folder(lines: Sequence[str], index: int, depth: int) -> str:
    """Return the working directory of the step that contains the line, or an empty string."""
    first = index
    while first > 0 and not _LIST_ITEM.match(lines[first]) and lines[first].strip():
        first -= 1
    last = index + 1
    while last < len(lines) and not _LIST_ITEM.match(lines[last]) and _indent(lines[last]) >= depth:
        last += 1
    match = _WORKING_DIRECTORY.search("\n".join(lines[first:last]))
    return match["folder"].strip("'\"").removeprefix("./") if match else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _scalar(value: str) -> str:
    """Return a YAML value without its quotes, or without the comment after it."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace("''", "'") if value[0] == "'" else value[1:-1].replace('\\"', '"')
    return re.sub(r"\s+#.*$", "", value)
