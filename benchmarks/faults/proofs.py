"""Faults that were once told as recovered and were not: what looks like a repair must be the call, run and green."""

import subprocess
import tarfile
from collections.abc import Mapping
from typing import Any

from benchmarks.faults.box import Box, Fault
from benchmarks.faults.calls import SCHEMA, strict_tool
from benchmarks.faults.places import author, fill, two_branches

FINE: tuple[int, Mapping[str, str], bytes] = (200, {}, b'{"data": 1}')
PAGE = b"<!doctype html><title>Not found</title>"


def _never(*_: object) -> bool:
    return False


# --- servers: an answer is not yet the content ----------------------------------------------------------------------


def mirror_without_it(box: Box) -> Fault:
    dead, mirror = box.serve(lambda _path, _count: None), box.serve(lambda _path, _count: (404, {}, PAGE))
    return Fault(name="a mirror answers with a page about an error", category="network_error", command=f"curl -sS -o d.txt http://127.0.0.1:{dead}/d",
                 mirrors={f"127.0.0.1:{dead}": f"127.0.0.1:{mirror}"}, healed=_never, needs_person=True, intact=lambda: not box.has("d.txt"))  # fmt: skip


def mirror_with_another_page(box: Box) -> Fault:
    box.write("downloads/d.json", '{"data": 1}')
    dead, mirror = box.serve(lambda _path, _count: None), box.serve(lambda _path, _count: (200, {}, PAGE))
    return Fault(name="a mirror answers with a web page for JSON", category="network_error", command=f"curl -sS -o got.json http://127.0.0.1:{dead}/d.json",
                 mirrors={f"127.0.0.1:{dead}": f"127.0.0.1:{mirror}"}, healed=lambda: box.has("got.json", "data"))  # fmt: skip


def broken_copy(box: Box) -> Fault:
    box.write("downloads/d.json", PAGE.decode())
    dead = box.serve(lambda _path, _count: None)
    return Fault(name="the copy of a download is a web page", category="network_error", command=f"curl -sS -o got.json http://127.0.0.1:{dead}/d.json",
                 healed=_never, needs_person=True, intact=lambda: not box.has("got.json"))  # fmt: skip


def half_a_download(box: Box) -> Fault:
    box.write("downloads/d.json", '{"data": 1}')
    box.write("got.json", '{"da')
    dead = box.serve(lambda _path, _count: None)
    return Fault(name="half of a download lies where the whole belongs", category="network_error",
                 command=f"curl -sS -o got.json http://127.0.0.1:{dead}/d.json", healed=lambda: box.has("got.json", '{"data": 1}'))  # fmt: skip


# --- time: only what adds up is divided ------------------------------------------------------------------------------


def slow_archive(box: Box) -> Fault:
    box.write("src/a.txt", "a")
    box.write("tests/b.txt", "b")
    box.script("tools/tar", 'sleep 1.5; exec tar "$@"')

    def whole() -> bool:
        with tarfile.open(box.work / "x.tgz") as archive:
            return {"src/a.txt", "tests/b.txt"} <= set(archive.getnames())

    return Fault(
        name="an archive takes too long", category="timeout", command="tools/tar czf x.tgz src tests", limit=1.0, healed=whole
    )  # fmt: skip


def slow_build(box: Box) -> Fault:
    for name in "abcd":
        box.write(f"{name}.c", name)
    box.script("build.sh", 'sleep 1.5; cat "$@" > app')
    return Fault(name="a build takes too long", category="timeout", command="./build.sh a.c b.c c.c d.c", limit=1.0,
                 healed=lambda: box.has("app", "abcd"))  # fmt: skip


def slow_tool(_box: Box) -> Fault:
    packed: list[list[str]] = []

    def archive(args: Mapping[str, Any]) -> tuple[bool, str]:
        if len(args["files"]) > 4 and args["timeout_ms"] < 2000:  # noqa: PLR2004  # what it manages
            return False, "Operation timed out after 1000 milliseconds"
        packed.append(args["files"])
        return True, "ok"

    files = [f"f{number}" for number in range(8)]
    return Fault(name="a tool packs too many files", category="timeout", tool="archive_files", args={"files": files, "timeout_ms": 1000},
                 lent={"archive_files": archive}, healed=lambda: packed == [files])  # fmt: skip


def half_an_answer(_box: Box) -> Fault:
    def search(args: Mapping[str, Any]) -> tuple[bool, str]:
        slow = args["limit"] > 50  # noqa: PLR2004  # what it manages
        return (False, "Operation timed out after 1000 milliseconds") if slow else (True, "half of it")

    return Fault(name="a tool manages half of what is asked for", category="timeout", tool="search", args={"query": "x", "limit": 100},
                 lent={"search": search}, healed=_never, needs_person=True)  # fmt: skip


# --- names: what is like it is not it --------------------------------------------------------------------------------


def read_by_a_program(box: Box) -> Fault:
    box.write("conf/config.json", '{"key": 1}')
    box.write("app.py", "print(len(open('config.json').read()))\n")
    return Fault(name="a program reads a file that lies elsewhere", category="file_not_found", command="python3 app.py",
                 healed=_never, needs_person=True, intact=lambda: not box.has("config.json"))  # fmt: skip


def another_short_name(box: Box) -> Fault:
    box.write("src/a.py", "other = 1\n")
    return Fault(name="a short name is like another", category="file_not_found", command="cat src/ab.py", healed=_never, needs_person=True)  # fmt: skip


def another_number(box: Box) -> Fault:
    box.write("report1.txt", "January")
    return Fault(name="a name has another number", category="file_not_found", command="cat report2.txt", healed=_never, needs_person=True)  # fmt: skip


def misspelled_victim(box: Box) -> Fault:
    box.write("settings.json", "{}")
    return Fault(name="what is to be deleted is misspelled", category="file_not_found", command="rm setings.json", healed=_never,
                 needs_person=True, intact=lambda: box.has("settings.json"))  # fmt: skip


def missing_inside(box: Box) -> Fault:
    env = box.path_with()
    (box.base / "bin" / "jq").write_text("#!/bin/bash\necho wrong\n")
    (box.base / "bin" / "jq").chmod(0o755)
    box.write("check.py", "import subprocess, sys\nsys.exit(subprocess.run('jqq .', shell=True).returncode)\n")
    return Fault(name="a script calls a command that is missing", category="command_not_found", command="python3 check.py", env=env,
                 healed=_never, needs_person=True)  # fmt: skip


def found_inside(box: Box) -> Fault:
    box.script("tools/bin/mygen", "echo made > made.txt")
    box.write("check.py", "import subprocess, sys\nsys.exit(subprocess.run('mygen --all', shell=True).returncode)\n")
    return Fault(name="a script calls a command of the project", category="command_not_found", command="python3 check.py", env=box.path_with(),
                 healed=lambda: box.has("made.txt", "made"))  # fmt: skip


# --- arguments and writing ------------------------------------------------------------------------------------------


def unknown_restraint(box: Box) -> Fault:
    box.script(
        "deploy.sh",
        'if [ "$1" = --dry-run ]; then echo "deploy.sh: unrecognized option \'--dry-run\'" >&2; exit 2; fi; touch deployed',
    )
    return Fault(name="an unknown option holds the call back", category="invalid_arguments", command="./deploy.sh --dry-run",
                 healed=_never, needs_person=True, intact=lambda: not box.has("deployed"))  # fmt: skip


def unknown_restraint_of_a_tool(_box: Box) -> Fault:
    seen: list[Mapping[str, Any]] = []
    return Fault(name="an unknown argument holds the call back", category="invalid_arguments", tool="count_lines",
                 args={"file": "a.txt", "count": 3, "dry_run": True}, schema=SCHEMA, lent={"count_lines": strict_tool(seen)}, healed=_never,
                 needs_person=True, intact=lambda: not seen)  # fmt: skip


def write_protected(box: Box) -> Fault:
    path = box.write("notes.md", "old", mode=0o444)

    def write_file(args: Mapping[str, Any]) -> tuple[bool, str]:
        if not path.stat().st_mode & 0o200:
            return False, f"Error: EACCES: permission denied, open '{args['file']}'"
        path.write_text(args["content"])
        return True, "ok"

    return Fault(name="a file of the workspace is write-protected", category="permission_denied", tool="write_file", args={"file": "notes.md", "content": "new"},
                 lent={"write_file": write_file}, healed=lambda: box.has("notes.md", "new"), intact=lambda: not (box.work / ".unstuck/sandbox").exists())  # fmt: skip


def nothing_to_pack(box: Box) -> Fault:
    disk = box.mount("disk", size="64k")
    fill(disk / "filler")

    def write_file(args: Mapping[str, Any]) -> tuple[bool, str]:
        try:
            (box.work / args["file"]).write_text(args["content"])
        except OSError:
            return False, "tee: write error: No space left on device"
        return True, "ok"

    return Fault(name="a document cannot be made smaller", category="disk_full", tool="write_file", args={"file": "disk/d.json", "content": '{"a":1e5}'},
                 lent={"write_file": write_file}, healed=_never, needs_person=True)  # fmt: skip


# --- shells by other names -------------------------------------------------------------------------------------------


def _shell(box: Box, key: str) -> Any:
    def run(args: Mapping[str, Any]) -> tuple[bool, str]:
        line = args[key]
        argv = line if isinstance(line, list) else ["bash", "-c", line]
        done = subprocess.run(argv, cwd=box.work, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout + done.stderr

    return run


def shell_of_a_server(box: Box) -> Fault:
    box.write("settings.json", '{"right": 1}')
    name = "mcp__box__run_command"
    return Fault(name="a shell has a server's name", category="file_not_found", tool=name, args={"command": "cat setings.json"},
                 lent={name: _shell(box, "command")}, alone=True, prints='"right"')  # fmt: skip


def shell_with_words(box: Box) -> Fault:
    box.write("settings.json", '{"right": 1}')
    schema = {
        "type": "object",
        "properties": {"cmd": {"type": "array", "items": {"type": "string"}}},
        "required": ["cmd"],
    }
    return Fault(name="a shell takes a list of words", category="file_not_found", tool="container.exec", args={"cmd": ["cat", "setings.json"]},
                 schema=schema, lent={"container.exec": _shell(box, "cmd")}, alone=True, prints='"right"')  # fmt: skip


# --- what did not help is taken back ---------------------------------------------------------------------------------


def changes_put_back(box: Box) -> Fault:
    two_branches(box, conflicting=True)
    box.script(
        "switch.sh",
        "printf 'error: Your local changes to the following files would be overwritten by checkout:\\n\\ta.txt\\nPlease commit your changes or stash them.\\n' >&2; exit 1",
    )
    box.git("add", "-A")
    box.git("commit", "-qm", "Script")
    box.write("a.txt", "unsaved work\n")
    return Fault(name="putting changes aside does not help", category="git_refused", command="./switch.sh", env=author(box), healed=_never,
                 needs_person=True, intact=lambda: box.has("a.txt", "unsaved work") and not box.git("stash", "list"))  # fmt: skip


def merge_put_back(box: Box) -> Fault:
    two_branches(box, conflicting=True)
    box.script(
        "pick.sh",
        "printf 'error: Merging is not possible because you have unmerged files.\\nfatal: Exiting because of an unresolved conflict.\\n' >&2; exit 128",
    )
    box.git("add", "-A")
    box.git("commit", "-qm", "Script")
    box.git("merge", "other")
    return Fault(name="aborting a merge does not help", category="merge_conflict", command="./pick.sh", env=author(box), healed=_never, needs_person=True,
                 intact=lambda: (box.work / ".git/MERGE_HEAD").exists() and box.has("a.txt", "<<<<<<<") and "UU a.txt" in box.git("status", "--porcelain"))  # fmt: skip


FAULTS = (
    mirror_without_it,
    mirror_with_another_page,
    broken_copy,
    half_a_download,
    slow_archive,
    slow_build,
    slow_tool,
    half_an_answer,
    read_by_a_program,
    another_short_name,
    another_number,
    misspelled_victim,
    missing_inside,
    found_inside,
    unknown_restraint,
    unknown_restraint_of_a_tool,
    write_protected,
    nothing_to_pack,
    shell_of_a_server,
    shell_with_words,
    changes_put_back,
    merge_put_back,
)
