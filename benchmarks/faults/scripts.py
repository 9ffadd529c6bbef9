"""Faults of scripts and time: what cannot be parsed, and what takes too long."""

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.faults.box import Box, Fault

OK: tuple[int, Mapping[str, str]] = (200, {})


def open_quote(box: Box) -> Fault:
    return Fault(
        name="a quote is not closed",
        category="syntax_error",
        command='touch "my file.txt',
        healed=(box.work / "my file.txt").exists,
    )


def missing_done(box: Box) -> Fault:
    return Fault(
        name="a loop has no done",
        category="syntax_error",
        command="for i in 1 2; do echo $i >> n.txt",
        healed=lambda: box.has("n.txt", "1\n2\n"),
    )


def missing_fi(box: Box) -> Fault:
    return Fault(
        name="an if has no fi",
        category="syntax_error",
        command="if true; then touch yes.txt",
        healed=(box.work / "yes.txt").exists,
    )


def parentheses(box: Box) -> Fault:
    return Fault(
        name="parentheses are not quoted",
        category="syntax_error",
        command="touch copy(1).txt",
        healed=(box.work / "copy(1).txt").exists,
    )


def broken_script(box: Box) -> Fault:
    box.script("build.sh", 'for name in a b; do\n  if [ "$name" = a ]; then\n    touch "$name.out"\n  fi')
    return Fault(
        name="a script has a real syntax error",
        category="syntax_error",
        command="bash build.sh",
        healed=(box.work / "a.out").exists,
    )


def bash_in_sh(box: Box) -> Fault:
    box.write("list.sh", 'all=(a b)\nfor one in "${all[@]}"; do touch "$one.out"; done\n')
    return Fault(
        name="a bash script is run by sh",
        category="syntax_error",
        command="sh list.sh",
        healed=(box.work / "b.out").exists,
    )


def trailing_comma(box: Box) -> Fault:
    box.write("conf.json", '{"a": 1, // one\n "b": [1, 2,],\n}\n')
    return Fault(
        name="a JSON file has commas too many",
        category="syntax_error",
        command="python3 -m json.tool conf.json",
        healed=lambda: box.has("conf.json", '"b"'),
    )


def too_many_files(box: Box) -> Fault:
    for number in range(12):
        box.write(f"part{number}.txt", "x")
    _linter(box, 'if [ $# -gt 6 ]; then sleep 60; fi; for f in "$@"; do echo "$f" >> done.txt; done')
    names = " ".join(f"part{number}.txt" for number in range(12))
    return Fault(name="too many files at once take too long", category="timeout", command=f"tools/yamllint {names}", limit=1.0,
                 healed=lambda: (box.work / "done.txt").exists() and len((box.work / "done.txt").read_text().split()) == 12)  # fmt: skip  # noqa: PLR2004


def _linter(box: Box, text: str) -> None:
    """Put a tool into the project that takes file by file, so that its parts add up."""
    box.script("tools/yamllint", text)


def too_large_folder(box: Box) -> Fault:
    for number in range(6):
        box.write(f"data/part{number}.yaml", "x")
    box.write("data/README.txt", "no document")
    _linter(box, 'if [ -d "$1" ]; then sleep 60; fi; for f in "$@"; do echo "$f" >> done.txt; done')
    return Fault(
        name="a whole folder takes too long",
        category="timeout",
        command="tools/yamllint data",
        limit=1.0,
        healed=lambda: box.has("done.txt", "data/part5.yaml") and not box.has("done.txt", "README"),
    )


def short_limit(box: Box) -> Fault:
    box.script("slow.sh", "sleep 1.3; echo slow > slow.txt")
    return Fault(
        name="the call's own limit is too short",
        category="timeout",
        command="timeout 1 ./slow.sh",
        healed=lambda: box.has("slow.txt", "slow"),
    )


def slow_server(box: Box) -> Fault:
    def page(_path: str, _count: int) -> tuple[int, Mapping[str, str], bytes]:
        time.sleep(1.3)
        return (*OK, b"late")

    port = box.serve(page)
    return Fault(
        name="a server needs longer than curl waits",
        category="timeout",
        command=f"curl -sS -m 1 -o late.txt http://127.0.0.1:{port}/",
        healed=lambda: box.has("late.txt", "late"),
    )


def waits_for_input(box: Box) -> Fault:
    box.script("ask.sh", 'read -r answer || answer=default; echo "$answer" > answer.txt')
    return Fault(
        name="a command hangs, waiting for input",
        category="timeout",
        command="./ask.sh",
        limit=1.0,
        healed=lambda: box.has("answer.txt", "default"),
    )


def too_long_list(_box: Box) -> Fault:
    done: list[str] = []

    def index(args: Mapping[str, Any]) -> tuple[bool, str]:
        if len(args["files"]) > 4:  # noqa: PLR2004  # what it manages
            return False, "Operation timed out after 1000 milliseconds"
        done.extend(args["files"])
        return True, "ok"

    files = [f"f{number}" for number in range(8)]
    return Fault(
        name="a tool is given too long a list",
        category="timeout",
        tool="index",
        args={"files": files},
        lent={"index": index},
        healed=lambda: sorted(done) == files,
    )


FAULTS = (
    open_quote,
    missing_done,
    missing_fi,
    parentheses,
    broken_script,
    bash_in_sh,
    trailing_comma,
    too_many_files,
    too_large_folder,
    short_limit,
    slow_server,
    waits_for_input,
    too_long_list,
)
