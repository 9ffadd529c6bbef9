"""Look at code through a log, for the stranger's test of readability.

stranger_log.py ls [DIR]               list a folder
stranger_log.py grep PATTERN [DIR]     print matching lines (Python regular expression)
stranger_log.py read FILE FIRST LAST   print numbered lines of a file
stranger_log.py wrong NOTE             record a wrong turn
stranger_log.py answer N FILE:NAME     answer question N, or `none` to give up
stranger_log.py report                 print files opened, lines printed and wrong turns

STRANGER_ROOT is the tree to look at (default: the current folder).
STRANGER_LOG is the log file (default: stranger.jsonl beside this program).
"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("STRANGER_ROOT", ".")).resolve()
LOG = Path(os.environ.get("STRANGER_LOG", Path(__file__).with_name("stranger.jsonl")))
MAX_MATCHES = 60
MAX_LINE_CHARACTERS = 240
SKIPPED_FOLDERS = {".git", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


class Refused(Exception):
    """A command that could not be carried out, so that nothing is logged."""


@dataclass
class Totals:
    """The cost of one question."""

    commands: int = 0
    lines: int = 0
    wrong: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    answers: list[str] = field(default_factory=list)

    def add(self, entry: dict[str, Any]) -> None:
        self.commands += 1
        self.lines += entry.get("lines", 0)
        if entry["command"] == "read":
            self.files.add(entry["file"])
        if entry["command"] == "wrong":
            self.wrong.append(entry["note"])
        if entry["command"] == "answer":
            self.answers.append(entry["place"])

    def row(self, name: str) -> str:
        answer = ", ".join(self.answers)
        return (
            f"{name:>8} {self.commands:>8} {len(self.files):>6} {self.lines:>6} {len(self.wrong):>6}  {answer}".rstrip()
        )


def main(arguments: list[str]) -> int:
    """Carry out one command and return the exit code."""
    options = parser().parse_args(arguments)
    if options.command == "report":
        sys.stdout.write(report(read_log()))
        return 0
    try:
        entry, output = RUN[options.command](options)
    except Refused as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in output)
    entry = {"time": round(time.time(), 1), "command": options.command, "lines": len(output), **entry}
    with LOG.open("a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("ls").add_argument("folder", nargs="?", default=".")
    grep = commands.add_parser("grep")
    grep.add_argument("pattern")
    grep.add_argument("folder", nargs="?", default=".")
    read = commands.add_parser("read")
    read.add_argument("file")
    read.add_argument("first", type=int)
    read.add_argument("last", type=int)
    commands.add_parser("wrong").add_argument("note")
    answer = commands.add_parser("answer")
    answer.add_argument("question")
    answer.add_argument("place")
    commands.add_parser("report")
    return top


def list_folder(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    folder = inside(options.folder)
    if not folder.is_dir():
        raise Refused(f"{options.folder} is no folder. See `ls` without an argument.")
    names = [f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir()]
    return {"file": options.folder}, sorted(name for name in names if name.rstrip("/") not in SKIPPED_FOLDERS)


def grep_tree(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    try:
        pattern = re.compile(options.pattern)
    except re.error as error:
        raise Refused(f"The pattern is no regular expression: {error}.") from error
    matches = [
        f"{relative(path)}:{number}: {line.strip()}"[:MAX_LINE_CHARACTERS]
        for path in text_files(inside(options.folder))
        for number, line in enumerate(lines_of(path), 1)
        if pattern.search(line)
    ]
    hidden = len(matches) - MAX_MATCHES
    output = matches[:MAX_MATCHES] + ([f"({hidden} more matches; narrow the pattern)"] if hidden > 0 else [])
    return {"pattern": options.pattern, "file": options.folder}, output


def read_lines(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    path = inside(options.file)
    if not path.is_file():
        raise Refused(f"{options.file} is no file.")
    lines = lines_of(path)
    first, last = max(options.first, 1), min(options.last, len(lines))
    if first > last:
        raise Refused(f"{options.file} has {len(lines)} lines; {options.first} to {options.last} are none of them.")
    return {"file": relative(path)}, [f"{number:>4} {lines[number - 1]}" for number in range(first, last + 1)]


def wrong_turn(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    return {"note": options.note}, []


def record_answer(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    if options.place != "none":
        name_of_file, _, name = options.place.partition(":")
        path = inside(name_of_file)
        if not name or not path.is_file():
            raise Refused("Answer with FILE:NAME, where FILE is in the tree, or with `none`.")
        if not re.search(rf"(?<!\w){re.escape(name.rpartition('.')[2])}(?!\w)", path.read_text(errors="replace")):
            raise Refused(f"{name_of_file} does not contain the name {name}.")
    return {"question": options.question, "place": options.place}, []


RUN = {"ls": list_folder, "grep": grep_tree, "read": read_lines, "wrong": wrong_turn, "answer": record_answer}


def report(entries: list[dict[str, Any]]) -> str:
    """Return a table with a row for each question. Each command counts for the next answer."""
    questions: dict[str, Totals] = {}
    total, pending = Totals(), []
    for entry in entries:
        total.add(entry)
        pending.append(entry)
        if entry["command"] == "answer":
            row = questions.setdefault(entry["question"], Totals())
            for earlier in pending:
                row.add(earlier)
            pending = []
    for entry in pending:
        questions.setdefault("open", Totals()).add(entry)
    total.answers = [f"{sum(1 for row in questions.values() if row.answers)} questions answered"]
    lines = [f"{'question':>8} {'commands':>8} {'files':>6} {'lines':>6} {'wrong':>6}  answer"]
    lines += [row.row(name) for name, row in questions.items()]
    lines += [total.row("total"), *(f"wrong turn: {note}" for note in total.wrong)]
    return "\n".join(lines) + "\n"


def read_log() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(LOG)] if LOG.exists() else []


def inside(name: str) -> Path:
    """Return the path of a name, which must lie in the tree."""
    path = (ROOT / name).resolve()
    if not path.is_relative_to(ROOT):
        raise Refused(f"{name} is outside of {ROOT}.")
    if not path.exists():
        raise Refused(f"{name} does not exist.")
    return path


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_files(top: Path) -> Iterator[Path]:
    """Yield the text files below a folder, or the file itself."""
    for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
        skipped = SKIPPED_FOLDERS.intersection(path.relative_to(ROOT).parts)
        if path.is_file() and not skipped and b"\0" not in path.read_bytes()[:1024]:
            yield path


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
