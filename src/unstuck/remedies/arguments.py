"""Ways out of a wrong call: types, names and required fields from the tool's JSON schema, fewer of them, or another tool.

Pure; never invents a value.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from unstuck.remedies.call_words import near_word, restrains
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
    names_of,
    no_way,
    recipe,
    run,
    shape,
)
from unstuck.remedies.situation import Situation, path

ARGUMENTS_OF_A_SHELL = "only a shell can tell the arguments of the call"
CLOSE = 0.8


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
    if fewer == dict(s.call.args):
        no_way("there is nothing that could be left out")
    step = s.again("Call it again with the required arguments alone", args=fewer)
    return recipe(step._replace(again=False))  # what is left out had a meaning: it is another call


def _corrected_word(s: Situation) -> Recipe:
    """Put the word that the program itself suggests in the place of the wrong one."""
    if known := s.known_repair():
        return recipe(known)
    words, found, choices = (
        s.call.words or no_way(ARGUMENTS_OF_A_SHELL),
        re.search(shape("meant"), s.text),
        re.search(shape("choices"), s.text),
    )
    meant = next(filter(None, found.groups())) if found else ""
    if choices:
        meant = near_word(choices[1], re.findall(r"[\w-]+", choices[2]), 0.6)
    if not meant:
        no_way("the program suggests no other word")
    names = [word.partition("=")[0] for word in words]
    wrong = near_word(meant, names[1:], 0.5) or no_way(f"nothing in the call looks like {meant}")
    fixed = tuple(
        meant + word[len(wrong) :] if name == wrong else word for name, word in zip(names, words, strict=True)
    )
    return recipe(s.again(f"Call it again with {meant}, as it suggests", words=fixed))


def _usage(s: Situation) -> Recipe:
    """Look at how the program wants to be called."""
    words, found = s.call.words or no_way(ARGUMENTS_OF_A_SHELL), re.search(shape("bad_option"), s.text)
    wrong = found[1] if found else ""
    if wrong and (meant := near_word(wrong, re.findall(r"(?<![\w-])--\w[\w-]*", s.around.usage), CLOSE)):
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
    if near := near_word(flat(tool), list(others), CLOSE):
        name = others[near]
        action = f"Use {name}, which {tool} looks like"
        return recipe(Step(action, Use(name, dict(s.call.args)), f"{name} answers", again=True))
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


# --- arguments by their schema ------------------------------------------------------------------------------------

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
TRUE, FALSE = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})
SPOKEN = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object", "dictionary": "object",
}  # fmt: skip
MOST_DEPTH = 20


def problem(schema: Any, depth: int = 0) -> str:
    """Say why a value is no JSON schema of arguments; empty if it is one."""
    if not isinstance(schema, Mapping):
        return "it is not an object"
    kinds, properties, required = schema.get("type"), schema.get("properties", {}), schema.get("required", [])
    if unknown := [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind not in (None, *TYPES)]:
        return f"there is no type {unknown[0]!r}"
    if not depth and (kinds not in (None, "object") or set(schema).isdisjoint(listed("schema_words"))):
        return "it says nothing about arguments (`type`, `properties`)"
    names = isinstance(required, list) and all(isinstance(name, str) for name in required)
    if not isinstance(properties, Mapping) or not names:
        return "`properties` is no object, or `required` no list of names"
    for name, part in properties.items() if depth < MOST_DEPTH else ():
        if not isinstance(part, bool) and (why := problem(part, depth + 1)):
            return f"{name}: {why}"
    return ""


def typed(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with every value that has the wrong type converted, where it can be."""
    properties = schema.get("properties", {})
    return {key: converted(value, properties.get(key, {})) for key, value in args.items()}


def completed(args: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments with names corrected and defaults filled in, and what is still missing."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    fixed = {key: value for key, value in args.items() if key in properties}
    strays = {key: value for key, value in args.items() if key not in properties}
    for key, value in strays.items():
        meant = _meant(key, [name for name in properties if name not in fixed and name not in args])
        if meant:
            fixed[meant] = value
        elif schema.get("additionalProperties", True) is not False and not required:
            fixed[key] = value
    for name in required:
        part = properties.get(name, {})
        if name not in fixed and isinstance(part, Mapping):
            if "default" in part:
                fixed[name] = part["default"]
            elif "const" in part or len(part.get("enum", ())) == 1:
                fixed[name] = part["const"] if "const" in part else part["enum"][0]
    return typed(fixed, schema), tuple(name for name in required if name not in fixed)


def said(text: str) -> dict[str, Any]:
    """Return the schema that an error message gives away: `timeout should be number, got string`."""
    found = {name: SPOKEN.get(kind.lower(), kind.lower()) for name, kind in re.findall(shape("typed"), text[:20_000])}
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in found.items() if kind in TYPES}}


def converted(value: Any, schema: Any) -> Any:
    """Return the value as the schema wants it, or as it is where nothing sensible can be done."""
    if not isinstance(schema, Mapping):
        return value
    kinds = schema.get("type")
    wanted = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    if wanted and not any(_is(value, kind) for kind in wanted):
        for kind in wanted:
            done, new = _as(value, kind, schema)
            if done:
                value = new
                break
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices and isinstance(value, str):
        names = {str(choice).casefold(): choice for choice in choices}
        value = names.get(near_word(value.casefold(), list(names), 0.75), value)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        value = [converted(item, schema["items"]) for item in value]
    if isinstance(value, Mapping) and isinstance(schema.get("properties"), Mapping):
        value = typed(value, schema)
    return value


IS: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "boolean": bool, "integer": int, "number": (int, float), "array": (list, tuple), "object": Mapping, "null": type(None),
}  # fmt: skip


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, IS.get(kind, type(None))) and not (
        isinstance(value, bool) and kind in {"integer", "number"}
    )


def _as(value: Any, kind: str, schema: Mapping[str, Any]) -> tuple[bool, Any]:
    match kind:
        case "string":
            return True, "" if value is None else json.dumps(value, ensure_ascii=False)
        case "integer" | "number":
            return _number(value, whole=kind == "integer")
        case "boolean":
            word = str(value).strip().casefold()
            return (True, word in TRUE) if word in TRUE | FALSE else (False, value)
        case "array":
            return True, _list(value, schema)
        case "object":
            read = _json(value)
            return (True, read) if isinstance(read, dict) else (False, value)
        case _:
            return (True, None) if value in ("", "null", "none") else (False, value)


def _number(value: Any, *, whole: bool) -> tuple[bool, Any]:
    text = str(value).strip().replace("_", "")
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d{1,300}(?:\.\d{0,300})?(?:[eE][+-]?\d{1,3})?", text):
        return False, value
    if re.fullmatch(r"[+-]?\d+", text):
        return True, int(text)
    number = float(text)
    if whole and not number.is_integer():
        return False, value
    return True, int(number) if whole else number


def _list(value: Any, schema: Mapping[str, Any]) -> list[Any]:
    read = _json(value)
    if isinstance(read, list):
        return read
    items = schema.get("items")
    of_text = not isinstance(items, Mapping) or items.get("type", "string") in TYPES[:3]
    if isinstance(value, str) and "," in value and of_text:
        return [part.strip() for part in value.split(",") if part.strip()]
    return [] if value is None else [value]


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _meant(key: str, names: list[str]) -> str:
    """Return the argument that a wrong name stands for."""
    bare = {flat(name): name for name in names}
    if flat(key) in bare:
        return bare[flat(key)]
    for group in names_of(key):
        shared = [name for name in names if name in group]
        if len(shared) == 1:
            return shared[0]
    return bare.get(near_word(flat(key), list(bare), 0.75), "")
