"""The guard that refuses tool calls that would destroy work."""

import fnmatch
import os
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from unstuck.hook.hook_input import HookEvent
from unstuck.hook.workspace_head import has_hook_settings, root_of
from unstuck.model.text import one_line
from unstuck.toolchain.shell import parts, unwrapped, words

if TYPE_CHECKING:
    from unstuck.model.config import Config

Stake = Literal["always", "changes", "untracked", "ignored", "stashes", "commits", "outside", "beyond"]
"""The work that must exist for a danger to be real.

`outside` is a path outside of the workspace or the whole workspace. `beyond` is only a path outside of it.
"""

DEEPEST = 3
LONGEST = 20_000
INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
KNOWN_VARIABLES = re.compile(r"\$\{?(HOME|PWD|TMPDIR)\}?")
GLOB = re.compile(r"[*?\[{]")
REDIRECT = re.compile(r"(?:^|[^<>&\d])\d?>{1,2}\|?\s*([^\s;&|<>]+)")
SHELL_PROGRAMS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
WRITERS = frozenset({"rm", "mv", "cp", "tee", "truncate", "shred", "ln", "dd", "unlink"})
KEEP_FIRST = "Keep them first: `git stash push --include-untracked` or a commit; then do it."
ASIDE = "Remove only what lies in the workspace, by its name; move the rest aside (`mv X X.old`), or ask the person."
GIT_SECONDS = 10
FEW = 3
EVERYTHING = ("*", ".*", "{*,.*}")


class Danger(NamedTuple):
    """A part of a command line that destroys work, if that work exists."""

    what: str
    instead: str
    stake: Stake = "always"
    paths: tuple[str, ...] = ()
    """The threatened paths of git, branches, or paths on disk."""
    folder: str = ""
    """Its working folder, relative to the folder of the shell."""


def dangers(command: str, environment: Mapping[str, str]) -> tuple[Danger, ...]:
    """Return the dangers of a command line."""
    return tuple(_dangers(command[:LONGEST], environment, "", DEEPEST))


def written(command: str) -> tuple[str, ...]:
    """Return the files that a command line writes, moves or removes, as far as its words show."""
    files = [*REDIRECT.findall(command[:LONGEST])]
    for part in parts(command[:LONGEST]):
        program, rest = _call(part)
        in_place = program in {"sed", "perl", "ruby"} and any(word.startswith("-") and "i" in word for word in rest)
        if (
            program in WRITERS
            or in_place
            or (program == "git" and rest[:1] in (["rm"], ["mv"], ["checkout"], ["restore"]))
        ):
            files += [word for word in rest if not word.startswith("-")]
    return tuple(word.strip("'\"") for word in files)


def _dangers(command: str, environment: Mapping[str, str], folder: str, depth: int) -> Iterator[Danger]:
    if depth == 0:
        return
    for inner in INNER.findall(command):
        yield from _dangers("".join(inner), environment, folder, depth - 1)
    for part in parts(command):
        program, rest = _call(part)
        if program == "cd" and rest and not rest[0].startswith("-"):
            folder = posixpath.join(folder, _expanded(rest[0], environment))
        elif program in SHELL_PROGRAMS or program == "eval":
            scripts = rest if program == "eval" else _script(rest)
            yield from _dangers(" ".join(scripts), environment, folder, depth - 1)
        elif program == "git":
            yield from _git(rest, environment, folder)
        elif program in PROGRAMS:
            for danger in PROGRAMS[program](rest):
                paths = tuple(_expanded(path, environment) for path in danger.paths)
                yield danger._replace(paths=paths, folder=folder)


def _call(part: str) -> tuple[str, list[str]]:
    """Return the program of a simple command without wrappers such as sudo, with its arguments."""
    call = words(unwrapped(part))
    return (call[0].rsplit("/", 1)[-1], call[1:]) if call else ("", [])


def _script(words: Sequence[str]) -> list[str]:
    """Return the script after the option -c of a shell."""
    for place, word in enumerate(words):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return list(words[place + 1 : place + 2])
    return []


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    if path == "~" or path.startswith("~/"):
        path = environment.get("HOME", "~") + path[1:]
    return KNOWN_VARIABLES.sub(lambda match: environment.get(match[1], match[0]), path)


def _flags(words: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return the options, with bundled letters split, and the other words."""
    options, rest = set[str](), list[str]()
    for place, word in enumerate(words):
        if word == "--":
            return options, [*rest, *words[place + 1 :]]
        if word.startswith("--"):
            options.add(word.split("=")[0])
        elif word.startswith("-") and len(word) > 1:
            options.update(f"-{letter}" for letter in word[1:])
        else:
            rest.append(word)
    return options, rest


# --- git --------------------------------------------------------------------------------------------------------------


def _git(words: Sequence[str], environment: Mapping[str, str], folder: str) -> Iterator[Danger]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"-C", "--git-dir", "--work-tree", "-c", "--namespace"} and rest:
            value = rest.pop(0)
            folder = posixpath.join(folder, _expanded(value, environment)) if option == "-C" else folder
    if rest and rest[0] in GIT:
        for danger in GIT[rest[0]](rest[1:]):
            yield danger._replace(folder=folder)


def _reset(words: Sequence[str]) -> Iterator[Danger]:
    if "--hard" in words:
        yield Danger("`git reset --hard` would throw unsaved changes away", KEEP_FIRST, "changes")


def _clean(words: Sequence[str]) -> Iterator[Danger]:
    options, paths = _flags(words)
    if options & {"-f", "--force"} and not options & {"-n", "--dry-run"}:
        stake: Stake = "ignored" if options & {"-x", "-X"} else "untracked"
        instead = "See what it would delete with `git clean -nd`, and remove by name what you made yourself; or `git stash push --include-untracked`."
        yield Danger("`git clean` would delete files that git does not have", instead, stake, tuple(paths))


def _stash(words: Sequence[str]) -> Iterator[Danger]:
    if words[:1] in (["clear"], ["drop"]):
        instead = "Leave the stash as it is (`git stash list` shows it); `git stash branch NAME` makes a branch of it."
        yield Danger(f"`git stash {words[0]}` would delete work that somebody put aside", instead, "stashes")


def _push(words: Sequence[str]) -> Iterator[Danger]:
    options, rest = _flags(words)
    if options & {"--delete", "-d", "--mirror"} or any(word.startswith(":") for word in rest[1:]):
        yield Danger("this push deletes branches on the remote", "Leave them, and ask the person to delete them.")
    elif options & {"--force", "-f"} or any(word.startswith("+") for word in rest[1:]):
        instead = "Merge or rebase onto the remote's commits and push normally; where the rewrite is wanted, `git push --force-with-lease`."
        yield Danger("`git push --force` can destroy commits of others on the remote", instead)


def _checkout(words: Sequence[str]) -> Iterator[Danger]:
    options, rest = _flags(words)
    named = list(words)[list(words).index("--") + 1 :] if "--" in words else [word for word in rest if word == "."]
    if options & {"-f", "--force"} or named:
        yield Danger("`git checkout` would overwrite unsaved changes", KEEP_FIRST, "changes", tuple(named))


def _restore(words: Sequence[str]) -> Iterator[Danger]:
    options, rest = _flags(words)
    if options & {"--worktree", "-W"} or not options & {"--staged", "-S"}:
        yield Danger("`git restore` would overwrite unsaved changes", KEEP_FIRST, "changes", tuple(rest))


def _switch(words: Sequence[str]) -> Iterator[Danger]:
    if _flags(words)[0] & {"-f", "--force", "--discard-changes"}:
        yield Danger("`git switch` would throw unsaved changes away", KEEP_FIRST, "changes")


def _branch(words: Sequence[str]) -> Iterator[Danger]:
    options, rest = _flags(words)
    if "-D" in options or (options & {"-d", "--delete"} and options & {"-f", "--force"}):
        instead = "Keep its commits: `git tag keep/NAME BRANCH` first, or `git branch -d`, which refuses to lose any."
        yield Danger("this deletes a branch with commits that are nowhere else", instead, "commits", tuple(rest))


def _history(words: Sequence[str]) -> Iterator[Danger]:
    pruned = {"--prune=now", "--prune=all", "--expire=now", "--expire=all", "--expire-unreachable=now", "--all"}
    if pruned.intersection(words) or words[:1] == ["expire"]:
        yield Danger("this destroys what git keeps of lost commits", "Leave git's own clean-up to git.")


def _rewrite(_words: Sequence[str]) -> Iterator[Danger]:
    yield Danger("this rewrites the whole history", "Make a new commit that changes what is wrong, or ask the person.")


GIT: Mapping[str, Callable[[Sequence[str]], Iterator[Danger]]] = {
    "reset": _reset,
    "clean": _clean,
    "stash": _stash,
    "push": _push,
    "checkout": _checkout,
    "restore": _restore,
    "switch": _switch,
    "branch": _branch,
    "reflog": _history,
    "gc": _history,
    "prune": _rewrite,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
}


# --- files ------------------------------------------------------------------------------------------------------------


def _rm(words: Sequence[str]) -> Iterator[Danger]:
    options, rest = _flags(words)
    if options & {"-r", "-R", "--recursive"}:
        yield Danger(
            "`rm -r` outside of the workspace, or of all of it, cannot be taken back", ASIDE, "outside", tuple(rest)
        )


def _find(words: Sequence[str]) -> Iterator[Danger]:
    starts = [
        word for place, word in enumerate(words) if not any(earlier.startswith("-") for earlier in words[: place + 1])
    ]
    if "-delete" in words or any(word in ("-exec", "-execdir") and "rm" in words for word in words):
        yield Danger("`find` would delete files outside of the workspace", ASIDE, "beyond", tuple(starts))


def _modes(words: Sequence[str]) -> Iterator[Danger]:
    options, rest = _flags(words)
    if options & {"-R", "--recursive"}:
        yield Danger("this changes rights or owners outside of the workspace", ASIDE, "beyond", tuple(rest[1:]))


def _device(words: Sequence[str]) -> Iterator[Danger]:
    if any(
        word.startswith(("of=/dev/", "/dev/")) and not word.endswith(("/null", "/stdout", "/stderr")) for word in words
    ):
        yield Danger("this overwrites a whole device", "Write to a file in the workspace.")


PROGRAMS: Mapping[str, Callable[[Sequence[str]], Iterator[Danger]]] = {
    "rm": _rm,
    "find": _find,
    "chmod": _modes,
    "chown": _modes,
    "dd": _device,
    "mkfs": _device,
    "shred": _device,
    "wipefs": _device,
}


def literal(path: str) -> str | None:
    """Return the part of a path before any pattern, or None if the path needs a shell."""
    if "$" in path or "`" in path:
        return None
    match = GLOB.search(path)
    return path if match is None else path[: match.start()].rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def objection_to_call(event: HookEvent) -> str:
    """Return why a call is refused and what to do instead, or an empty string."""
    cwd = Path(event.cwd or ".").absolute()
    root = Path(root_of(str(cwd)))
    config = configured(root)
    if config is not None and not config.hook.guard:
        return ""
    touched = [event.path] if event.path else list(written(event.command)) if event.command else []
    if config is not None and (path := _protected(touched, cwd, root, config.hook.protected)):
        return f"{one_line(path, 200)} is protected: it is what your work is judged by. Make the code right instead; if the test itself is wrong, tell the person why."
    for danger in dangers(event.command, os.environ) if event.command else ():
        folder = cwd / danger.folder
        lost = _lost(danger, folder, root, config.remedies.allowed_folders if config is not None else ())
        if lost:
            seen = f" ({lost})" if danger.stake != "always" else ""
            return f"{danger.what[0].upper()}{danger.what[1:]}{seen}. {danger.instead}"
    return ""


def configured(root: Path) -> "Config | None":
    """Return the configuration, or None if it has no settings for the hook.

    The second case loads no heavy modules.
    """
    if not has_hook_settings(str(root)):
        return None
    from unstuck.app.config_file import read_config  # noqa: PLC0415  # only with such a configuration

    return read_config(root)


def _protected(paths: Sequence[str], cwd: Path, root: Path, patterns: Sequence[str]) -> str:
    for path in paths if patterns else ():
        try:
            inside = (cwd / path).resolve().relative_to(root.resolve())
        except (ValueError, OSError):
            continue
        for pattern in patterns:
            if fnmatch.fnmatch(str(inside), pattern) or str(inside).startswith(f"{pattern.rstrip('/')}/"):
                return str(inside)
    return ""


def _lost(danger: Danger, folder: Path, root: Path, allowed: Sequence[str]) -> str:
    """Return a description of the work that would be lost, or an empty string."""
    match danger.stake:
        case "always":
            return "always"
        case "outside" | "beyond":
            return _outside(danger, folder, root, allowed)
        case "changes":
            paths = danger.paths if danger.paths != (".",) else ()
            return _named(ask_git(folder, "status", "--porcelain", "--untracked-files=no", "--", *paths), "changed")
        case "untracked":
            return _named(ask_git(folder, "status", "--porcelain", "--", *danger.paths), "not in git", "??")
        case "ignored":
            return _named(
                ask_git(folder, "status", "--porcelain", "--ignored", "--", *danger.paths), "not in git", "??", "!!"
            )
        case "stashes":
            return _named(ask_git(folder, "stash", "list"), "stashed")
        case "commits":
            return next((f"{name} has them" for name in danger.paths if _alone(folder, name)), "")


def _named(listed: str | None, how: str, *marks: str) -> str:
    lines = [line for line in (listed or "").splitlines() if not marks or line.startswith(marks)]
    more = f" and {len(lines) - FEW} more" if len(lines) > FEW else ""
    return f"{how}: {', '.join(one_line(line, 80) for line in lines[:FEW])}{more}" if lines else ""


def _alone(folder: Path, branch: str) -> bool:
    other_refs = (f"--exclude={branch}", "--branches", "--remotes", "--tags")
    return bool(ask_git(folder, "rev-list", "-1", branch, "--not", *other_refs))


def _outside(danger: Danger, folder: Path, root: Path, allowed: Sequence[str]) -> str:
    """Return the first path that is outside of the workspace or contains it, or an empty string."""
    home = root.resolve()
    roots = [home, *(Path(name).resolve() for name in allowed)]
    for path in danger.paths:
        start = literal(path)
        if start is None:
            continue  # only the shell knows where it leads
        try:
            place = (folder / start).resolve()
            part = start != path and path.rpartition("/")[2] not in EVERYTHING
            own = place == home and (part or danger.stake == "beyond")
            whole = place == home or place in home.parents or place == home / ".git"
            inside = any(place.is_relative_to(allowed_root) for allowed_root in roots) or _of_no_value(place)
            if (whole and not own) or not inside:
                return str(place)
        except (OSError, ValueError):
            continue
    return ""


def _of_no_value(place: Path) -> bool:
    """Return whether a path is a temporary folder as `mktemp` makes it, or a free name for one."""
    scratch = Path(tempfile.gettempdir()).resolve()
    inside = place.relative_to(scratch).parts if place.is_relative_to(scratch) else ()
    made = bool(inside) and any(fnmatch.fnmatch(inside[0], shape) for shape in ("tmp.*", "tmp????????"))
    return made or (len(inside) == 1 and not os.path.lexists(place))


def ask_git(folder: Path, *words: str) -> str | None:
    """Return the output of a git command, or None if it fails or takes too long.

    The command takes no locks.
    """
    import subprocess  # noqa: PLC0415  # only where something is at stake

    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *words],
            cwd=folder,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").rstrip() if done.returncode == 0 else None
