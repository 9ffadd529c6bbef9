"""Strategies for a wrong call: types, names and required fields from the schema, fewer of them, or another tool."""

import re
from difflib import get_close_matches

from unstuck.remedies import schema
from unstuck.remedies import subject as reading
from unstuck.remedies.call_words import restrains
from unstuck.remedies.situation import Situation
from unstuck.remedies.step import Expects, ListFolder, ReadFile, Recipe, Shell, Step, Use, WriteFile

BAD_OPTION = re.compile(
    r"(?:unrecognized|unknown|invalid|no such|illegal|unexpected)[^\n'\"\u2018`-]{0,40}?(?:option|argument|switch|flag)s?[^\n\w-]{0,6}(--?[\w-]+|\w\b)",
    re.IGNORECASE,
)
MEANT = re.compile(
    r"[Dd]id you mean:? ['\"`\u2018]?(--?[\w-]+|[\w-]+)['\"`\u2019]?|[Tt]he most similar command is\s+([\w-]+)|perhaps you meant:? ['\"`]?([\w-]+)"
)


def fix_parameter_types(s: Situation) -> Recipe | str:
    """Convert what has the wrong type."""
    if s.is_command:
        return _corrected_word(s)
    known = s.call.schema or schema.said(s.text)
    if not known.get("properties"):
        return "nobody gave the tool's schema, and the message names no type"
    args = schema.typed(s.call.args, known)
    if args == dict(s.call.args) and _same_types(args, s.call.args):
        return "the types fit the schema as far as they can be converted"
    changed = [
        key for key, value in args.items() if value != s.call.args[key] or type(value) is not type(s.call.args[key])
    ]
    return Recipe(steps=(s.again(f"Call it again with {', '.join(changed)} of the right type", args=args),))


def check_schema(s: Situation) -> Recipe | str:
    """Correct names and fill in what is required, as far as the schema says how."""
    if s.is_command:
        return _usage(s)
    if s.call.schema is None:
        return "nobody gave the tool's schema"
    args, missing = schema.completed(s.call.args, s.call.schema)
    if missing:
        return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} required, and nobody knows the value"
    lost = [name for name in s.call.args if name not in s.call.schema.get("properties", {}) and restrains(name)]
    if lost and not any(value in args.values() for value in (s.call.args[name] for name in lost)):
        return f"without {lost[0]} the call would do more than was asked for"
    if args == schema.typed(s.call.args, s.call.schema):
        return "the names and required fields fit the schema"
    return Recipe(steps=(s.again("Call it again with the names and fields of the schema", args=args),))


def simplify_arguments(s: Situation) -> Recipe | str:
    """Leave out what is not required."""
    if s.is_command:
        return _without_option(s)
    if s.call.schema is None or not s.call.schema.get("required"):
        return "nobody says which arguments are required"
    args, missing = schema.completed(s.call.args, s.call.schema)
    fewer = schema.minimal(args, s.call.schema)
    if missing:
        return f"{missing[0]} is required, and nobody knows its value"
    if fewer == dict(s.call.args):
        return "there is nothing that could be left out"
    step = s.again("Call it again with the required arguments alone", args=fewer)
    return Recipe(steps=(step._replace(again=False),))  # what is left out had a meaning: it is another call


def _same_types(one: dict[str, object], other: object) -> bool:
    assert isinstance(other, dict) or hasattr(other, "__getitem__")
    return all(type(value) is type(other[key]) for key, value in one.items())


def _corrected_word(s: Situation) -> Recipe | str:
    """Put the word that the program itself suggests in the place of the wrong one."""
    words = s.call.words
    if words is None:
        return "only a shell can tell the arguments of the call"
    found = MEANT.search(s.text)
    meant = next((group for group in found.groups() if group), "") if found else ""
    if not meant:
        return "the program suggests no other word"
    wrong = get_close_matches(meant, [word.partition("=")[0] for word in words[1:]], 1, 0.5)
    if not wrong:
        return f"nothing in the call looks like {meant}"
    fixed = tuple(meant + word[len(wrong[0]) :] if word.partition("=")[0] == wrong[0] else word for word in words)
    return Recipe(steps=(s.again(f"Call it again with {meant}, as it suggests", words=fixed),))


def _usage(s: Situation) -> Recipe | str:
    """Look at how the program wants to be called."""
    words = s.call.words
    if words is None:
        return "only a shell can tell the arguments of the call"
    shown = (
        words[:2]
        if len(words) > 1
        and re.fullmatch(r"[a-z][\w-]*", words[1])
        and words[0] in {"git", "npm", "cargo", "go", "docker", "pip"}
        else words[:1]
    )
    read = Step(
        action="Read its usage",
        deed=Shell(argv=(*shown, "--help")),
        expected="Its options are listed",
        expects=Expects(prints=True),
        risk="safe" if s.repeatable(words) else "caution",
    )
    simpler = _without_option(s)
    return simpler if isinstance(simpler, str) else Recipe(steps=(read, *simpler.steps), requires=simpler.requires)


def _without_option(s: Situation) -> Recipe | str:
    """Leave out the option that the program does not know."""
    words, found = s.call.words, BAD_OPTION.search(s.text)
    if words is None or found is None:
        return "the message names no option that could be left out"
    name = found[1] if found[1].startswith("-") else f"-{found[1]}"
    places = [place for place, word in enumerate(words) if word.partition("=")[0] == name]
    if not places:
        return f"{name} stands nowhere in the call"
    if restrains(name):
        return f"without {name} the call would do more than was asked for"
    if any(re.fullmatch(r"-?[\d.]+", word) for place in places for word in words[place + 1 : place + 2]):
        return f"nobody knows whether what follows {name} belongs to it"
    fewer = tuple(word for place, word in enumerate(words) if place not in places)
    step = s.again(f"Call it again without {name}", words=fewer)
    return Recipe(
        steps=(Step(action=step.action, deed=step.deed, expected=step.expected, risk="caution", again=True),),
        requires=(words[0],),
    )


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
