"""Repair a tool's arguments by its JSON schema: types, names, required fields. Pure; never invents a value."""

import json
import re
from collections.abc import Mapping
from typing import Any

from unstuck.remedies.caller_tools import ALIASES

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
TRUE, FALSE = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})
SAID = re.compile(
    r"\b(\w+)['\"`]?:? (?:should be|must be|expected)(?: of type)? (?:an? |type )?['\"`]?(\w+)['\"`]?,? (?:but )?(?:got|received|was|is)",
    re.IGNORECASE,
)
SPOKEN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
MOST_DEPTH = 20


def problem(schema: Any, depth: int = 0) -> str:
    """Say why a value is no JSON schema of arguments; empty if it is one."""
    if not isinstance(schema, Mapping):
        return "it is not an object"
    if depth > MOST_DEPTH:
        return "it is nested too deeply"
    kinds = schema.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind is not None and kind not in TYPES:
            return f"there is no type {kind!r}"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return "`properties` is not an object"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "`required` is not a list of names"
    if depth == 0 and kinds not in (None, "object"):
        return "the arguments of a tool are an object"
    if depth == 0 and not {
        "type",
        "properties",
        "required",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "$schema",
        "additionalProperties",
    }.intersection(schema):
        return "it says nothing about arguments (`type`, `properties`)"
    for name, part in properties.items():
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


def minimal(args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the required arguments alone."""
    return {key: value for key, value in args.items() if key in schema.get("required", [])}


def said(text: str) -> dict[str, Any]:
    """Return the schema that an error message gives away: `timeout should be number, got string`."""
    found = {name: SPOKEN.get(kind.lower(), kind.lower()) for name, kind in SAID.findall(text[:20_000])}
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
        from difflib import get_close_matches  # noqa: PLC0415  # takes longer to load than the rest of this

        names = {str(choice).casefold(): choice for choice in choices}
        near = get_close_matches(value.casefold(), list(names), 1, 0.75)
        value = names[near[0]] if near else value
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        value = [converted(item, schema["items"]) for item in value]
    if isinstance(value, Mapping) and isinstance(schema.get("properties"), Mapping):
        value = typed(value, schema)
    return value


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return value is None


def _as(value: Any, kind: str, schema: Mapping[str, Any]) -> tuple[bool, Any]:
    match kind:
        case "string":
            return True, value if isinstance(value, str) else _spelled(value)
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


def _spelled(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


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
    flat = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in names}
    own = re.sub(r"[^a-z0-9]", "", key.lower())
    if own in flat:
        return flat[own]
    for group in ALIASES:
        shared = [name for name in names if name in group]
        if key in group and len(shared) == 1:
            return shared[0]
    from difflib import get_close_matches  # noqa: PLC0415  # as above

    near = get_close_matches(own, list(flat), 1, 0.75)
    return flat[near[0]] if near else ""
