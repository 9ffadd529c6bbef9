"""Ways out of a wrong call: types, names and required fields from the schema, or fewer of them."""

import re
from difflib import get_close_matches

from unstuck.remedies import schema
from unstuck.remedies.situation import Situation
from unstuck.remedies.step import Expects, Recipe, Shell, Step

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
    return Recipe(steps=(s.again("Call it again with the required arguments alone", args=fewer),))


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
    fewer = tuple(word for word in words if word.partition("=")[0] != name)
    if fewer == words:
        return f"{name} stands nowhere in the call"
    step = s.again(f"Call it again without {name}", words=fewer)
    return Recipe(
        steps=(Step(action=step.action, deed=step.deed, expected=step.expected, risk="caution", again=True),),
        requires=(words[0],),
    )
