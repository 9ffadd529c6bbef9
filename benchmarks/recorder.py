"""Run a program as if nothing were between, and write down how it was called.

`by_hand.py` puts a script that starts this file into the place of the program on PATH. It imports nothing that takes
long to load, since it runs around every command.
"""

import os
import sys
import time

KEPT = ("GIT_", "LC_ALL", "LANGUAGE")


def main() -> None:
    file, program, *arguments = sys.argv[1:]
    at = time.time()
    given = sys.stdin.buffer.read()
    out, code = _run(program, arguments, given, f"{file}.{os.getpid()}")
    step = {
        "at": at,
        "parent": os.getppid(),
        "argv": (os.path.basename(program), *arguments),  # noqa: PTH119 - loading pathlib takes long
        "cwd": os.getcwd(),  # noqa: PTH109 - as above
        "env": {name: value for name, value in os.environ.items() if name.startswith(KEPT)},
        "stdin": given.decode("utf-8", "surrogateescape"),
        "stdout": out.decode("utf-8", "surrogateescape"),
        "exit_code": code,
    }
    with open(file, "a", encoding="ascii") as record:  # noqa: PTH123 - as above
        record.write(f"{step!a}\n")
    sys.stdout.buffer.write(out)
    sys.stdout.flush()
    os._exit(code)


def _run(program: str, arguments: list[str], given: bytes, place: str) -> tuple[bytes, int]:
    source, target = f"{place}.in", f"{place}.out"
    with open(source, "wb") as file:  # noqa: PTH123 - as above
        file.write(given)
    files = [
        (os.POSIX_SPAWN_OPEN, 0, source, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, target, os.O_WRONLY | os.O_CREAT, 0o600),
    ]
    child = os.posix_spawn(program, [program, *arguments], os.environ, file_actions=files)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(target, "rb") as file:  # noqa: PTH123 - as above
        return file.read(), code


if __name__ == "__main__":
    main()
