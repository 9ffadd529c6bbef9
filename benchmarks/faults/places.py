"""Faults of the world: paths, permissions, space, ports, locks and repositories."""

import os
import socket
from collections.abc import Mapping
from typing import Any

from benchmarks.faults.box import Box, CannotBreak, Fault

SOURCE_BYTES = 100_000


# --- paths ----------------------------------------------------------------------------------------------------------


def wrong_case(box: Box) -> Fault:
    box.write("config.yaml", "right: true\n")
    return Fault(
        name="a file with the wrong case", category="file_not_found", command="cat Config.YAML", prints="right: true"
    )


def wrong_spelling(box: Box) -> Fault:
    box.write("settings.json", '{"right": 1}')
    return Fault(
        name="a file's name is misspelled", category="file_not_found", command="cat setings.json", prints='"right"'
    )


def wrong_place(box: Box) -> Fault:
    box.write("src/lib/parser.py", "right = 1\n")
    return Fault(name="a file lies elsewhere", category="file_not_found", command="cat parser.py", prints="right = 1")


def wrong_ending(box: Box) -> Fault:
    box.write("ci.yml", "right: true\n")
    return Fault(
        name="a file has another ending", category="file_not_found", command="cat ci.yaml", prints="right: true"
    )


def wrong_case_for_a_tool(box: Box) -> Fault:
    box.write("docs/Guide.md", "right")

    def read_file(args: Mapping[str, Any]) -> tuple[bool, str]:
        path = box.work / args["file"]
        return (
            (True, path.read_text())
            if path.exists()
            else (False, f"Error: ENOENT: no such file or directory, open '{args['file']}'")
        )

    return Fault(
        name="a tool is given the wrong case",
        category="file_not_found",
        tool="read_file",
        args={"file": "docs/guide.md"},
        lent={"read_file": read_file},
        prints="right",
    )


def hostile_name(box: Box) -> Fault:
    box.write("-rf $(touch pwned);.txt", "right")
    return Fault(
        name="a hostile file name, misspelled",
        category="file_not_found",
        command="cat -- '-rf $(touch pwned).txt'",
        prints="right",
        healed=lambda: not (box.work / "pwned").exists(),
    )


def no_folder(box: Box) -> Fault:
    return Fault(
        name="the folder of a new file is missing",
        category="file_not_found",
        command="touch build/out/a.txt",
        healed=(box.work / "build/out/a.txt").exists,
    )


def only_an_example(box: Box) -> Fault:
    box.write("app.env.example", "KEY=1\n")
    return Fault(
        name="only the example of a file exists", category="file_not_found", command="cat app.env", prints="KEY=1"
    )


def read_only_folder(box: Box) -> Fault:
    box.read_only("locked")
    return Fault(name="a folder is read-only", category="permission_denied", command="touch locked/report.txt",
                 healed=(box.work / ".unstuck/sandbox/locked/report.txt").exists)  # fmt: skip


def read_only_for_a_tool(box: Box) -> Fault:
    box.read_only("locked")

    def write_file(args: Mapping[str, Any]) -> tuple[bool, str]:
        try:
            (box.work / args["file"]).write_text(args["content"])
        except OSError as error:
            return False, f"Error: EROFS: {os.strerror(error.errno or 0)}: '{args['file']}'"
        return True, "ok"

    return Fault(name="a tool writes to a read-only folder", category="permission_denied", tool="write_file", args={"file": "locked/report.md", "content": "right"},
                 lent={"write_file": write_file}, healed=lambda: box.has(".unstuck/sandbox/locked/report.md", "right"))  # fmt: skip


def read_only_redirect(box: Box) -> Fault:
    box.read_only("locked")
    return Fault(
        name="output goes to a read-only folder",
        category="permission_denied",
        command="echo right > locked/log.txt",
        healed=lambda: box.has(".unstuck/sandbox/locked/log.txt", "right"),
    )


def not_executable(box: Box) -> Fault:
    box.write("run.sh", "#!/bin/bash\necho ran > ran.txt\n")
    return Fault(
        name="a script is not executable",
        category="permission_denied",
        command="./run.sh",
        healed=lambda: box.has("ran.txt", "ran"),
    )


def denied_mode(box: Box) -> Fault:
    if os.geteuid() == 0:
        raise CannotBreak("no mode keeps a superuser out")
    box.write("secret.txt", "right", mode=0o000)
    return Fault(
        name="a file's mode keeps its owner out", category="permission_denied", command="cat secret.txt", prints="right"
    )


# --- space, ports, memory --------------------------------------------------------------------------------------------


def full_of_caches(box: Box) -> Fault:
    disk = box.mount("disk", size="512k")
    (disk / ".git").mkdir()
    (disk / ".pytest_cache").mkdir()
    (disk / "source.bin").write_bytes(b"x" * SOURCE_BYTES)
    fill(disk / ".pytest_cache" / "blob")
    return Fault(
        name="a disk is full of caches",
        category="disk_full",
        command="cd disk && cp source.bin copy.bin",
        healed=lambda: (disk / "copy.bin").exists() and (disk / "copy.bin").stat().st_size == SOURCE_BYTES,
    )


def full_but_packable(box: Box) -> Fault:
    disk = box.mount("disk", size="512k")
    box.write("zeros.bin", "0" * 300_000)
    (disk / "filler").write_bytes(b"y" * 450_000)
    return Fault(
        name="a disk is nearly full, and only another file would fit",
        category="disk_full",
        command="cp zeros.bin disk/zeros.bin",
        healed=lambda: False,
        needs_person=True,
    )


def port_taken(box: Box) -> Fault:
    holder = box.stack.enter_context(socket.socket())
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    port = holder.getsockname()[1]
    box.write(
        "serve.py",
        "import socket, sys\ns = socket.socket()\ns.bind(('127.0.0.1', int(sys.argv[1])))\nopen('port.txt', 'w').write(sys.argv[1])\n",
    )
    return Fault(
        name="a port is in use",
        category="port_in_use",
        command=f"python3 serve.py {port}",
        healed=(box.work / "port.txt").exists,
    )


def too_little_memory(box: Box) -> Fault:
    box.write(
        "work.py",
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\nbytearray(int(sys.argv[2]) * (60 << 20))\nopen('ok.txt', 'w').write('ok')\n",
    )
    return Fault(
        name="too many workers for the memory",
        category="out_of_memory",
        command="python3 work.py -j 8",
        healed=lambda: box.has("ok.txt", "ok"),
    )


# --- repositories, packages, settings --------------------------------------------------------------------------------


def stale_lock(box: Box) -> Fault:
    box.repository()
    box.write("b.txt", "two\n")
    lock = box.work / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (lock.stat().st_mtime - 600,) * 2)
    return Fault(
        name="a dead git left its lock",
        category="resource_busy",
        command="git add b.txt",
        healed=lambda: "b.txt" in box.git("ls-files"),
    )


def half_a_merge(box: Box) -> Fault:
    two_branches(box)
    box.git("merge", "--no-commit", "--no-ff", "other")
    box.git("branch", "third", "HEAD")
    return Fault(
        name="a merge is half done",
        category="git_refused",
        command="git merge third",
        once=True,
        env=author(box),
        healed=lambda: not (box.work / ".git/MERGE_HEAD").exists(),
    )


def half_a_conflict(box: Box) -> Fault:
    two_branches(box, conflicting=True)
    box.git("merge", "other")
    return Fault(
        name="a conflict stands in the way",
        category="merge_conflict",
        command="git checkout other",
        env=author(box),
        healed=lambda: "other" in box.git("branch", "--show-current"),
    )


def changes_in_the_way(box: Box) -> Fault:
    two_branches(box, conflicting=True)
    box.write("a.txt", "unsaved work\n")
    return Fault(name="unsaved changes stand in the way", category="git_refused", command="git checkout other", env=author(box),
                 healed=lambda: "unsaved work" in box.git("stash", "show", "-p") and "other" in box.git("branch", "--show-current"))  # fmt: skip


def nobody_commits(box: Box) -> Fault:
    box.repository()
    box.write("b.txt", "two\n")
    box.git("add", "-A")
    nobody = {
        "HOME": str(box.base / "home"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.useConfigOnly",
        "GIT_CONFIG_VALUE_0": "true",
    }
    return Fault(
        name="git does not know who commits",
        category="environment_missing",
        command="git commit -qm second",
        once=True,
        env=nobody,
        healed=lambda: "second" in box.git("log", "--format=%s"),
    )


def module_in_the_project(box: Box) -> Fault:
    box.write("vendor/greeting.py", "def greet(): return 'hello'\n")
    box.write("main.py", "import greeting\nopen('out.txt', 'w').write(greeting.greet())\n")
    return Fault(
        name="a module lies in a folder of the project",
        category="dependency_missing",
        command="python3 main.py",
        healed=lambda: box.has("out.txt", "hello"),
    )


def unset_variable(box: Box) -> Fault:
    box.write(".env", "API_TOKEN=abc\n")
    box.write("main.py", "import os\nopen('out.txt', 'w').write(os.environ['API_TOKEN'])\n")
    return Fault(
        name="a variable stands in .env only",
        category="environment_missing",
        command="python3 main.py",
        healed=lambda: box.has("out.txt", "abc"),
    )


def two_branches(box: Box, *, conflicting: bool = False) -> None:
    box.repository()
    box.git("checkout", "-qb", "other")
    box.write("a.txt" if conflicting else "b.txt", "theirs\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "Theirs")
    box.git("checkout", "-q", "main")
    box.write("a.txt" if conflicting else "c.txt", "ours\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "Ours")


def author(box: Box) -> dict[str, str]:
    return {
        "HOME": str(box.base / "home"),
        "GIT_AUTHOR_NAME": "Box",
        "GIT_AUTHOR_EMAIL": "b@b",
        "GIT_COMMITTER_NAME": "Box",
        "GIT_COMMITTER_EMAIL": "b@b",
    }


def fill(path: Any) -> None:
    try:
        with path.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                continue
    except OSError:
        return


FAULTS = (
    wrong_case,
    wrong_spelling,
    wrong_place,
    wrong_ending,
    wrong_case_for_a_tool,
    hostile_name,
    no_folder,
    only_an_example,
    read_only_folder,
    read_only_for_a_tool,
    read_only_redirect,
    not_executable,
    denied_mode,
    full_of_caches,
    full_but_packable,
    port_taken,
    too_little_memory,
    stale_lock,
    half_a_merge,
    half_a_conflict,
    changes_in_the_way,
    nobody_commits,
    module_in_the_project,
    unset_variable,
)
