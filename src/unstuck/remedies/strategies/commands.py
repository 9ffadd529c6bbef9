"""Ways out of a missing command, package or setting: another one that does the same, its package, or the project's own file."""

import re
import shlex

from unstuck.remedies.call_words import (
    Address,
    address,
    download_target,
    name_of,
    only_alike,
    operand,
    plain_words,
    program,
    simple_call,
    ssh_address,
)
from unstuck.remedies.chain import (
    REMEDY,
    Expects,
    ListFolder,
    Recipe,
    Risk,
    Shell,
    Step,
    fixed,
    listed,
    no_way,
    recipe,
    run,
)
from unstuck.remedies.situation import Situation, command, home_of, package
from unstuck.remedies.surroundings import Gone
from unstuck.toolchain.shell import parts

SUDO = ("sudo", "-n")
GUESSED = 0.7
LONG_NAME = 6
"""A shorter name is another package's."""
DOWNLOAD_SECONDS, INSTALL_SECONDS = 300.0, 600.0


def alternative_command(s: Situation) -> Recipe:
    """Use another tool to achieve the same."""
    missing = command(s)
    if s.around.place is not None and s.around.place.crlf and s.call.words:
        action = "Run the script without the Windows line ends that its interpreter stumbles over"
        return recipe(
            s.again(action, words=("bash", "-c", fixed("strip_cr"), REMEDY, *s.call.words)), requires=("bash", "tr")
        )
    if missing == "git" and (clone := simple_call(s.call.line, "git")) and clone[1:2] == ("clone",):
        return clone_without_git(s, clone)
    if missing in s.around.elsewhere:
        return _replaced(s, missing, (s.around.elsewhere[missing],), f"Use the project's own {missing}")
    if missing in {"curl", "wget"} and (found := _other_download(s, missing)) is not None:
        return found
    if found := _same_elsewhere(s, missing):
        return found
    if near := _looks_like(s, missing):
        guess = _replaced(s, missing, (near,), f"Use {near}, which {missing} looks like")
        careful = (guess.steps[0]._replace(risk="caution"),)
        return guess._replace(steps=careful, likelihood=GUESSED)
    return no_way(f"nothing that is known to do what {missing or 'it'} does is installed")


def _same_elsewhere(s: Situation, missing: str) -> Recipe | None:
    """Use a program that does the same when it is called like this."""
    rest = _after(s, missing)
    for row in s.table("alternatives").get(missing, ()):
        other, form = (row, None) if isinstance(row, str) else row
        words = tuple(fixed(word[1:]) if word.startswith("@") else word for word in other.split())
        if s.around.has(words[0]) and (form is None or (rest is not None and re.fullmatch(form, rest))):
            return _replaced(s, missing, words, f"Use {other.partition(' -c @')[0]} instead of {missing}")
    return None


def _after(s: Situation, missing: str) -> str | None:
    """Return what the missing program was given; None where that cannot be said for sure."""
    called = [words for words in map(plain_words, parts(s.call.line)) if words and program(words) == missing]
    return " ".join(called[0][1:]) if len(called) == 1 else None


def _looks_like(s: Situation, missing: str) -> str:
    """Return the program that a missing one is a misspelling of: a tool that is known is none, nor is one that has a letter more."""
    tables = (s.table("alternatives"), s.table("packages"), *s.table("installers").values(), listed("packaged"))
    if not missing or any(missing in table for table in tables):
        return ""
    others = (s.around.binaries or frozenset()) - {missing, *listed("destroyers")}
    return only_alike(missing, (name for name in others if name[0] == missing[0] and not missing.startswith(name)))


def clone_without_git(s: Situation, clone: tuple[str, ...]) -> Recipe:
    """Fetch the repository's tarball; the server knows its default branch as HEAD."""
    source, folder, branch = _clone_operands(clone)
    where = address(source) or ssh_address(source)
    if where is None or where.scheme not in {"http", "https"}:
        no_way(f"{source or 'the repository'} is not on the web, so there is no tarball of it")
    base = Address(where.scheme, where.host, where.port, where.path.rstrip("/").removesuffix(".git"))
    repo = name_of(base.path) or "repository"
    folder = folder or repo
    if folder.startswith("-"):
        no_way(f"{folder!r} is no name for a folder")
    pattern = s.table("archives").get(base.host) or s.table("archives")["github.com"]
    ref = f"refs/heads/{branch}" if branch else "HEAD"
    tarball = pattern.format(base=base.text, repo=repo, name=branch or "HEAD", ref=ref)
    archive = f"{repo}.tar.gz"
    fetch = fetching(s, tarball, archive)
    unpack = ("tar", "-xzf", operand(archive), "-C", operand(folder), "--strip-components=1")
    there = Expects(exists=(folder,))
    return recipe(
        run("Download the repository's tarball", *fetch, timeout=DOWNLOAD_SECONDS,
            expected=f"{archive} exists", expects=Expects(exists=(archive,))),
        run("Make the folder that git would have made", "mkdir", "-p", "--", folder, expected=f"{folder} exists", expects=there),
        run("Extract the tarball into it: its files, without the history", *unpack, expected="The files are there", expects=there, again=True),
        Step("Look at what was extracted", ListFolder(folder), "The listing shows the repository", expects=Expects(prints=True)),
        requires=(fetch[0], "tar"),
        hosts=(base.place,),
    )  # fmt: skip


def fetching(s: Situation, source: str, target: str) -> tuple[str, ...]:
    """Return the download of one address into one file, with what is there."""
    if s.around.has("curl"):
        return ("curl", "-fL", "--retry", "2", "-o", target, source)
    if s.around.has("wget"):
        return ("wget", "-O", target, source)
    return ("python3", "-c", fixed("fetch"), source, target)


def manual_installation(s: Situation) -> Recipe:
    """Install what is missing, as this system and this user can."""
    missing = command(s)
    _may_install(s)
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", missing):
        no_way(f"{missing!r} is no name of a package")
    language = next((name for name, commands in s.table("installers").items() if missing in commands), "")
    if not language and missing not in (*s.table("packages"), *listed("packaged")):
        if near := _looks_like(s, missing):
            no_way(f"{missing} looks like {near}, which is there")
        no_way(f"nobody here knows a package that has {missing}")
    if language:
        own = (project_python(s), "-m", "pip", "install") if language == "python" else ("npm", "install", "--no-save")
        installing = [_install(f"Install {missing} with {language}'s own installer", *own, missing)]
    else:
        installing = _packages(s, missing)
    operation = installing[-1].operation
    assert isinstance(operation, Shell)
    check = run(f"See that {missing} is there", "bash", "-c", fixed("there"), REMEDY, missing,
                expected="Its path is printed", expects=Expects(prints=True))  # fmt: skip
    again = s.again(f"Call it again, now that {missing} is there")
    return recipe(*installing, check, again, requires=[word for word in operation.argv if word not in SUDO][:1])


def _may_install(s: Situation) -> None:
    if s.preferences.never_install:
        no_way("the configuration says `never_install`")


def _install(action: str, *argv: str, timeout: float = INSTALL_SECONDS, risk: Risk = "caution") -> Step:
    """Return an installation; one into an environment that others use, too, needs more than caution."""
    own = argv[0].removeprefix("./").startswith((".venv/", "venv/"))
    shared = argv[1:3] == ("-m", "pip") and not own
    return run(action, *argv, timeout=timeout, risk="privileged" if shared else risk)


def project_python(s: Situation) -> str:
    """Return the interpreter to install packages for: the call's own, the project's, or the machine's."""
    words = s.call.words or ("",)
    own = words[0] if "python" in program(words) else ""
    return own or (".venv/bin/python" if ".venv" in s.around.root_names else "python3")


def _packages(s: Situation, missing: str) -> list[Step]:
    """Install a command with the system's package manager, under the name that it has there."""
    row = s.table("managers").get(s.around.manager) or no_way("no package manager of this system is known")
    rights = s.around.superuser or row.get("user")
    if not rights and s.preferences.never_sudo:
        no_way("installing needs sudo, and the configuration says `never_sudo`")
    if not rights and not s.around.has("sudo"):
        no_way("installing needs rights that this user has not, and there is no sudo")
    names = s.table("packages").get(missing, {})
    package = names.get(s.around.manager) or names.get("*") or missing
    prefix = () if rights else SUDO
    steps = [_install(f"Install {package}", *prefix, *row["install"], package, risk="privileged")]
    if "refresh" in row:
        refresh = (*prefix, *row["refresh"])
        steps.insert(0, _install("Read the package lists", *refresh, timeout=DOWNLOAD_SECONDS, risk="privileged"))
    return steps


def _clone_operands(clone: tuple[str, ...]) -> tuple[str, str, str]:
    """Return source, folder and branch of a `git clone`."""
    operands, branch, words = [], "", iter(clone[2:])
    for word in words:
        if word in listed("clone_values"):
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


def _replaced(s: Situation, missing: str, words: tuple[str, ...], action: str) -> Recipe:
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
            no_way(f"{missing or 'the command'} stands nowhere in the call where it could be replaced")
        script = s.call.line.replace(found[0], found[0].replace(missing, shlex.join(words), 1), 1)
        step = s.again(action, script=script)
    return recipe(step, requires=words[:1])


def _found_inside(s: Situation, missing: str, words: tuple[str, ...]) -> Recipe:
    """Let a program that runs the missing command find it in the project's own folder."""
    if words != (s.around.elsewhere.get(missing),):
        no_way(f"it is not the call itself that misses {missing}, but something that it runs")
    folder = words[0].rpartition("/")[0]
    call = ("bash", "-c", fixed("on_path"), REMEDY, folder, *s.call_words())
    return recipe(s.again(f"Call it again with {folder} on PATH", words=call), requires=("bash",))


def _other_download(s: Situation, missing: str) -> Recipe | None:
    """Translate a plain download between curl, wget and Python."""
    words = simple_call(s.call.line, missing)
    source = next((word for word in words or () if address(word)), "")
    if words is None or not source or not s.repeatable(words):
        return None
    target = download_target(words) or ("index.html" if missing == "wget" else "")
    if target:
        argv, expected = fetching(s, source, target), f"{target} exists"
        step = run(f"Download it without {missing}", *argv, timeout=DOWNLOAD_SECONDS, expected=expected,
                   expects=Expects(exists=(target,), sound=(target,)), again=True)  # fmt: skip
    else:
        argv = ("wget", "-q", "-O", "-", source) if s.around.has("wget") else ("python3", "-c", fixed("print"), source)
        step = run(f"Fetch it without {missing}", *argv, timeout=DOWNLOAD_SECONDS, expected="It is printed", again=True)
    found = address(source)
    return recipe(step, requires=argv[:1], hosts=(found.place,) if found else ())


# --- packages -----------------------------------------------------------------------------------------------------


def missing_package(s: Situation) -> str:
    """Return the package that could be installed; a module of the project's own is none."""
    _may_install(s)
    if gone := s.around.gone:
        no_way(f"{gone.old} of the project itself was {gone.told}")
    if home := home_of(s):
        no_way(f"{package(s)} would be a module of the project's own {home}")
    return package(s)


def correct_the_name(s: Situation) -> Recipe:
    """Call a misspelled module by its name."""
    name = package(s)
    package_of, dot, _ = name.rpartition(".")
    gone = s.around.gone or Gone("")
    beside = gone.new.rpartition("/")[0] == gone.old.rpartition("/")[0] and gone.new.endswith(".py")
    near = f"{package_of}{dot}{name_of(gone.new).removesuffix('.py')}" if beside else ""
    near = near or only_alike(name, (one for one in s.around.modules if len(one) >= LONG_NAME))
    if not near:
        no_way(f"no module that is there looks like {name or 'it'}")
    action = f"Call it again with {near}, which {name} looks like"
    step = s.changed(action, lambda word: near if word == name else word, lambda line: line)
    return recipe(step or no_way(f"{name} is named in code, not in the call"), likelihood=GUESSED)


def install_from_local_folder(s: Situation) -> Recipe:
    """Install the package from a folder of the project, or let the interpreter find it there."""
    name = missing_package(s)
    first = next(iter(s.around.local_packages), "") or no_way(f"no folder of the project holds {name or 'it'}")
    folder = first.rpartition("/")[0] or "."
    argv: tuple[str, ...]
    if first.endswith((".whl", ".tar.gz")):
        argv = (project_python(s), "-m", "pip", "install", "--no-index", "--find-links", folder, name)
    elif first.endswith(".tgz"):
        argv = ("npm", "install", "--no-save", "--offline", f"./{first}")
    else:
        s.call_words()
        node = first.endswith((".js", "node_modules")) or "Cannot find module" in s.text
        where = "NODE_PATH" if node else "PYTHONPATH"
        return recipe(s.again(f"Call it again with {folder} on {where}", env={where: folder}))
    again = s.again("Call it again, now that the package is there")
    return recipe(_install(f"Install {name} from {first}", *argv), again, requires=argv[:1])


def install_declared_dependencies(s: Situation) -> Recipe:
    """Install what the project declares, by its lock file."""
    missing_package(s)
    node = program(s.call.words) in listed("node") or "Cannot find module" in s.text
    for file, words in s.table("lockfiles").items():
        foreign = node != (words[0] in listed("node_managers")) and file != "requirements.txt"
        if file in s.around.root_names and s.around.has(words[0]) and not foreign:
            argv = (project_python(s), *words[1:]) if words[0] == "python3" else tuple(words)
            step = _install(f"Install what {file} declares", *argv, timeout=1800.0)
            return recipe(step, s.again("Call it again, now that the packages are there"), requires=words[:1])
    return no_way("no lock file says how the dependencies are installed")
