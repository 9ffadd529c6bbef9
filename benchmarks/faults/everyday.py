"""Everyday failures of tools that nobody thought of when the remedies were written: one row each."""

import os
import subprocess
from collections.abc import Callable, Mapping

from benchmarks.faults.box import Box, Fault

ONE_COMMIT = "git init -q -b {branch} . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one"
CHOOSES = "import argparse\np = argparse.ArgumentParser()\np.add_argument('what', choices=['build', 'test'])\nopen('out.txt', 'w').write(p.parse_args().what)\n"
CLAP = """case "$1" in biuld) printf "error: unrecognized subcommand 'biuld'\\n\\n  tip: a similar subcommand exists: 'build'\\n" >&2; exit 2;; build) touch built;; esac"""


def _row(
    name: str,
    category: str,
    command: str,
    *,
    files: Mapping[str, str] | None = None,
    first: str = "",
    made: str = "",
    prints: str = "",
    person: bool = False,
) -> Callable[[Box], Fault]:
    """Return what breaks a box: files, then commands; `made` is the file, and what it holds, that shows from outside that it is healed."""

    def broken(box: Box) -> Fault:
        for file, text in (files or {}).items():
            box.write(file, text, mode=0o755 if text.startswith("#!") else 0o644)
        bare = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        subprocess.run(["bash", "-c", first or "true"], cwd=box.work, env=bare, check=True, capture_output=True)
        return Fault(
            name=name, category=category, command=command, prints=prints, needs_person=person,
            healed=lambda: not person and (not made or box.has(*made.split(":"))),
        )  # fmt: skip

    broken.__name__ = name.replace(" ", "_")
    return broken


FAULTS = (
    _row("a folder that is there is made again", "invalid_arguments", "mkdir build", files={"build/x": ""}, made="build/x"),
    _row("a pattern is left to the shell", "invalid_arguments", "find . -name *.log", files={"a.log": "", "b.log": "", "c/d.log": ""}, prints="c/d.log"),
    _row("a folder is copied like a file", "invalid_arguments", "cp src copy", files={"src/a": "a"}, made="copy/a"),
    _row("an archive is not packed as its name says", "syntax_error", "tar xzf x.tgz", first="echo a > a; tar cf x.tgz a; rm a", made="a"),
    _row("a substitution lacks its end", "syntax_error", "sed -i s/old/new file", files={"file": "old\n"}, made="file:new"),
    _row("the default branch has the other name", "file_not_found", "git checkout main", first=f"{ONE_COMMIT.format(branch='master')} && git checkout -q -b dev", made=".git/HEAD:master"),
    _row("a folder is misspelled on the way", "file_not_found", "cat componets/list.txt", files={"components/list.txt": "found it"}, prints="found it"),
    _row("a folder is changed into under another name", "file_not_found", "cd projct && touch done", files={"project/x": ""}, made="project/done"),
    _row("an environment has a dot before its name", "file_not_found", "source venv/bin/activate && echo active", files={".venv/bin/activate": "true\n"}, prints="active"),
    _row("a path in an option is misspelled", "file_not_found", "grep -c --file=patern.txt text.txt", files={"pattern.txt": "a\n", "text.txt": "a\n"}, prints="1"),
    _row("a choice is misspelled", "invalid_arguments", "python3 pick.py biuld", files={"pick.py": CHOOSES}, made="out.txt"),
    _row("a subcommand is misspelled and the tool says so", "invalid_arguments", "./tool biuld", files={"tool": f"#!/bin/bash\n{CLAP}\n"}, made="built"),
    _row("a module of the project's own is misspelled", "dependency_missing", "python3 main.py", files={"pkg/__init__.py": "", "pkg/helpers.py": "X = 1\n", "main.py": "from pkg.helper import X\n"}, person=True),
    _row("what is to be removed is not there", "file_not_found", "rm od.log", files={"old.log": ""}, person=True),
    _row("a target of make is misspelled", "invalid_arguments", "make tset", files={"Makefile": "test:\n\ttouch done\n"}, person=True),
    _row("a table is misspelled", "file_not_found", "python3 ask.py", files={"ask.py": "import sqlite3\nsqlite3.connect(':memory:').execute('select * from userz')\n"}, person=True),
    _row("a header is nowhere", "file_not_found", "echo 'a.c:1:10: fatal error: nosuch.h: No such file or directory' >&2; exit 1", person=True),
    _row("a variable of a script is not set", "environment_missing", "bash -u s.sh", files={"s.sh": "echo $NAME > out.txt\n"}, person=True),
    _row("a variable of a script is in the project's file", "environment_missing", "bash -u s.sh", files={"s.sh": "echo $NAME > out.txt\n", ".env": "NAME=box\n"}, made="out.txt"),
    _row("a merge with a branch that conflicts", "merge_conflict", "git merge other", first=(
        f"{ONE_COMMIT.format(branch='main')} && git config user.name a && git config user.email a@b && for b in other main; do"
        " git checkout -q -B $b $(git rev-list --max-parents=0 HEAD); echo $b > f; git add f; git commit -q -m $b; done"
    ), person=True),
    _row("a program lies one folder further down", "file_not_found", "python3 manage.py migrate", files={"src/manage.py": "open('out.txt', 'w').write('migrated')\n"}, made="out.txt:migrated"),
    _row("a letter among options is unknown", "invalid_arguments", "ls -lz .", files={"a.txt": ""}, prints="a.txt"),
    _row("a file is taken for an option", "invalid_arguments", "cat -x", files={"-x": "text"}, person=True),
    _row("a script without first line or mode is no shell's", "permission_denied", "./s.py", files={"s.py": "open('out.txt', 'w').write('ran')\n"}, made="out.txt:ran"),
    _row("recipes of make begin with blanks", "syntax_error", "make build", files={"Makefile": "build:\n    touch built\n"}, made="built"),
    _row("a folder to pack is misspelled", "file_not_found", "tar cf b.tar sorces", files={"sources/a": "a"}, made="b.tar"),
    _row("a document of the project is no JSON", "syntax_error", "./build", files={
        "package.json": '{"name": "a",}\n',
        "build": '#!/bin/bash\npython3 -m json.tool package.json >/dev/null 2>&1 || { echo "npm error JSON.parse Invalid package.json: JSONParseError: Expected double-quoted property name" >&2; exit 1; }\ntouch built\n',
    }, made="built"),
)  # fmt: skip
