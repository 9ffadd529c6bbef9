"""JSON schemas of arguments: whether they are one, how a call breaks its own, and what it becomes by it. Pure; never invents a value."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

from unstuck.remedies.call_words import only_alike
from unstuck.remedies.chain import flat, listed, names_of, shape

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
TRUE, FALSE = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})
SPOKEN = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object", "dictionary": "object",
}  # fmt: skip
MOST_DEPTH, FORM = 20, 3
"""How deep a schema is read; one that is put together of others may point to itself, in several places."""


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
    return _typed(args, schema, schema)


def _typed(args: Mapping[str, Any], schema: Mapping[str, Any], root: Any, depth: int = 0) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {key: converted(value, properties.get(key, {}), root, depth) for key, value in args.items()}


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
    fixed = filled(fixed, schema)
    return typed(fixed, schema), tuple(name for name in required if name not in fixed)


def filled(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with what is required and missing, where the schema says what it is."""
    fixed = dict(args)
    for name in schema.get("required", []):
        part = schema.get("properties", {}).get(name, {})
        if name not in fixed and isinstance(part, Mapping):
            if "default" in part:
                fixed[name] = part["default"]
            elif "const" in part or len(part.get("enum", ())) == 1:
                fixed[name] = part["const"] if "const" in part else part["enum"][0]
    return fixed


def said(text: str) -> dict[str, Any]:
    """Return the schema that an error message gives away: `timeout should be number, got string`."""
    found = {name: SPOKEN.get(kind.lower(), kind.lower()) for name, kind in re.findall(shape("typed"), text[:20_000])}
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in found.items() if kind in TYPES}}


def converted(value: Any, schema: Any, root: Any = None, depth: int = 0) -> Any:
    """Return the value as the schema wants it, or as it is where nothing sensible can be done."""
    schema = _pointed(schema, root)
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
        return value
    wanted = _kinds(schema)
    if wanted and not any(_is(value, kind) for kind in wanted):
        value = next((new for done, new in (_as(value, kind, schema) for kind in wanted) if done), value)
    forms = [part for word in ("allOf", "anyOf", "oneOf") for part in _parts(schema, word, root)]
    if forms and all(any(breaks(value, part, root=root)) for part in forms):
        others = ((converted(value, part, root, depth + FORM), part) for part in forms)
        value = next((other for other, part in others if not any(breaks(other, part, root=root))), value)
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices and isinstance(value, str):
        names = {str(choice).casefold(): choice for choice in choices}
        value = names.get(only_alike(value.casefold(), names), value)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        value = [converted(item, schema["items"], root, depth + 1) for item in value]
    if isinstance(value, Mapping) and isinstance(schema.get("properties"), Mapping):
        value = _typed(value, schema, root, depth + 1)
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
    return bare.get(only_alike(flat(key), bare), "")


# --- how a value breaks its schema --------------------------------------------------------------------------------

BOUNDS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any, Any], bool], str]] = {
    "minimum": (float, ge, "is less than"), "maximum": (float, le, "is more than"),
    "exclusiveMinimum": (float, gt, "is not more than"), "exclusiveMaximum": (float, lt, "is not less than"),
    "minLength": (len, ge, "has fewer characters than"), "maxLength": (len, le, "has more characters than"),
    "minItems": (len, ge, "has fewer entries than"), "maxItems": (len, le, "has more entries than"),
}  # fmt: skip
OF_TYPE = {"mum": "number", "Length": "string", "Items": "array"}
"""The endings of bounds, and what they are bounds of."""


def breaks(value: Any, schema: Any, name: str = "", root: Any = None, depth: int = 0) -> Iterator[str]:
    """Yield how a value breaks a schema, each in a few words: what is in the wrong place first, then what is missing."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
        if schema is False:
            yield f"there is no {name}"
        return
    said = name or "it"
    kinds = _kinds(schema)
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{said} is no {' or '.join(kinds)}"
        return
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        yield f"{said} is none of {', '.join(map(str, choices[:10]))}"
    yield from _out_of_bounds(value, schema, said)
    for part in _parts(schema, "allOf", root):
        yield from breaks(value, part, name, root, depth + FORM)
    for word in ("anyOf", "oneOf"):
        forms = [list(breaks(value, part, name, root, depth + FORM)) for part in _parts(schema, word, root)]
        if forms and all(forms):
            yield forms[0][0] if len(forms) == 1 else f"{said} fits none of its forms"
    if isinstance(value, Mapping):
        yield from _broken_inside(value, schema, name, root, depth)
    if isinstance(value, list | tuple):
        for item in value:
            yield from breaks(item, schema.get("items", True), f"an entry of {said}", root, depth + 1)


def _broken_inside(
    value: Mapping[str, Any], schema: Mapping[str, Any], name: str, root: Any, depth: int
) -> Iterator[str]:
    properties, before = schema.get("properties", {}), f"{name}." if name else ""
    for key, inner in value.items():
        part = properties.get(key, schema.get("additionalProperties", True))
        yield from breaks(inner, part, f"{before}{key}", root, depth + 1)
    yield from (f"{before}{key} is missing" for key in schema.get("required", ()) if key not in value)


def _out_of_bounds(value: Any, schema: Mapping[str, Any], said: str) -> Iterator[str]:
    for word, (measured, holds, is_so) in BOUNDS.items():
        bound = schema.get(word)
        kind = next(kind for ending, kind in OF_TYPE.items() if word.endswith(ending))
        if _is(bound, "number") and _is(value, kind) and not holds(measured(value), bound):
            yield f"{said} {is_so} {bound}"


def _parts(schema: Mapping[str, Any], word: str, root: Any) -> list[Any]:
    """Return the schemas that a schema is put together of, those that it only points to included."""
    found = schema.get(word)
    own = [schema] if word == "allOf" and "$ref" in schema else []
    return [_pointed(part, root) for part in (*(found if isinstance(found, list) else ()), *own)]


def _pointed(schema: Any, root: Any) -> Any:
    """Return what a `$ref` inside of the same document points to; what points elsewhere says nothing."""
    if not isinstance(schema, Mapping) or "$ref" not in schema:
        return schema
    first, *steps = str(schema["$ref"]).split("/")
    found = root if first == "#" else True
    for step in steps:
        found = found.get(step, True) if isinstance(found, Mapping) else True
    return found


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    return list(kinds) if isinstance(kinds, list) else [kinds] if kinds else []
