"""Ways out of a wrong call: types, names and required fields from the tool's JSON schema, fewer of them, or another tool. Pure."""

import re

from unstuck.remedies.call_words import only_alike, restrains
from unstuck.remedies.chain import (
    Expects,
    ListFolder,
    Operation,
    ReadFile,
    Recipe,
    Step,
    Use,
    WriteFile,
    flat,
    listed,
    name_words,
    no_way,
    recipe,
    run,
    shape,
)
from unstuck.remedies.schemas import completed, said, typed
from unstuck.remedies.situation import Situation, path

ARGUMENTS_OF_A_SHELL = "only a shell can tell the arguments of the call"


def fix_parameter_types(s: Situation) -> Recipe:
    """Convert what has the wrong type."""
    if s.is_command:
        return _corrected_word(s)
    known = s.call.schema or said(s.text)
    if not known.get("properties"):
        no_way("nobody gave the tool's schema, and the message names no type")
    given, args = s.call.args, typed(s.call.args, known)
    changed = [key for key, value in args.items() if value != given[key] or type(value) is not type(given[key])]
    if not changed:
        no_way("the types fit the schema as far as they can be converted")
    return recipe(s.again(f"Call it again with {', '.join(changed)} of the right type", args=args))


def check_schema(s: Situation) -> Recipe:
    """Correct names and fill in what is required, as far as the schema says how."""
    if s.is_command:
        return _usage(s)
    known = s.call.schema
    if known is None:
        no_way("nobody gave the tool's schema")
    args, missing = completed(s.call.args, known)
    if missing:
        no_way(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} required, and nobody knows the value")
    lost = [name for name in s.call.args if name not in known.get("properties", {}) and restrains(name)]
    if lost and not any(s.call.args[name] in args.values() for name in lost):
        no_way(f"without {lost[0]} the call would do more than was asked for")
    if args == typed(s.call.args, known):
        no_way("the names and required fields fit the schema")
    return recipe(s.again("Call it again with the names and fields of the schema", args=args))


def simplify_arguments(s: Situation) -> Recipe:
    """Leave out what is not required."""
    if s.is_command:
        return _without_option(s)
    required = (s.call.schema or {}).get("required") or no_way("nobody says which arguments are required")
    args, missing = completed(s.call.args, s.call.schema or {})
    if missing:
        no_way(f"{missing[0]} is required, and nobody knows its value")
    fewer = {key: value for key, value in args.items() if key in required}
    if fewer == args:
        no_way("there is nothing that could be left out")
    if lost := next(filter(restrains, args.keys() - fewer.keys()), ""):
        no_way(f"without {lost} the call would do more than was asked for")
    step = s.again("Call it again with the required arguments alone", args=fewer)
    return recipe(step._replace(again=False))  # what is left out had a meaning: it is another call


def _corrected_word(s: Situation) -> Recipe:
    """Put the word that the program itself suggests in the place of the wrong one."""
    if known := s.known_repair():
        return recipe(known)
    words = s.call.words or no_way(ARGUMENTS_OF_A_SHELL)
    names = [word.partition("=")[0] for word in words]
    if choices := re.search(shape("choices"), s.text):
        wrong, meant = choices[1], only_alike(choices[1], re.findall(r"[\w-]+", choices[2]))
    else:
        found = re.search(shape("meant"), s.text) or no_way("the program suggests no other word")
        meant = next(filter(None, found.groups()))
        wrong = only_alike(meant, names[1:])
    if not meant or wrong not in names[1:]:
        no_way("what the program suggests is not a word of the call spelled right, but another one")
    fixed = tuple(
        meant + word[len(wrong) :] if name == wrong else word for name, word in zip(names, words, strict=True)
    )
    return recipe(s.again(f"Call it again with {meant}, as it suggests", words=fixed))


def _usage(s: Situation) -> Recipe:
    """Look at how the program wants to be called."""
    words, found = s.call.words or no_way(ARGUMENTS_OF_A_SHELL), re.search(shape("bad_option"), s.text)
    wrong = found[1] if found else ""
    if wrong and (meant := only_alike(wrong, re.findall(r"(?<![\w-])--\w[\w-]*", s.around.usage))):
        fixed = (meant + word[len(wrong) :] if word.partition("=")[0] == wrong else word for word in words)
        return recipe(s.again(f"Call it again with {meant}, as its usage has it", words=tuple(fixed)))
    sub = words[0] in listed("with_subcommands") and len(words) > 1 and re.fullmatch(r"[a-z][\w-]*", words[1])
    simpler = _without_option(s)
    read = run("Read its usage", *words[: 2 if sub else 1], "--help", expected="Its options are listed",
               expects=Expects(prints=True), risk="safe" if s.repeatable(words) else "caution")  # fmt: skip
    return simpler._replace(steps=(read, *simpler.steps))


def _without_option(s: Situation) -> Recipe:
    """Leave out the option that the program does not know."""
    words, found = s.call.words, re.search(shape("bad_option"), s.text)
    if words is None or found is None:
        no_way("the message names no option that could be left out")
    name = found[1] or f"-{found[2]}"
    places = [place for place, word in enumerate(words) if word.partition("=")[0] == name]
    bundles = {word for word in words[1:] if found[2] and re.fullmatch(rf"-\w*{found[2]}\w*", word)} - {name}
    if not places and not bundles:
        no_way(f"{name} stands nowhere in the call")
    if restrains(name):
        no_way(f"without {name} the call would do more than was asked for")
    if any(re.fullmatch(r"-?[\d.]+", word) for place in places for word in words[place + 1 : place + 2]):
        no_way(f"nobody knows whether what follows {name} belongs to it")
    kept = (word for place, word in enumerate(words) if place not in places)
    fewer = tuple(word.replace(found[2], "") if word in bundles else word for word in kept)
    if len(fewer) == 1:
        no_way(f"without {name} nothing is left of the call")  # and a bare `cat` is green on empty input
    step = s.again(f"Call it again without {name}", words=fewer)
    shows = bool(re.search(shape("only_shows"), name))  # else what is left out had a meaning: it is another call
    return recipe(step._replace(risk="caution", again=shows), requires=words[:1])


# --- a missing tool -----------------------------------------------------------------------------------------------


def use_available_alternative(s: Situation) -> Recipe:
    """Find a tool among those that are there which does the same."""
    named = re.search(shape("missing_tool"), s.text)
    tool = (named[1] or named[2]) if named else s.call.tool
    others = {flat(name): name for name in sorted((s.tools.names or frozenset()) - {tool})}
    if near := only_alike(flat(tool), others):
        name = others[near]
        action, schema = f"Use {name}, which {tool} looks like", s.schema(name)
        args = completed(s.call.args, schema)[0] if schema is not None else dict(s.call.args)
        return recipe(Step(action, Use(name, args), f"{name} answers", s.calling(name), again=True))
    return _basic(s, tool) or no_way(f"none of the tools is known to do what {tool or 'it'} does")


def _basic(s: Situation, tool: str) -> Recipe | None:
    """Do it with the basic tool whose words the name has."""
    words, place = name_words(tool), path(s)
    content = next((s.call.args[key] for key in listed("content_keys") if isinstance(s.call.args.get(key), str)), None)
    for role in ("write_file", "read_dir", "read_file", "run_bash"):
        if words.isdisjoint(s.table("intents").get(role, ())):
            continue
        if role == "write_file" and place and content is not None:
            write = WriteFile(place, content)
            return _one(f"Write {place} with a tool that is there", write, f"{place} is written")
        if role == "read_dir":
            shown = _one("List the folder with a tool that is there", ListFolder(place or "."), "A listing")
            read = Step("Read the file that is wanted", ReadFile(place), "Its content")
            return shown._replace(steps=(*shown.steps, read)) if place and "file" in words else shown
        if role == "read_file" and place:
            return _one(f"Read {place} with a tool that is there", ReadFile(place), "Its content")
        if role == "run_bash" and s.call.line:
            return recipe(s.again("Run it with the shell that is there", script=s.call.line))
    return None


def _one(action: str, operation: Operation, expected: str) -> Recipe:
    return recipe(Step(action, operation, expected, again=True))
