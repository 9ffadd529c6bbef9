"""Edge: Ask why as often as the evidence answers: the call, its message, what is missing, what should have provided it, what changed since."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from unstuck.diagnosis import Kind
from unstuck.remedies import situation as reading
from unstuck.remedies.machine import names, said
from unstuck.remedies.situation import Situation
from unstuck.tell import one_line

MANIFESTS = (
    "pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.cfg", "setup.py", "Pipfile", "package.json", "Cargo.toml", "go.mod", "Gemfile", "composer.json",
)  # fmt: skip
INSTALLED = {"package.json": ("node_modules",), "Gemfile": ("vendor",), "composer.json": ("vendor",)}
PYTHON_INSTALLED = (".venv", "venv")
ENV_FILES = (".env", ".env.local", ".env.example", ".env.sample", ".env.template", "docker-compose.yml", "README.md")
MOST_BYTES = 500_000
COMMIT = "--format=%h of %cs: %s"
CHARS = 200


class Cause(NamedTuple):
    says: str
    evidence: str  # where it is seen


def causes(s: Situation, exit_code: int | None, cwd: Path, root: Path) -> tuple[tuple[Cause, ...], str]:
    """Return the chain of causes, the first being the failure itself, and why it goes no further."""
    called = one_line(s.call.line or s.call.tool, CHARS)
    chain = [Cause(f"{called or 'A call'} failed" + (f" with exit code {exit_code}" if exit_code else ""), "the call")]
    if s.message:
        chain.append(Cause(f"because: {one_line(s.message, CHARS)}", "its output"))
    topic = next((topic for topic in TOPICS if s.kind in topic.kinds), None)
    subject = topic.subject(s) if topic else ""
    if topic is None or not subject:
        return tuple(chain), "the output names nothing that is missing."
    chain.append(Cause(f"because {topic.noun} {one_line(subject, CHARS)} is {topic.state}", "its output"))
    found = list(topic.provider(subject, s, cwd, root))
    return (
        *chain,
        *found,
    ), topic.end if found else f"nothing here says what should have provided {one_line(subject, CHARS)}."


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
        yield Cause(
            f"because the package {its}, which holds it, is not installed on this machine", "the folders on PATH"
        )


def _package(name: str, _s: Situation, _cwd: Path, root: Path) -> Iterator[Cause]:
    spelled = re.sub(r"[-_]", "[-_]", re.sub(r"[^\w-]", ".", name))
    shape = re.compile(rf"(?<![\w-]){spelled}(?![\w-])", re.IGNORECASE)
    present = [file for file in MANIFESTS if (root / file).is_file()]
    declared = next((file for file in present if shape.search(_text(root / file))), "")
    if not declared:
        if present:
            yield Cause(f"because {', '.join(present)} does not declare {name}", present[0])
        return
    folder = next((one for one in INSTALLED.get(declared, PYTHON_INSTALLED) if (root / one).is_dir()), "")
    if not folder:
        yield Cause(f"because {declared} declares it, and nothing is installed in this project", declared)
    elif _changed(root / declared) > _changed(root / folder):
        yield Cause(f"because {declared} declares it and is newer than {folder}", declared)
    else:
        yield Cause(f"because {declared} declares it, and {folder} has it not", declared)
    if commit := said(["git", "log", "-1", COMMIT, f"-S{name}", "--", declared], root):
        yield Cause(f"since {one_line(commit, CHARS)}", f"git log of {declared}")


def _file(name: str, _s: Situation, cwd: Path, _root: Path) -> Iterator[Cause]:
    if commit := said(["git", "log", "-1", COMMIT, "--diff-filter=D", "--", f":(literal){name}"], cwd):
        yield Cause(f"because it was deleted in {one_line(commit, CHARS)}", "git log")
        return
    if rule := said(["git", "check-ignore", "-v", "--", name], cwd):
        yield Cause(
            f"because git ignores it ({one_line(rule.split(chr(9))[0], CHARS)}), so that no checkout brings it",
            "git check-ignore",
        )
    folder = (cwd / name).parent
    if not folder.is_dir():
        yield Cause(
            f"because its folder {one_line(str(Path(name).parent), CHARS)} does not exist either", "the file system"
        )
        return
    example = next(
        (
            one
            for one in sorted(names(folder))
            if one.startswith(f"{Path(name).name}.") or one == f"{Path(name).name}-example"
        ),
        "",
    )
    if example:
        yield Cause(
            f"because only {one_line(example, CHARS)} is there, and nobody made the file from it", "the file system"
        )


def _denied(name: str, _s: Situation, cwd: Path, _root: Path) -> Iterator[Cause]:
    path = cwd / name
    subject = path if path.exists() else path.parent
    if not subject.exists():
        return
    status = subject.stat()
    if os.statvfs(subject).f_flag & os.ST_RDONLY:
        yield Cause(f"because {one_line(str(subject), CHARS)} is on a read-only file system", "the file system")
    else:
        yield Cause(
            f"because its mode is {status.st_mode & 0o7777:04o} and its owner is {status.st_uid}; we are {os.geteuid()}",
            "the file system",
        )


def _variable(name: str, _s: Situation, _cwd: Path, root: Path) -> Iterator[Cause]:
    file = next((one for one in ENV_FILES if re.search(rf"\b{re.escape(name)}\b", _text(root / one))), "")
    if file:
        yield Cause(f"because {file} names it, and nothing loaded that into this call", file)


def _nobody(_name: str, _s: Situation, _cwd: Path, _root: Path) -> Iterator[Cause]:
    return iter(())


class _Topic(NamedTuple):
    kinds: frozenset[Kind]
    noun: str
    state: str
    subject: Callable[[Situation], str]
    provider: Callable[[str, Situation, Path, Path], Iterator[Cause]]
    end: str = "nothing here says why."


TOPICS = (
    _Topic(frozenset({Kind.COMMAND_NOT_FOUND}), "the command", "missing", reading.command, _command),
    _Topic(frozenset({Kind.DEPENDENCY_MISSING, Kind.MODULE_MISSING, Kind.PACKAGE_NOT_FOUND}), "the package", "missing", reading.package, _package),
    _Topic(frozenset({Kind.FILE_NOT_FOUND}), "the file", "missing", reading.path, _file),
    _Topic(frozenset({Kind.PERMISSION_DENIED}), "the path", "not accessible", reading.path, _denied),
    _Topic(frozenset({Kind.ENVIRONMENT_MISSING}), "the variable", "not set", reading.variable, _variable),
    _Topic(frozenset({Kind.PORT_IN_USE}), "the port", "taken", lambda s: str(reading.port(s) or ""), _nobody),
    _Topic(frozenset({Kind.NETWORK_ERROR, Kind.RATE_LIMITED}), "the server", "not answering as it should", reading.host, _nobody),
)  # fmt: skip


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
