"""Flatten settings in TOML, INI, JSON, JavaScript or YAML to dotted keys, each with its values as texts."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from unstuck.verify.tamper.change import LONGEST
from unstuck.verify.tamper.script_tokens import Script, arguments, cut

Settings = dict[str, tuple[str, ...]]


def flatten(path: str, text: str | None) -> Settings:
    """Give the settings of a text; of one that cannot be read, as many as can be seen."""
    if not text or len(text) > LONGEST:
        return {}
    name = path.rpartition("/")[2].lower()
    if name.endswith(".toml"):
        try:
            return dict(_of_value("", tomllib.loads(text)))
        except (tomllib.TOMLDecodeError, RecursionError, ValueError):
            return _of_ini(text)
    if name.endswith((".yml", ".yaml")):
        return _of_yaml(text)
    if re.search(r"\.(?:json|jsonc|json5|[cm]?[jt]s)$", name) or text.lstrip().startswith("{"):
        return dict(_of_script(cut(text)))
    if name.startswith((".eslintrc", ".mocharc", ".nycrc", ".babelrc", ".swcrc")):
        return _of_yaml(text)
    return _of_ini(text)


def _of_value(path: str, value: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _of_value(f"{path}.{key}".lstrip("."), inner)
    elif isinstance(value, list):
        plain = tuple(str(one) for one in value if not isinstance(one, dict | list))
        if plain or not value:
            yield path, plain
        for one in value:
            if isinstance(one, dict):
                label = one.get("module") or one.get("name") or ""
                yield from _of_value(f"{path}.[{label}]", one)
    else:
        yield path, (str(value).lower() if isinstance(value, bool) else str(value),)


def _of_ini(text: str) -> Settings:
    found: dict[str, list[str]] = {}
    section, key = "", ""
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare.startswith(("#", ";")):
            continue
        if bare.startswith("[") and bare.endswith("]"):
            section, key = bare.strip("[]").replace(":", "."), ""
        elif line[:1].isspace() and key:
            found[key].append(bare.rstrip(","))
        elif match := re.match(r"([^=:]+)[=:]\s*(.*)", bare):
            key = f"{section}.{match[1].rstrip()}".lstrip(".")
            parts = re.split(r",\s*", match[2]) if _is_list(match[1]) else [match[2]]
            found[key] = [part for part in parts if part]
    return {key: tuple(values) for key, values in found.items()}


def _is_list(key: str) -> bool:
    return re.search(r"ignore|select|exclude|omit|disable|enable|testpaths|files", key.lower()) is not None


def _of_yaml(text: str) -> Settings:
    """Read the plain part of YAML: keys by indentation, scalars, and lists of scalars."""
    found: dict[str, list[str]] = {}
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        bare = line.split(" #")[0].strip()
        if not bare or bare.startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= depth and not (bare.startswith("- ") and stack[-1][0] == depth):
            stack.pop()
        path = ".".join(key for _, key in stack)
        if match := re.match(r"(?:- )?[\"']?([\w.@/-]+)[\"']?:(?:\s+(.*))?$", bare):
            key = f"{path}.{match[1]}".lstrip(".")
            if match[2]:
                found.setdefault(key, []).extend(_scalars(match[2]))
            else:
                stack.append((depth, match[1]))
        elif bare.startswith("- "):
            found.setdefault(path, []).append(bare[2:].strip("\"' "))
    return {key: tuple(values) for key, values in found.items()}


def _scalars(text: str) -> list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [part.strip("\"' ") for part in text[1:-1].split(",") if part.strip()]
    return [text.strip("\"' ")]


def _of_script(script: Script) -> Iterator[tuple[str, tuple[str, ...]]]:
    stack: list[tuple[int, str]] = []
    for at, token in enumerate(script.tokens):
        while stack and stack[-1][0] <= at:
            stack.pop()
        if script.text(at + 1) != ":" or token.kind not in {"id", "str"} or script.text(at - 1) not in {"{", ","}:
            continue
        key, start = token.value or token.text, at + 2
        path = ".".join([name for _, name in stack] + [key])
        if script.text(start) == "{":
            stack.append((script.end(start), key))
        elif script.text(start) == "[":
            parts = arguments(script, start)
            yield path, tuple(_text(script, *part) for part in parts if script.text(part[0]) != "{")
            stack.append((script.end(start), key))
        else:
            yield path, (_text(script, start, _value_end(script, start)),)


def _value_end(script: Script, start: int) -> int:
    at = start
    while at < len(script.tokens) and script.text(at) not in {",", "}", "]", ")"}:
        at = script.closes.get(at, at) + 1
    return at


def _text(script: Script, start: int, end: int) -> str:
    tokens = script.tokens[start : min(end, start + 60)]
    if len(tokens) == 1:
        return tokens[0].value or tokens[0].text
    return " ".join(token.text for token in tokens)
