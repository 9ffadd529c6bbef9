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
    kept: str = "",
    limit: float = 20.0,
) -> Callable[[Box], Fault]:
    """Return what breaks a box: files, then commands; `made` is the file, and what it holds, that shows from outside that it is healed, `kept` one that must stay as it is."""

    def broken(box: Box) -> Fault:
        for file, text in (files or {}).items():
            box.write(file, text, mode=0o755 if text.startswith("#!") else 0o644)
        bare = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        subprocess.run(["bash", "-c", first or "true"], cwd=box.work, env=bare, check=True, capture_output=True)
        return Fault(
            name=name, category=category, command=command, prints=prints, needs_person=person, limit=limit,
            intact=lambda: not kept or (box.work / kept.partition(":")[0]).read_text() == kept.partition(":")[2],
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
    _row("a table is misspelled", "unknown", "python3 ask.py", files={"ask.py": "import sqlite3\nsqlite3.connect(':memory:').execute('select * from userz')\n"}, person=True),
    _row("a header is nowhere", "file_not_found", "echo 'a.c:1:10: fatal error: nosuch.h: No such file or directory' >&2; exit 1", person=True),
    _row("a variable of a script is not set", "environment_missing", "bash -u s.sh", files={"s.sh": "echo $NAME > out.txt\n"}, person=True),
    _row("a variable of a script is in the project's file", "environment_missing", "bash -u s.sh", files={"s.sh": "echo $NAME > out.txt\n", ".env": "NAME=box\n"}, made="out.txt"),
    _row("a merge with a branch that conflicts", "merge_conflict", "git merge other", first=(
        f"{ONE_COMMIT.format(branch='main')} && git config user.name a && git config user.email a@b && for b in other main; do"
        " git checkout -q -B $b $(git rev-list --max-parents=0 HEAD); echo $b > f; git add f; git commit -q -m $b; done"
    ), person=True),
    _row("a program lies one folder further down", "file_not_found", "python3 manage.py migrate", files={"src/manage.py": "open('out.txt', 'w').write('migrated')\n"}, made="out.txt:migrated"),
    _row("a letter among options is unknown", "invalid_arguments", "ls -lz .", files={"a.txt": ""}, person=True),
    _row("an option is misspelled", "invalid_arguments", "ls --recursve .", files={"a/b.txt": ""}, prints="b.txt"),
    _row("an option that sorts is unknown", "invalid_arguments", "sort --nummeric a.txt", files={"a.txt": "10\n9\n"}, person=True),
    _row("a module of Python is misspelled", "dependency_missing", "python3 -m json.tol a.json", files={"a.json": "[1]"}, prints="1"),
    _row("a folder is changed into first", "file_not_found", "cd src && cat setings.txt", files={"src/settings.txt": "text"}, prints="text"),
    _row("a file was renamed", "file_not_found", "cat old.txt", files={"old.txt": "text"}, first=(
        f"{ONE_COMMIT.format(branch='main')} && git add . && git -c user.name=a -c user.email=a@b commit -qm two && git mv old.txt new.txt && git -c user.name=a -c user.email=a@b commit -qm three"
    ), prints="text"),
    _row("two files may be meant", "file_not_found", "cat setup.cfg", files={"a/setup.cfg": "a", "b/setup.cfg": "b"}, person=True),
    _row("the folder of an archive is missing", "file_not_found", "tar czf out/a.tgz a.txt", files={"a.txt": "text"}, made="out/a.tgz"),
    _row("a file is taken for an option", "invalid_arguments", "cat -x", files={"-x": "text"}, person=True),
    _row("a script without first line or mode is no shell's", "permission_denied", "./s.py", files={"s.py": "open('out.txt', 'w').write('ran')\n"}, made="out.txt:ran"),
    _row("recipes of make begin with blanks", "syntax_error", "make build", files={"Makefile": "build:\n    touch built\n"}, made="built"),
    _row("a folder to pack is misspelled", "file_not_found", "tar cf b.tar sorces", files={"sources/a": "a"}, made="b.tar"),
    _row("a document of the project is no JSON", "syntax_error", "./build", files={
        "package.json": '{"name": "a",}\n',
        "build": '#!/bin/bash\npython3 -m json.tool package.json >/dev/null 2>&1 || { echo "npm error JSON.parse Invalid package.json: JSONParseError: Expected double-quoted property name" >&2; exit 1; }\ntouch built\n',
    }, made="built"),
    _row("a deployment takes too long", "timeout", "./deploy.sh prod", files={"deploy.sh": "#!/bin/bash\necho deployed >> log\nsleep 30\n"}, person=True, kept="log:deployed\n", limit=1.0),
    _row("changes to a misspelled file are thrown away", "file_not_found", "git checkout -- setings.json", files={"settings.json": "1"}, first=(
        f"{ONE_COMMIT.format(branch='main')} && git add . && git -c user.name=a -c user.email=a@b commit -qm two && printf 2 > settings.json"
    ), person=True, kept="settings.json:2"),
    _row("an untracked file stands in the way", "git_refused", "git checkout other", first=(
        f"{ONE_COMMIT.format(branch='main')} && git config user.name a && git config user.email a@b && git checkout -q -b other && echo a > a && git add a && git commit -qm a && git checkout -q main && echo mine > a"
    ), made=".git/HEAD:other"),
    _row("a package of the project's own is not on the path", "dependency_missing", "python3 pkg/main.py", files={"pkg/__init__.py": "", "pkg/b.py": "X = 'found'\n", "pkg/main.py": "from pkg.b import X\nprint(X)\n"}, prints="found"),
    _row("a variable stands in the second file of settings", "environment_missing", "bash -u s.sh", files={"s.sh": "echo $NAME > out.txt\n", ".env": "", ".env.local": "NAME=box\n"}, made="out.txt:box"),
    _row("the folder that a copy goes to is missing", "file_not_found", "cp a new/dir/", files={"a": "a"}, made="new/dir/a"),
    _row("the folder that an archive goes to is missing", "file_not_found", "tar xf x.tar -C out", first="echo a > a; tar cf x.tar a; rm a", made="out/a"),
    _row("what an archive is made of is missing", "file_not_found", "tar cf x.tar -C srcs .", files={"other/a": "a"}, person=True),
    _row("a folder is searched like a file", "invalid_arguments", "grep needle docs", files={"docs/a/b": "a needle"}, prints="a needle"),
    _row("a name with blanks is not quoted", "file_not_found", "cat docs/my notes.txt", files={"docs/my notes.txt": "found it"}, prints="found it"),
    _row("an option is written as on a Mac", "file_not_found", "sed -i '' s/old/new/ file", files={"file": "old\n"}, made="file:new"),
    _row("an archive is of another kind", "syntax_error", "unzip x.zip", first="echo a > a; tar czf x.zip a; rm a", made="a"),
    _row("a script of bash is run by sh", "syntax_error", "sh s.sh", files={"s.sh": "x=out.txt\ntouch ${x^^}\n"}, made="OUT.TXT"),
    _row("a dead git left the lock of a branch", "git_refused", "git commit -q --allow-empty -m two", first=(
        f"{ONE_COMMIT.format(branch='main')} && git config user.name a && git config user.email a@b && touch -d '1 minute ago' .git/refs/heads/main.lock"
    ), made=".git/logs/HEAD:two"),
    _row("a port in a line of the shell is taken", "port_in_use", "true && python3 serve.py 1024", files={
        "serve.py": "import sys\nif sys.argv[1] == '1024':\n    raise OSError(98, 'Address already in use')\nprint('serves')\n"
    }, prints="serves"),
    _row("a script with an ending of its own may not be executed", "permission_denied", "./run.v2", files={"run.v2": "#!/bin/bash\ntouch out.txt\n"}, first="chmod 644 run.v2", made="out.txt"),
    _row("a link leads to itself", "file_not_found", "cat a", first="ln -s b a; ln -s a b", person=True),
    _row("the nearest choice is the opposite", "invalid_arguments", "python3 pick.py upgrade", files={"pick.py": CHOOSES.replace("'build', 'test'", "'install', 'downgrade'")}, person=True),
    _row("the tool suggests the opposite", "invalid_arguments", "./tool enable", files={"tool": """#!/bin/bash\n[ "$1" = disable ] && exit 0; echo "Error: No such command 'enable'. Did you mean 'disable'?" >&2; exit 2\n"""}, person=True),
    _row("what is removed has brackets in its name", "syntax_error", "rm -rf build (old)", files={"build/a": "a", "(old)/a": "a"}, person=True, kept="build/a:a"),
    _row("what is removed is not quoted to its end", "syntax_error", 'rm -rf "build old', files={"build old/a": "a"}, person=True, kept="build old/a:a"),
    _row("a branch is only where a file is taken from", "invalid_arguments", "git checkout main -- app.py", files={"app.py": "1"}, first=(
        f"{ONE_COMMIT.format(branch='master')} && git add . && git -c user.name=a -c user.email=a@b commit -qm two && printf 2 > app.py"
    ), person=True, kept="app.py:2"),
    _row("a quotation swallows where the output goes", "syntax_error", 'echo "hello > out.txt', person=True),
    _row("another folder has a file of that name", "file_not_found", "cat production/app.env", files={"staging/app.env": "A=1", "production/x": ""}, person=True),
    _row("a file of settings is no script", "environment_missing", "bash -u s.sh", files={"s.sh": "echo $NAME > out.txt\n", ".env": "# settings\nOTHER=two words $(touch ran)\nexport NAME='box of $5' # mine\n"}, made="out.txt:box of $5"),
    _row("a program waits for its input", "timeout", "wc -l", person=True, limit=1.0),
    _row("a script asks and nobody answers", "timeout", "./ask.sh", files={"ask.sh": "#!/bin/bash\necho 'Delete everything? [y/N]'; read answer; touch answered\n"}, first="printf kept > kept", person=True, kept="kept:kept", limit=1.0),
    _row("a slow script fails in the end", "timeout", "./slow.sh", files={"slow.sh": "#!/bin/bash\necho once >> log; touch more; sleep 1.5; exit 3\n"}, person=True, kept="log:once\n", limit=1.0),
    _row("a pattern is copied with a folder in it", "invalid_arguments", "cp src/* out/", files={"src/a": "a", "src/b/c": "c", "out/x": ""}, made="out/b/c"),
    _row("a certificate is not trusted", "network_error", "echo 'curl: (60) SSL certificate problem: self-signed certificate' >&2; exit 60", person=True),
)  # fmt: skip
