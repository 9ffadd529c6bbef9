"""Faults of calls: missing commands and tools, wrong arguments."""

import subprocess
from collections.abc import Mapping
from typing import Any

from benchmarks.faults.box import Box, Fault, tarball

SCHEMA = {
    "type": "object",
    "properties": {"file": {"type": "string"}, "count": {"type": "integer"}, "strict": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["file", "count"],
    "additionalProperties": False,
}  # fmt: skip
TOOL_CHARS = 30_000
OK: tuple[int, Mapping[str, str]] = (200, {})


def _archive(path: str, _count: int) -> tuple[int, Mapping[str, str], bytes]:
    return (*OK, tarball("repo-abc")) if path.endswith(".tar.gz") else (404, {}, b"")


def no_git(box: Box) -> Fault:
    port = box.serve(_archive)
    return Fault(name="git is not on PATH", category="command_not_found", command=f"git clone http://127.0.0.1:{port}/user/repo",
                 env=box.path_with(without=("git",)), healed=lambda: box.has("repo/README.md", "repository"))  # fmt: skip


def no_git_for_a_branch(box: Box) -> Fault:
    port = box.serve(lambda path, count: _archive(path, count) if "refs/heads/dev" in path else (404, {}, b""))
    return Fault(name="git is not on PATH, a branch is wanted", category="command_not_found",
                 command=f"git clone -b dev http://127.0.0.1:{port}/user/repo.git copy", env=box.path_with(without=("git",)),
                 healed=lambda: box.has("copy/README.md", "repository"))  # fmt: skip


def no_python(box: Box) -> Fault:
    box.write("hello.py", "open('out.txt', 'w').write('hello')\n")
    return Fault(
        name="python is called python3",
        category="command_not_found",
        command="python hello.py",
        env=box.path_with(),
        healed=lambda: box.has("out.txt", "hello"),
    )


def no_interpreter(box: Box) -> Fault:
    box.write("hello.py", "#!/usr/bin/env python\nopen('out.txt', 'w').write('hello')\n", mode=0o755)
    return Fault(
        name="a script's interpreter is missing",
        category="command_not_found",
        command="./hello.py",
        env=box.path_with(),
        healed=lambda: box.has("out.txt", "hello"),
    )


def no_curl(box: Box) -> Fault:
    port = box.serve(lambda _path, _count: (*OK, b"data"))
    return Fault(name="curl is not on PATH", category="command_not_found", command=f"curl -o data.txt http://127.0.0.1:{port}/data.txt",
                 env=box.path_with(without=("curl",)), healed=lambda: box.has("data.txt", "data"))  # fmt: skip


def no_downloader(box: Box) -> Fault:
    port = box.serve(lambda _path, _count: (*OK, b"data"))
    return Fault(name="neither curl nor wget is on PATH", category="command_not_found", command=f"wget http://127.0.0.1:{port}/data.txt",
                 env=box.path_with(without=("curl", "wget")), healed=lambda: box.has("data.txt", "data"))  # fmt: skip


def binary_in_the_project(box: Box) -> Fault:
    box.script("tools/bin/mygen", "echo made > made.txt")
    return Fault(
        name="the binary lies in a folder of the project",
        category="command_not_found",
        command="mygen --all",
        env=box.path_with(),
        healed=lambda: box.has("made.txt", "made"),
    )


def misspelled_command(box: Box) -> Fault:
    box.write("hello.py", "open('out.txt', 'w').write('hello')\n")
    return Fault(
        name="the command is misspelled",
        category="command_not_found",
        command="pyhton3 hello.py",
        env=box.path_with(),
        healed=lambda: box.has("out.txt", "hello"),
    )


def no_ripgrep(box: Box) -> Fault:
    box.write("src/a.txt", "needle\n")
    return Fault(
        name="rg is not on PATH",
        category="command_not_found",
        command="rg needle src",
        env=box.path_with(),
        prints="src/a.txt:1:needle",
    )


def windows_line_ends(box: Box) -> Fault:
    (box.work / "run.sh").write_bytes(b"#!/bin/bash\r\necho ran > ran.txt\r\n")
    (box.work / "run.sh").chmod(0o755)
    return Fault(
        name="a script has Windows line ends",
        category="command_not_found",
        command="./run.sh",
        healed=lambda: box.has("ran.txt", "ran"),
    )


def nobody_has_it(box: Box) -> Fault:
    return Fault(
        name="a command that nobody knows",
        category="command_not_found",
        command="frobnicate --now",
        env=box.path_with(),
        healed=lambda: False,
        needs_person=True,
    )


def unknown_tool(box: Box) -> Fault:
    box.write("README.md", "x")

    def refuse(_args: Mapping[str, Any]) -> tuple[bool, str]:
        return False, "Unknown tool: repo_browser"

    return Fault(name="a tool that is not allowed", category="tool_not_found", tool="repo_browser", args={"path": "."},
                 lent={"repo_browser": refuse, "read_dir": lambda args: (True, " ".join(path.name for path in (box.work / args["dir"]).iterdir()))}, prints="README.md")  # fmt: skip


def misspelled_tool(box: Box) -> Fault:
    box.write("README.md", "hello")
    seen: list[str] = []

    def read_file(args: Mapping[str, Any]) -> tuple[bool, str]:
        seen.append((box.work / args["file"]).read_text())
        return True, seen[-1]

    return Fault(name="a tool's name is misspelled", category="tool_not_found", tool="readFile", args={"file": "README.md"},
                 lent={"readFile": lambda _: (False, "Unknown tool: readFile"), "read_file": read_file}, healed=lambda: seen == ["hello"])  # fmt: skip


def strict_tool(seen: list[Mapping[str, Any]]) -> Any:
    def count_lines(args: Mapping[str, Any]) -> tuple[bool, str]:
        """Refuse what the schema refuses, as a real tool does."""
        for name in ("file", "count"):
            if name not in args:
                return False, f"Missing required parameter: {name}"
        for name, value in args.items():
            wanted = SCHEMA["properties"].get(name)  # type: ignore[attr-defined]  # a mapping
            if wanted is None:
                return False, f"Invalid arguments: unknown parameter {name}"
            kinds: Any = {"string": str, "integer": int, "boolean": bool, "array": list}
            if not isinstance(value, kinds[wanted["type"]]) or (
                wanted["type"] == "integer" and isinstance(value, bool)
            ):
                return False, f"Invalid arguments: {name} should be {wanted['type']}, got {type(value).__name__}"
        seen.append(args)
        return True, "ok"

    return count_lines


def _tool_fault(name: str, args: Mapping[str, Any], *, schema: bool = True) -> Fault:
    seen: list[Mapping[str, Any]] = []
    return Fault(name=name, category="invalid_arguments", tool="count_lines", args=args, schema=SCHEMA if schema else None,
                 lent={"count_lines": strict_tool(seen)}, healed=lambda: len(seen) == 1)  # fmt: skip


def wrong_types(_box: Box) -> Fault:
    return _tool_fault("arguments of the wrong type", {"file": "a.txt", "count": "5", "strict": "yes", "tags": "a, b"})


def wrong_type_without_schema(_box: Box) -> Fault:
    return _tool_fault("a wrong type that only the message names", {"file": "a.txt", "count": "12"}, schema=False)


def wrong_names(_box: Box) -> Fault:
    return _tool_fault("arguments of the wrong name", {"path": "a.txt", "counts": 3})


def unknown_argument(_box: Box) -> Fault:
    return _tool_fault("an argument that the tool does not know", {"file": "a.txt", "count": 3, "verbosity": "high"})


def unknown_value(_box: Box) -> Fault:
    return Fault(
        **{
            **_fields(_tool_fault("a required value that nobody knows", {"file": "a.txt"})),
            "needs_person": True,
            "healed": lambda: False,
        }
    )


def _fields(fault: Fault) -> dict[str, Any]:
    return {name: getattr(fault, name) for name in Fault.__dataclass_fields__}


def misspelled_subcommand(box: Box) -> Fault:
    box.repository()
    return Fault(
        name="a subcommand is misspelled", category="invalid_arguments", command="git stauts", prints="On branch main"
    )


def unknown_option(box: Box) -> Fault:
    box.write("x.txt", "x")
    return Fault(
        name="an option that the program does not know",
        category="invalid_arguments",
        command="cp --quickly x.txt y.txt",
        needs_person=True,
    )


def flood(box: Box) -> Fault:
    """Lend a tool that gives up on long output; the remedy must run the command in another way."""
    box.script("chatty.sh", "seq 1 20000")

    def run_bash(args: Mapping[str, Any]) -> tuple[bool, str]:
        done = subprocess.run(["bash", "-c", args["script"]], cwd=box.work, capture_output=True, text=True, check=False)
        if len(done.stdout) > TOOL_CHARS:
            return False, "Error: output is too large (ERR_CHILD_PROCESS_STDIO_MAXBUFFER)"
        return done.returncode == 0, done.stdout

    return Fault(
        name="a command prints too much for the tool",
        category="output_flood",
        tool="run_bash",
        args={"script": "./chatty.sh"},
        lent={"run_bash": run_bash},
        healed=lambda: box.has(".unstuck/remedy-output.log", "20000"),
    )


FAULTS = (
    flood,
    no_git,
    no_git_for_a_branch,
    no_python,
    no_interpreter,
    no_curl,
    no_downloader,
    binary_in_the_project,
    misspelled_command,
    no_ripgrep,
    windows_line_ends,
    nobody_has_it,
    unknown_tool,
    misspelled_tool,
    wrong_types,
    wrong_type_without_schema,
    wrong_names,
    unknown_argument,
    unknown_value,
    misspelled_subcommand,
    unknown_option,
)
