"""Ways out of a missing command: another one that does the same, or its package."""

import re
from typing import NamedTuple

from unstuck.remedies import subject as reading
from unstuck.remedies.call_words import DESTROYERS, Address, address, download_target, parts, simple_call, ssh_address
from unstuck.remedies.chain import Risk
from unstuck.remedies.situation import Situation
from unstuck.remedies.step import REMEDY, Expects, ListFolder, Recipe, Shell, Step
from unstuck.remedies.subject import GUESSED, alike, name_of

ARCHIVES = {
    "github.com": "{base}/archive/{ref}.tar.gz",
    "gitlab.com": "{base}/-/archive/{name}/{repo}-{name}.tar.gz",
    "bitbucket.org": "{base}/get/{name}.tar.gz",
}
"""Where hosts keep the tarball of a repository; others do as the first one does. `HEAD` is the default branch."""
FETCH = "import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])"
CLONE_VALUES = frozenset(
    {"-b", "--branch", "--depth", "-o", "--origin", "-c", "--config", "--reference", "-j", "--jobs", "--filter"}
)
STRIP_CR = 'tr -d "\\r" < "$1" | bash -s -- "${@:2}"'
ON_PATH = 'PATH="$1:$PATH"; exec "${@:2}"'
SUDO = ("sudo", "-n")


def alternative_command(s: Situation) -> Recipe | str:
    """Use another tool to achieve the same."""
    missing = reading.command(s)
    if s.around.place is not None and s.around.place.crlf and s.call.words:
        step = s.again(
            "Run the script without the Windows line ends that its interpreter stumbles over",
            words=("bash", "-c", STRIP_CR, REMEDY, *s.call.words),
        )
        return Recipe(steps=(step,), requires=("bash", "tr"))
    if missing == "git" and (clone := simple_call(s.call.line, "git")) and clone[1:2] == ("clone",):
        return clone_without_git(s, clone)
    if missing in s.around.elsewhere:
        return _replaced(s, missing, (s.around.elsewhere[missing],), f"Use the project's own {missing}")
    if missing in {"curl", "wget"} and (found := _other_download(s, missing)) is not None:
        return found
    for other in s.table("alternatives").get(missing, ()):
        words = tuple(other.split())
        if s.around.has(words[0]):
            return _replaced(s, missing, words, f"Use {other} instead of {missing}")
    near = [name for name in sorted(s.around.binaries or ()) if name not in DESTROYERS and alike(missing, name)]
    if near:
        guess = _replaced(s, missing, (near[0],), f"Use {near[0]}, which {missing} looks like", sure=False)
        return guess if isinstance(guess, str) else guess._replace(likelihood=GUESSED)
    return f"nothing that is known to do what {missing or 'it'} does is installed"


def clone_without_git(s: Situation, clone: tuple[str, ...]) -> Recipe | str:
    """Fetch the repository's tarball; the server knows its default branch as HEAD."""
    source, folder, branch = _clone_operands(clone)
    where = address(source) or ssh_address(source)
    if where is None or where.scheme not in {"http", "https"}:
        return f"{source or 'the repository'} is not on the web, so there is no tarball of it"
    base = Address(where.scheme, where.host, where.port, where.path.rstrip("/").removesuffix(".git"))
    repo = base.path.rsplit("/", 1)[-1] or "repository"
    folder = folder or repo
    if folder.startswith("-"):
        return f"{folder!r} is no name for a folder"
    pattern = ARCHIVES.get(base.host, ARCHIVES["github.com"])
    name = branch or "HEAD"
    tarball = pattern.format(base=base.text, repo=repo, name=name, ref=f"refs/heads/{branch}" if branch else "HEAD")
    archive = f"{repo}.tar.gz"
    fetch = fetching(s, tarball, archive)
    unpack = ("tar", "-xzf", _operand(archive), "-C", _operand(folder), "--strip-components=1")
    steps = (
        Step(
            action="Download the repository's tarball",
            deed=Shell(argv=fetch, timeout=300.0),
            expected=f"{archive} exists",
            expects=Expects(exists=(archive,)),
        ),
        Step(
            action="Make the folder that git would have made",
            deed=Shell(argv=("mkdir", "-p", "--", folder)),
            expected=f"{folder} exists",
            expects=Expects(exists=(folder,)),
        ),
        Step(
            action="Extract the tarball into it: its files, without the history",
            deed=Shell(argv=unpack),
            expected="The files are there",
            expects=Expects(exists=(folder,)),
            again=True,
        ),
        Step(
            action="Look at what was extracted",
            deed=ListFolder(path=folder),
            expected="The listing shows the repository",
            expects=Expects(prints=True),
        ),
    )
    return Recipe(steps=steps, requires=(fetch[0], "tar"), hosts=(base.place,))


def fetching(s: Situation, source: str, target: str) -> tuple[str, ...]:
    """Return the download of one address into one file, with what is there."""
    if s.around.has("curl"):
        return ("curl", "-fL", "--retry", "2", "-o", target, source)
    if s.around.has("wget"):
        return ("wget", "-O", target, source)
    return ("python3", "-c", FETCH, source, target)


def manual_installation(s: Situation) -> Recipe | str:
    """Install what is missing, as this system and this user can."""
    missing = reading.command(s)
    if s.preferences.never_install:
        return "the configuration says `never_install`"
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", missing):
        return f"{missing!r} is no name of a package"
    language = next((name for name, commands in s.table("installers").items() if missing in commands), "")
    installing = [_own_installer(s, missing, language)] if language else _packages(s, missing)
    if isinstance(installing, str):
        return installing
    check = Step(
        action=f"See that {missing} is there",
        deed=Shell(argv=("bash", "-c", 'command -v -- "$1"', REMEDY, missing)),
        expected="Its path is printed",
        expects=Expects(prints=True),
    )
    program = next(word for word in installing[-1].deed.argv if word not in SUDO)
    again = s.again(f"Call it again, now that {missing} is there")
    return Recipe(steps=(*(_step(one) for one in installing), check, again), requires=(program,))


class _Installing(NamedTuple):
    action: str
    deed: Shell
    risk: Risk


def _step(one: _Installing) -> Step:
    return Step(action=one.action, deed=one.deed, expected="It ends with exit code 0", risk=one.risk)


def _own_installer(s: Situation, missing: str, language: str) -> _Installing:
    """Install a command with its language's own installer, into the project where it has a place for that."""
    python = language == "python"
    words = (project_python(s), "-m", "pip", "install") if python else ("npm", "install", "--no-save")
    deed = Shell(argv=(*words, missing), timeout=600.0)
    return _Installing(
        f"Install {missing} with {language}'s own installer", deed, pip_risk(words[0]) if python else "caution"
    )


def project_python(s: Situation) -> str:
    """Return the interpreter to install packages for: the call's own, the project's, or the machine's."""
    words = s.call.words or ()
    own = words[0] if words and "python" in words[0].rsplit("/", 1)[-1] else ""
    return own or (".venv/bin/python" if ".venv" in s.around.root_names else "python3")


def pip_risk(python: str) -> Risk:
    """Weigh an installation: into the project's own environment, or into one that others use, too."""
    return "caution" if python.removeprefix("./").startswith((".venv/", "venv/")) else "privileged"


def _packages(s: Situation, missing: str) -> list[_Installing] | str:
    """Install a command with the system's package manager, under the name that it has there."""
    row = s.table("managers").get(s.around.manager)
    if row is None:
        return "no package manager of this system is known"
    rights = s.around.superuser or row.get("user")
    if not rights and s.preferences.never_sudo:
        return "installing needs sudo, and the configuration says `never_sudo`"
    if not rights and not s.around.has("sudo"):
        return "installing needs rights that this user has not, and there is no sudo"
    names = s.table("packages").get(missing, {})
    package = names.get(s.around.manager) or names.get("*") or missing
    prefix = () if rights else SUDO
    install = Shell(argv=(*prefix, *row["install"], package), timeout=600.0)
    steps = [_Installing(f"Install {package}", install, "privileged")]
    if "refresh" in row:
        refresh = Shell(argv=(*prefix, *row["refresh"]), timeout=300.0)
        steps.insert(0, _Installing("Read the package lists", refresh, "privileged"))
    return steps


def _clone_operands(clone: tuple[str, ...]) -> tuple[str, str, str]:
    """Return source, folder and branch of a `git clone`."""
    operands, branch, words = [], "", iter(clone[2:])
    for word in words:
        if word in CLONE_VALUES:
            value = next(words, "")
            branch = value if word in {"-b", "--branch"} else branch
        elif word.startswith(("--branch=", "-b")) and word != "--bare":
            branch = word.partition("=")[2] or word[2:]
        elif word == "--":
            operands += list(words)
        elif not word.startswith("-"):
            operands.append(word)
    source, folder = (*operands, "", "")[:2]
    return source, folder, branch


def _operand(path: str) -> str:
    """Return a path that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def _replaced(s: Situation, missing: str, words: tuple[str, ...], action: str, *, sure: bool = True) -> Recipe | str:
    """Put other words in the place of the missing one."""
    if s.call.words is not None:
        first, *rest = s.call.words
        place = s.around.place
        is_script = place is not None and bool(place.interpreter) and name_of(place.interpreter[-1]) == missing
        if not is_script and name_of(first) != name_of(missing):
            return _found_inside(s, missing, words)
        step = s.again(action, words=(*words, first, *rest) if is_script else (*words, *rest))
    else:
        found = [part for part in parts(s.call.line) if part.split(maxsplit=1)[0] == missing]
        if not found:
            return f"{missing or 'the command'} stands nowhere in the call where it could be replaced"
        script = s.call.line.replace(found[0], found[0].replace(missing, " ".join(words), 1), 1)
        step = s.again(action, script=script)
    if not sure:
        step = Step(action=step.action, deed=step.deed, expected=step.expected, risk="caution", again=True)
    return Recipe(steps=(step,), requires=(words[0],))


def _found_inside(s: Situation, missing: str, words: tuple[str, ...]) -> Recipe | str:
    """Let a program that runs the missing command find it in the project's own folder."""
    if words != (s.around.elsewhere.get(missing),):
        return f"it is not the call itself that misses {missing}, but something that it runs"
    folder = words[0].rpartition("/")[0]
    call = s.call_words()
    assert call is not None
    step = s.again(f"Call it again with {folder} on PATH", words=("bash", "-c", ON_PATH, REMEDY, folder, *call))
    return Recipe(steps=(step,), requires=("bash",))


def _other_download(s: Situation, missing: str) -> Recipe | None:
    """Translate a plain download between curl, wget and Python."""
    words = simple_call(s.call.line, missing)
    source = next((word for word in words or () if address(word)), "")
    if words is None or not source or not s.repeatable(words):
        return None
    target = download_target(words)
    if not target:
        if missing == "curl":
            return _printing(s, missing, source)
        target = "index.html"
    step = Step(
        action=f"Download it without {missing}",
        deed=Shell(argv=fetching(s, source, target), timeout=300.0),
        expected=f"{target} exists",
        expects=Expects(exists=(target,), sound=(target,)),
        again=True,
    )
    found = address(source)
    return Recipe(steps=(step,), requires=(fetching(s, source, target)[0],), hosts=(found.place,) if found else ())


def _printing(s: Situation, missing: str, source: str) -> Recipe:
    """Print what curl would have printed."""
    code = "import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())"
    argv = ("wget", "-q", "-O", "-", source) if s.around.has("wget") else ("python3", "-c", code, source)
    step = Step(
        action=f"Fetch it without {missing}", deed=Shell(argv=argv, timeout=300.0), expected="It is printed", again=True
    )
    found = address(source)
    return Recipe(steps=(step,), requires=(argv[0],), hosts=(found.place,) if found else ())
