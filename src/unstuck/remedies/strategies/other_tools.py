"""Ways out of a tool that the agent has not: one it has, or basic ones."""

import re

from unstuck.remedies import subject as reading
from unstuck.remedies.situation import Situation
from unstuck.remedies.step import Expects, ListFolder, ReadFile, Recipe, Shell, Step, Use, WriteFile

CLOSE = 0.8


def use_available_alternative(s: Situation) -> Recipe | str:
    """Find a tool among those that are there which does the same."""
    from difflib import get_close_matches  # noqa: PLC0415  # takes longer to load than the rest of this

    tool = wanted(s)
    others = sorted((s.tools.names or frozenset()) - {tool})
    flat = {_flat(name): name for name in others}
    if near := get_close_matches(_flat(tool), list(flat), 1, CLOSE):
        name = flat[near[0]]
        step = Step(
            action=f"Use {name}, which {tool} looks like",
            deed=Use(tool=name, args=dict(s.call.args)),
            expected=f"{name} answers",
            again=True,
        )
        return Recipe(steps=(step,))
    found = _basic(s, tool)
    if found is None:
        return f"none of the tools is known to do what {tool or 'it'} does"
    return found


def decompose_into_basic_tools(s: Situation) -> Recipe | str:
    """Break the call down into commands of the shell."""
    place = reading.path(s) or "."
    steps = (
        Step(
            action=f"List what is in {place}",
            deed=Shell(argv=("ls", "-la", "--", place)),
            expected="A listing",
            expects=Expects(prints=True),
        ),
        Step(
            action="List the files below it",
            deed=Shell(argv=("find", _operand(place), "-maxdepth", "3", "-type", "f", "-not", "-path", "*/.git/*")),
            expected="Paths of files",
            expects=Expects(prints=True),
        ),
    )
    return Recipe(steps=steps, requires=("ls", "find"))


def wanted(s: Situation) -> str:
    """Return the name of the tool that is missing."""
    found = re.search(
        r"(?:[Uu]nknown tool|[Tt]ool not found|No such tool)[: ]+['\"`]?([\w.:-]{1,100})", s.text
    ) or re.search(r"[Tt]ool ['\"`]([\w.:-]{1,100})['\"`]", s.text)
    return found[1] if found else s.call.tool


def _basic(s: Situation, tool: str) -> Recipe | None:
    """Do it with the basic tool whose words the name has."""
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", tool).lower()))
    place = reading.path(s)
    content = next(
        (value for key, value in s.call.args.items() if key in {"content", "text", "body"} and isinstance(value, str)),
        None,
    )
    for role in ("write_file", "read_dir", "read_file", "run_bash"):
        if words.isdisjoint(s.table("intents").get(role, ())):
            continue
        if role == "write_file" and place and content is not None:
            return _one(
                f"Write {place} with a tool that is there",
                WriteFile(path=place, content=content),
                f"{place} is written",
            )
        if role == "read_dir":
            listed = _one("List the folder with a tool that is there", ListFolder(path=place or "."), "A listing")
            named = (
                [Step(action="Read the file that is wanted", deed=ReadFile(path=place), expected="Its content")]
                if place
                else []
            )
            return Recipe(steps=(*listed.steps, *(named if "file" in words else [])))
        if role == "read_file" and place:
            return _one(f"Read {place} with a tool that is there", ReadFile(path=place), "Its content")
        if role == "run_bash" and s.call.line:
            step = s.again("Run it with the shell that is there", script=s.call.line)
            return Recipe(steps=(step,))
    return None


def _one(action: str, deed: ListFolder | ReadFile | WriteFile, expected: str) -> Recipe:
    return Recipe(steps=(Step(action=action, deed=deed, expected=expected, again=True),))


def _flat(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _operand(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path
