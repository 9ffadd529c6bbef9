"""Strategies for a missing file or a denied path: the path that was meant, the file itself, the same place in the sandbox, or a mode that is ours to change."""

import re
import shlex

from unstuck.remedies import subject as reading
from unstuck.remedies.call_words import DESTROYERS, parts, plain_words, program
from unstuck.remedies.situation import PATH_KEYS, Place, Situation
from unstuck.remedies.step import REMEDY, Expects, ListFolder, MakeFolder, Recipe, Shell, Step, WriteFile
from unstuck.remedies.subject import likely, likeness, name_of, parent_of, sandboxed

EXAMPLES = (".example", ".sample", ".dist", ".template", ".default", "-example", "-sample")
EMPTY = {"json": "{}\n", "html": "<!doctype html>\n", "xml": '<?xml version="1.0"?>\n<root/>\n'}
MAKERS = frozenset(
    {"mkdir", "touch", "cp", "mv", "tee", "install", "ln", "rsync", "tar", "dd", "gzip", "curl", "wget", "sort"}
)
SEARCH = 'found=$(find . -not -path "*/.git/*" -iname "$1" -print -quit); test -n "$found" && printf "%s\\n" "$found"'
GLOB_CHARS = str.maketrans({char: f"\\{char}" for char in "*?[]\\"})


def verify_path(s: Situation) -> Recipe | str:
    """Look for the file under another spelling, ending or place."""
    wanted = reading.path(s)
    if not wanted:
        return "the failure names no path"
    place = s.around.place
    parent = place.parent if place else parent_of(wanted)
    steps = [
        Step(
            action=f"List {parent}, where {name_of(wanted)} should be",
            deed=ListFolder(path=parent),
            expected="A listing of the folder",
        )
    ]
    found = likely(wanted, parent, place.names, place.twins) if place else ()
    if place and place.missing_parents and _makes(s):
        found = ()
    if found and DESTROYERS.intersection(program(plain_words(part)) for part in parts(s.call.line)):
        return f"the call destroys what it is given, and {found[0]} is only like {wanted}"
    if found and (step := _with_path(s, wanted, found[0])) is not None:
        others = f" (others: {', '.join(found[1:3])})" if found[1:] else ""
        steps.append(step._replace(action=f"Call it again with {found[0]}{others}"))
        return Recipe(steps=tuple(steps), likelihood=likeness(wanted, found[0]))
    if found:
        steps.append(
            Step(
                action=f"Look at {found[0]}, which is there; the call itself has to name it",
                deed=Shell(argv=("ls", "-ld", "--", found[0])),
                expected="It is listed",
            )
        )
        return Recipe(steps=tuple(steps), likelihood=likeness(wanted, found[0]))
    pattern = name_of(wanted).translate(GLOB_CHARS)
    search = Step(
        action="Search for the name in the whole workspace",
        deed=Shell(argv=("bash", "-c", SEARCH, REMEDY, pattern)),
        expected="The path of the file",
        expects=Expects(prints=True),
    )
    return Recipe(steps=(*steps, search))


def create_missing_file(s: Situation) -> Recipe | str:
    """Make the folder that a write needs, or the file from its example or with nothing in it."""
    wanted, place = reading.path(s), s.around.place
    if not wanted:
        return "the failure names no path"
    if place is not None and place.exists:
        return f"{wanted} exists"
    if place is not None and not place.inside:
        return f"{wanted} is outside of the workspace"
    if _makes(s) or (place is not None and place.missing_parents and not s.is_command and "content" in s.call.args):
        folder = parent_of(wanted)
        make = Step(
            action="Make the folder that it needs",
            deed=MakeFolder(path=folder),
            expected=f"{folder} exists",
            expects=Expects(exists=(folder,)),
        )
        return Recipe(steps=(make, s.again("Call it again, now that the folder is there")))
    example = next(
        (name for ending in EXAMPLES for name in (place.names if place else ()) if name == name_of(wanted) + ending), ""
    )
    made = Expects(exists=(wanted,))
    again = s.again("Call it again, now that the file is there")
    if example:
        source = f"{place.parent}/{example}" if place and place.parent != "." else example
        copy = Step(
            action=f"Copy it from {example}",
            deed=Shell(argv=("cp", "-n", "--", source, wanted)),
            expected=f"{wanted} exists",
            expects=made,
            risk="caution",
        )
        return Recipe(steps=(copy, again), requires=("cp",))
    content = EMPTY.get(name_of(wanted).rpartition(".")[2].lower(), "")
    write = Step(
        action="Create it with nothing in it, if the task asks for such a file",
        deed=WriteFile(path=wanted, content=content),
        expected=f"{wanted} exists",
        expects=made,
        risk="caution",
    )
    return Recipe(steps=(write, again._replace(again=False)))  # an empty file is not the one that the call was about


def _makes(s: Situation) -> bool:
    """Whether the call would have made the path itself, had its folder been there."""
    if s.around.place is not None and not s.around.place.missing_parents:
        return False
    wanted = reading.path(s)
    for words in filter(None, map(plain_words, parts(s.call.line))):
        if words[0].rsplit("/", 1)[-1] in MAKERS and wanted in words[1:]:
            return True
    return any(
        f"{arrow}{space}{shape}" in s.call.line
        for arrow in (">", ">>")
        for space in ("", " ")
        for shape in (wanted, shlex.quote(wanted))
    )


def _with_path(s: Situation, wanted: str, found: str) -> Step | None:
    """Return the call with another path in the place of the wrong one."""
    if not s.is_command:
        args = {key: found if value == wanted and key in PATH_KEYS else value for key, value in s.call.args.items()}
        return s.again("", args=args) if s.call.tool and args != dict(s.call.args) else None
    words = s.call.words
    if words is not None:
        operand = f"./{found}" if found.startswith("-") else found
        swapped = tuple(operand if word in {wanted, f"./{wanted}"} else word for word in words)
        return s.again("", words=swapped) if swapped != words else None
    for spelled in (shlex.quote(wanted), f'"{wanted}"', wanted):
        if s.call.line.count(spelled) == 1:
            return s.again("", script=s.call.line.replace(spelled, shlex.quote(found)))
    return None


WRITERS = frozenset(
    {"touch", "mkdir", "cp", "mv", "tee", "install", "ln", "dd", "rsync", "tar", "unzip", "curl", "wget", "git"}
)
WRITING = re.compile(
    r"cannot (?:create|touch|open|make)|EROFS|[Rr]ead-only|Failed to open|unable to (?:create|write)|could not create"
)


def try_sandbox_directory(s: Situation) -> Recipe | str:
    """Write to the same place below the sandbox, its folders kept."""
    denied = reading.path(s)
    if not denied:
        return "the failure names no path"
    if not _writes(s, denied):
        return f"reading {denied} cannot be moved elsewhere"
    if _mode_is_ours(s):
        return f"{denied} is inside the workspace and its mode is ours to change: in the sandbox it would never land"
    target = sandboxed(denied, s.around.root, s.preferences.sandbox)
    prepare = Step(
        action="Make its folder in the sandbox",
        deed=MakeFolder(path=parent_of(target)),
        expected=f"{parent_of(target)} exists",
        expects=Expects(exists=(parent_of(target),)),
    )
    moved = _moved(s, denied, target)
    if moved is None:
        return f"{denied} stands nowhere in the call where it could be replaced"
    look = Step(
        action="Look at what was written", deed=ListFolder(path=parent_of(target)), expected=f"{target} is listed"
    )
    return Recipe(steps=(prepare, moved, look))


def check_permissions(s: Situation) -> Recipe | str:
    """Run a script without its mode, or set a mode that is ours to set; sudo only where it is allowed."""
    place = s.around.place
    if place is None or not (place.exists or place.mine):
        return "there is no path whose permissions could be looked at"
    words = s.call.words
    script = bool(words) and not place.is_folder and not place.executable
    if words and script and words[0] in {place.path, f"./{place.path}"}:
        interpreter = place.interpreter or ("bash",)
        step = s.again(
            f"Run {place.path} by its interpreter: it may not be executed itself", words=(*interpreter, *words)
        )
        return Recipe(steps=(step,), requires=(interpreter[0].rsplit("/", 1)[-1],))
    if _mode_is_ours(s):
        return _accessible(s, place)
    if place.read_only:
        return f"{place.path} is on a read-only file system, where no mode helps"
    words = s.call_words()
    if words is None or s.around.superuser:
        return f"{place.path} is not ours to change"
    if s.preferences.never_sudo:
        return "it needs sudo, and the configuration says `never_sudo`"
    if not s.around.has("sudo"):
        return "there is no sudo"
    step = Step(
        action="Call it with the rights of the superuser",
        deed=Shell(argv=("sudo", "-n", *words)),
        expected="The call succeeds",
        risk="privileged",
        again=True,
    )
    return Recipe(steps=(step,), requires=("sudo",))


def _mode_is_ours(s: Situation) -> bool:
    """Whether what denies access is a mode in the workspace that we may change."""
    place = s.around.place
    return place is not None and place.mine and place.inside and not place.read_only


def _accessible(s: Situation, place: Place) -> Recipe:
    """Give the owner access, and take it again if that was not it."""
    subject = place.path if place.exists else place.parent
    mode = "u+rwx" if place.is_folder or not place.exists else "u+rw"
    steps = (
        Step(
            action=f"Look at the mode of {subject}",
            deed=Shell(argv=("ls", "-ld", "--", subject)),
            expected="Its mode",
            expects=Expects(prints=True),
        ),
        Step(
            action=f"Give its owner access to {subject}",
            deed=Shell(argv=("chmod", mode, "--", subject)),
            expected="The mode is set",
            risk="caution",
            back=Shell(argv=("chmod", place.mode, "--", subject)) if place.mode else None,
        ),
        s.again("Call it again, now that it is accessible"),
    )
    return Recipe(steps=steps, requires=("chmod",))


def _writes(s: Situation, denied: str) -> bool:
    """Whether the call was about to write there."""
    if not s.is_command:
        return any(key in s.call.args for key in ("content", "text", "data", "body")) or "write" in s.call.tool.lower()
    if re.search(rf">\s*(?:{re.escape(denied)}|{re.escape(shlex.quote(denied))})", s.call.line):
        return True
    words = s.call.words or ()
    return bool(WRITING.search(s.text)) or (
        bool(words) and words[0].rsplit("/", 1)[-1] in WRITERS and denied in words[1:]
    )


def _moved(s: Situation, denied: str, target: str) -> Step | None:
    action = "Write it to the sandbox instead"
    made = Expects(exists=(target,))
    if not s.is_command:
        content = next(
            (s.call.args[key] for key in ("content", "text", "data", "body") if isinstance(s.call.args.get(key), str)),
            None,
        )
        if content is not None:
            return Step(
                action=action,
                deed=WriteFile(path=target, content=content),
                expected=f"{target} is written",
                again=True,
                expects=made,
            )
        args = {key: target if key in PATH_KEYS and value == denied else value for key, value in s.call.args.items()}
        return s.again(action, args=args) if args != dict(s.call.args) else None
    words = s.call.words
    if words is not None and any(word == denied or word.endswith(f"={denied}") for word in words):
        return s.again(action, words=tuple(_swapped(word, denied, target) for word in words), expects=made)
    for spelled in (shlex.quote(denied), f'"{denied}"', denied):
        if spelled in s.call.line:
            return s.again(action, script=s.call.line.replace(spelled, shlex.quote(target)), expects=made)
    return None


def _swapped(word: str, denied: str, target: str) -> str:
    return target if word == denied else f"{word.partition('=')[0]}={target}" if word.endswith(f"={denied}") else word
