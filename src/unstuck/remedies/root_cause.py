"""Edge: Ask why a call failed, as long as what is seen answers: the call, its message, what is missing, what should have provided it, what changed since."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from unstuck.model.failure import Kind
from unstuck.model.text import one_line
from unstuck.remedies import situation as reading
from unstuck.remedies.chain import listed
from unstuck.remedies.machine import COMMIT, beginning, is_inside, listening, names, said, seen, taken_away
from unstuck.remedies.situation import Situation

INSTALLED = {"package.json": ("node_modules",), "Gemfile": ("vendor",), "composer.json": ("vendor",)}
PYTHON_INSTALLED = (".venv", "venv")
MOST_BYTES = 500_000
CHARS = 200


class Cause(NamedTuple):
    says: str
    evidence: str  # where it is seen


def causes(s: Situation, exit_code: int | None) -> tuple[tuple[Cause, ...], str]:
    """Return the chain of causes, the first being the failure itself, and why it goes no further."""
    cwd, root = Path(s.around.cwd), Path(s.around.root)
    called = one_line(s.call.line or s.call.tool, CHARS)
    chain = [Cause(f"{called or 'A call'} failed" + (f" with exit code {exit_code}" if exit_code else ""), "the call")]
    if s.message:
        chain.append(Cause(f"because: {one_line(s.message, CHARS)}", "its output"))
    topic = next((topic for topic in TOPICS if s.kind in topic[0]), None)
    subject = topic[3](s) if topic else ""
    if topic is None or not subject:
        found = list(_place(s, cwd, root))
        return (*chain, *found), "nothing here says why." if found else "the output names nothing that is missing."
    _, noun, is_so, _, provider = topic
    chain.append(Cause(f"because {noun} {one_line(subject, CHARS)} is {is_so}", "its output"))
    found = list(provider(subject, s, cwd, root))
    unsaid = f"nothing here says why {one_line(subject, CHARS)} is {is_so}."
    return (*chain, *found), "nothing here says why." if found else unsaid


def _place(s: Situation, cwd: Path, root: Path) -> Iterator[Cause]:
    """Yield the first place in the workspace that the output names, and who changed it last."""
    places = [
        (file, line) for file, line in reading.places(s) if is_inside(cwd / file, root) and seen((cwd / file).is_file)
    ]
    for file, line in places[:1]:
        yield Cause(f"because of {one_line(file, CHARS)}{f':{line}' if line else ''}", "its output")
        if said(["git", "status", "--porcelain", "--", f":(literal){file}"], cwd):
            yield Cause("since it was changed without a commit", "git status")
        elif commit := said(["git", "log", "-1", COMMIT, "--", f":(literal){file}"], cwd):
            yield Cause(f"since it was last changed in {one_line(commit, CHARS)}", "git log")


# --- what should have provided it ---------------------------------------------------------------------------------


def _command(name: str, s: Situation, _cwd: Path, root: Path) -> Iterator[Cause]:
    if own := s.around.elsewhere.get(name):
        yield Cause(f"because {Path(own).parent} holds it and is not on PATH", own)
        return
    language = next((language for language, known in s.table("installers").items() if name in known), "")
    if language:
        yield from _package(name, s, root, root)
    elif name in s.table("packages"):
        package = s.table("packages")[name]
        its = package.get(s.around.manager) or package.get("*") or name
        says = f"because the package {its}, which holds it, is not installed on this machine"
        yield Cause(says, "the folders on PATH")


def _package(name: str, s: Situation, _cwd: Path, root: Path) -> Iterator[Cause]:
    if gone := s.around.gone:
        yield Cause(f"because {one_line(gone.old, CHARS)} was {one_line(gone.told, CHARS)}", "git log")
        return
    spelled = re.sub(r"[-_]", "[-_]", re.sub(r"[^\w-]", ".", name))
    shape = re.compile(rf"(?<![\w-]){spelled}(?![\w-])", re.IGNORECASE)
    present = [file for file in listed("declare") if (root / file).is_file()]
    declared = next((file for file in present if shape.search(beginning(root / file, MOST_BYTES))), "")
    if not declared:
        if present:
            yield Cause(f"because {', '.join(present)} does not declare {name}", present[0])
        return
    folder = next((one for one in INSTALLED.get(declared, PYTHON_INSTALLED) if (root / one).is_dir()), "")
    if not folder:
        yield Cause(f"because {declared} declares it, and nothing is installed in this project", declared)
    elif (root / declared).stat().st_mtime > (root / folder).stat().st_mtime:
        yield Cause(f"because {declared} declares it and is newer than {folder}", declared)
    else:
        yield Cause(f"because {declared} declares it, and {folder} has it not", declared)
    if commit := said(["git", "log", "-1", COMMIT, f"-S{name}", "--", declared], root):
        yield Cause(f"since {one_line(commit, CHARS)}", f"git log of {declared}")


def _file(name: str, _s: Situation, cwd: Path, _root: Path) -> Iterator[Cause]:
    if gone := taken_away((name,), cwd):
        yield Cause(f"because it was {one_line(gone.told, CHARS)}", "git log")
        return
    if rule := one_line(said(["git", "check-ignore", "-v", "--", name], cwd).split("\t")[0], CHARS):
        yield Cause(f"because git ignores it ({rule}), so that no checkout brings it", "git check-ignore")
    own, folder, on_disk = Path(name).name, (cwd / name).parent, "the file system"
    if not seen(folder.is_dir):
        yield Cause(f"because its folder {one_line(str(Path(name).parent), CHARS)} does not exist either", on_disk)
        return
    examples = [one for one in sorted(names(folder)) if one.startswith(f"{own}.") or one == f"{own}-example"]
    if examples:
        yield Cause(f"because only {one_line(examples[0], CHARS)} is there, and nobody made the file from it", on_disk)


def _denied(name: str, _s: Situation, cwd: Path, _root: Path) -> Iterator[Cause]:
    subject = next((path for path in (cwd / name, (cwd / name).parent) if seen(path.exists)), None)
    if subject is None:
        return
    status = subject.stat()
    if os.statvfs(subject).f_flag & os.ST_RDONLY:
        yield Cause(f"because {one_line(str(subject), CHARS)} is on a read-only file system", "the file system")
    else:
        mode = f"{status.st_mode & 0o7777:04o} and its owner is {status.st_uid}; we are {os.geteuid()}"
        yield Cause(f"because its mode is {mode}", "the file system")


def _variable(name: str, _s: Situation, _cwd: Path, root: Path) -> Iterator[Cause]:
    shape = rf"\b{re.escape(name)}\b"
    if file := next(
        (one for one in listed("names_variables") if re.search(shape, beginning(root / one, MOST_BYTES))), ""
    ):
        yield Cause(f"because {file} names it, and nothing loaded that into this call", file)


def _port_taken(name: str, _s: Situation, _cwd: Path, _root: Path) -> Iterator[Cause]:
    sockets = listening(name)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is another user's, or has ended
            if any(str((process / "fd" / number).readlink()) in sockets for number in names(process / "fd")):
                program = one_line(beginning(process / "comm", CHARS), CHARS)
                yield Cause(f"because {program} (process {process.name}) listens there", str(process / "fd"))
                return


def _silent(name: str, _s: Situation, _cwd: Path, _root: Path) -> Iterator[Cause]:
    host, _, number = name.rpartition(":")
    if host in reading.LOOPBACK and not listening(number):
        yield Cause(f"because nothing on this machine listens on port {number}", "/proc/net/tcp")


Provider = Callable[[str, Situation, Path, Path], Iterator[Cause]]
TOPICS: tuple[tuple[frozenset[Kind], str, str, Callable[[Situation], str], Provider], ...] = (
    (frozenset({Kind.COMMAND_NOT_FOUND}), "the command", "missing", reading.command, _command),
    (frozenset({Kind.DEPENDENCY_MISSING, Kind.MODULE_MISSING, Kind.PACKAGE_NOT_FOUND}), "the package", "missing", reading.package, _package),
    (frozenset({Kind.FILE_NOT_FOUND}), "the file", "missing", reading.path, _file),
    (frozenset({Kind.PERMISSION_DENIED}), "the path", "not accessible", reading.path, _denied),
    (frozenset({Kind.ENVIRONMENT_MISSING}), "the variable", "not set", reading.variable, _variable),
    (frozenset({Kind.PORT_IN_USE}), "the port", "taken", lambda s: str(reading.port(s) or ""), _port_taken),
    (frozenset({Kind.NETWORK_ERROR, Kind.RATE_LIMITED}), "the server", "not answering as it should", reading.host, _silent),
)  # fmt: skip
"""Kinds of failures, what is missing, how that is said, what names it, and what finds out who should have provided it."""
