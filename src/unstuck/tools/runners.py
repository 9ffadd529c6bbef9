"""What test runners and formatters can be asked for: some test files only, or a look without repairs. The table is data."""

import re
from collections.abc import Iterable, Iterator, Sequence

from unstuck.tools.shell import ENDS, QUOTED, programs
from unstuck.tools.toolchains import Runner, fixers, toolchains

_PLAIN = re.compile(r"[\w./-]+", re.ASCII)
"""Folders and stems that need no quotes."""


def selecting(commands: Iterable[str], files: Sequence[str]) -> str | None:
    """Return a command that runs these test files and no others; None where no check shows how."""
    for command in commands:
        for part in _parts(command):
            for runner in _runners():
                shown = re.match(runner.shows, part)
                mine = [file for file in sorted(files) if re.search(runner.takes, file)]
                if shown and mine and (items := _items(runner, mine)):
                    line = shown.expand(runner.keeps) if runner.keeps else ""
                    space = " " if line and not line.endswith((" ", "=")) else ""
                    return (
                        line
                        + space
                        + runner.between.join(item.replace(r"\1", shown[1]) for item in dict.fromkeys(items))
                    )
    return None


def is_plain_run(command: str) -> bool:
    """Whether the line is one test run and nothing else, so that its exit code is the runner's own."""
    bare = QUOTED.sub("''", command).strip()
    return not ENDS.search(bare) and not bare.startswith("!") and _runner(bare) is not None


def shows_tests(command: str, output: str) -> bool:
    """Whether the output of a runner says in its own way that it ran tests."""
    runner = _runner(command)
    return bool(runner and runner.ran and re.search(runner.ran, output, re.MULTILINE))


def checking_form(command: str) -> str:
    """Say how the tool of a command is asked to look without repairing; empty where the table does not know it."""
    shown = (fixer.asks for fixer in fixers() for part in programs(command) if re.match(fixer.shows, part))
    return next(shown, "")


def looking_line(command: str) -> str:
    """Return a line with every tool in it in the form that changes no file, as far as the table knows one."""
    for fixer in fixers():
        if fixer.writes and any(re.match(fixer.shows, part) for part in programs(command)):
            command = re.sub(fixer.writes, fixer.looks, command)
    return command


def _runner(command: str) -> Runner | None:
    return next((runner for runner in _runners() if re.match(runner.shows, command.strip())), None)


def _parts(command: str) -> list[str]:
    """Return the simple commands of a line that begins where the checks begin; a changed folder is not followed."""
    parts = [part.strip() for part in ENDS.split(command)]
    return [] if any(part.startswith(("cd ", "(cd ")) for part in parts) else parts


def _items(runner: Runner, files: Sequence[str]) -> list[str]:
    """Write each file as the runner wants it; nothing where one of them cannot be written safely."""
    items = []
    for file in files:
        folder, _, name = file.rpartition("/")
        stem = name.partition(".")[0]
        if "{path}" in runner.item:
            items.append(runner.item.replace("{path}", _quoted(f"./{file}")))
        elif _PLAIN.fullmatch(stem) and _PLAIN.fullmatch(folder or "."):
            items.append(runner.item.replace("{folder}", folder).replace("{stem}", stem).replace("{bare}", file))
        else:
            return []
    return items


def _quoted(word: str) -> str:
    """Quote for the shell: file names are foreign text."""
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _runners() -> Iterator[Runner]:
    return (runner for chain in toolchains() for runner in chain.runner)
