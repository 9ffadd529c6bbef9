"""Ways out of a missing file: the path that was meant, or the file itself."""

import shlex

from unstuck.remedies import subject as reading
from unstuck.remedies.call_words import parts, plain_words
from unstuck.remedies.paths import likely, name_of, parent_of
from unstuck.remedies.situation import PATH_KEYS, Situation
from unstuck.remedies.step import REMEDY, Expects, ListFolder, MakeFolder, Recipe, Shell, Step, WriteFile

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
    if found and (step := _with_path(s, wanted, found[0])) is not None:
        others = f" (others: {', '.join(found[1:3])})" if found[1:] else ""
        steps.append(step._replace(action=f"Call it again with {found[0]}{others}"))
    elif found:
        steps.append(
            Step(
                action=f"Use {found[0]}, which is there",
                deed=Shell(argv=("ls", "-ld", "--", found[0])),
                expected="It is listed",
            )
        )
    else:
        pattern = name_of(wanted).translate(GLOB_CHARS)
        steps.append(
            Step(
                action="Search for the name in the whole workspace",
                deed=Shell(argv=("bash", "-c", SEARCH, REMEDY, pattern)),
                expected="The path of the file",
                expects=Expects(prints=True),
            )
        )
    return Recipe(steps=tuple(steps))


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
    return Recipe(steps=(write, again))


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
