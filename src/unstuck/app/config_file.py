"""Edge: Read the configuration: `unstuck.toml`, or `[tool.unstuck]` in `pyproject.toml`. Unknown keys are refused by name."""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin, get_type_hints

from unstuck.model.config import Config
from unstuck.model.errors import BadUsage
from unstuck.shipped import pages

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NAME = "unstuck.toml"
LEAST = {"parallel": 1}
"""What a number must be at least; 0 for all others."""
LARGEST_IN_PROFILE = 1_000_000_000
"""Seconds or counts beyond this would overflow where they are multiplied."""
PROFILES = "profiles"
QUOTED_CHARS = 200
KEY_ITSELF = "[key]"
"""Pydantic's word for a key of a mapping that is wrong itself."""
WANTED = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "string": "a text in quotes",
    "tuple": "a list in brackets",
    "dict": "a table",
    "dataclass": "a table",
    "literal": "one of {expected}",
}
"""What a key wants, by the first word of what pydantic calls the mistake."""
ROW = re.compile(r"^\| `(?P<key>[\w.]+)` \| .*? \| (?P<meaning>.+) \|$", re.MULTILINE)


def read_config(root: Path) -> Config:
    """Return the repository's configuration; without any file, what was found and tried here, else the defaults."""
    found = readable_config(root)
    if found.refused is not None:
        raise found.refused
    return found.config


class Readable(NamedTuple):
    """What can be read of a configuration: without what is wrong in it, and all of that as it is told."""

    config: Config
    source: str = NAME
    content: Mapping[str, Any] = MappingProxyType({})
    refused: BadUsage | None = None


def readable_config(root: Path) -> Readable:
    """Return the configuration as far as it can be read: for who only looks."""
    try:
        path, content = written(root)
    except BadUsage as error:
        return Readable(Config(), refused=error)
    if not content:
        return Readable(Config())
    mistakes: dict[tuple[str, ...], str] = {}
    for keys, shape in tuple(_unknown(content, Config)):
        mistakes[keys] = _nearest(keys[-1], shape)
    outside_profiles = [keys for keys in mistakes if keys[0] != PROFILES]
    config, sound = _judged(_without(content, outside_profiles), mistakes)
    mistakes |= dict(_out_of_range(config))
    mistakes |= _profile_mistakes(config, mistakes)
    if mistakes:
        config, sound = _judged(_without(sound, mistakes), mistakes)
    return Readable(config, path.name, sound, _refused(path, mistakes) if mistakes else None)


def _judged(content: dict[str, Any], mistakes: dict[tuple[str, ...], str]) -> tuple[Config, dict[str, Any]]:
    """Return the configuration of all that has the right shape, and where that stands; note the rest."""
    from pydantic import ValidationError  # noqa: PLC0415  # heavy, and most commands meet no configuration

    while True:
        try:
            return _shape().validate_python(content), content
        except ValidationError as error:
            for one in error.errors():
                mistakes.setdefault(_place(content, one["loc"]), _wanted(one))
            before, content = content, _without(content, mistakes)
            if content == before:
                raise


def _profile_mistakes(config: Config, mistakes: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Return the errors in the meaning of profiles whose values have the right types."""
    if not config.profiles:
        return {}
    from unstuck.policy.profiles import profile_mistake  # noqa: PLC0415  # most configurations have no profile

    already_wrong = {keys[:2] for keys in mistakes if keys[0] == PROFILES}
    reasons: dict[tuple[str, ...], str] = {}
    for name, profile in config.profiles.items():
        if (PROFILES, name) in already_wrong:
            continue
        mistake = profile_mistake(name, profile.as_table())
        if mistake is not None:
            key, reason = mistake
            reasons[PROFILES, name, *key.split(".")] = reason
    return reasons


def _place(content: Mapping[str, Any], parts: Iterable[object]) -> tuple[str, ...]:
    """Return the keys of the file that lead to a mistake: what follows them is an entry of a list, or a name of pydantic's."""
    place: Any = content
    keys: list[str] = []
    for part in parts:
        if isinstance(part, int) and isinstance(place, list) and keys[:1] == [PROFILES]:
            place = place[part]
            continue
        key = str(part)
        if not isinstance(place, Mapping) or key not in place:
            break
        keys.append(key)
        place = place[key]
    return tuple(keys)


def _without(content: Mapping[str, Any], mistakes: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Return the content without the wrong keys. A profile with a mistake is left out as a whole."""
    return _without_keys(content, [keys[:2] if keys[0] == PROFILES else keys for keys in mistakes])


def _without_keys(content: Mapping[str, Any], gone: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    here, below = {keys[0] for keys in gone if len(keys) == 1}, [keys for keys in gone if len(keys) > 1]
    return {
        key: _without_keys(value, [keys[1:] for keys in below if keys[0] == key])
        if isinstance(value, Mapping)
        else value
        for key, value in content.items()
        if key not in here
    }


@cache
def _shape() -> "TypeAdapter[Config]":
    from pydantic import TypeAdapter  # noqa: PLC0415  # as above

    return TypeAdapter(Config)


def has_config(root: Path) -> bool:
    """Whether the user configured anything here, if only an empty file; what we found and tried ourselves is no such thing."""
    path, content = _content(_by_hand(root))
    return bool(content) or path.is_file()


def found_file(store: Path) -> Path:
    """Return where we keep the settings that `unstuck go` found and tried for a repository without a configuration."""
    return store / "found.toml"


def written(root: Path) -> tuple[Path, dict[str, Any]]:
    """Return the file that the configuration is in, and what stands in it; nothing where there is none."""
    return _content((*_by_hand(root), (found_file(_store(root)), ())))


def _by_hand(root: Path) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    return (root / NAME, ()), (root / "pyproject.toml", ("tool", "unstuck"))


def _content(places: Sequence[tuple[Path, tuple[str, ...]]]) -> tuple[Path, dict[str, Any]]:
    for path, table in places:
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, RecursionError) as error:
            if table:
                continue  # a broken pyproject.toml is not ours to judge
            why = _why_unreadable(error)
            raise BadUsage(
                f"{path} cannot be read: {why}.", hint="Correct it, or move it away to use the defaults."
            ) from error
        for part in table:
            content = content.get(part, {})
        if content or not table:
            return path, content
    return places[0][0], {}


def _why_unreadable(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    return str(error)


def _store(root: Path) -> Path:
    """Return our folder in git's own; a linked worktree names git's in a file."""
    git = root / ".git"
    try:
        inner = Path(git.read_text(encoding="utf-8").removeprefix("gitdir: ").strip())
        return (inner / (inner / "commondir").read_text(encoding="utf-8").strip()) / "unstuck"
    except (OSError, UnicodeDecodeError):
        return git / "unstuck"


def _unknown(content: Mapping[str, Any], shape: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the keys that the shape does not have, as paths, each with the shape that it should be of."""
    hints = get_type_hints(shape)
    for key, value in content.items():
        if key not in hints:
            yield (key,), shape
            continue
        for above, table, table_shape in _tables_in(value, hints[key]):
            for below, of in _unknown(table, table_shape):
                yield (key, *above, *below), of


def _tables_in(value: Any, hint: Any) -> Iterator[tuple[tuple[str, ...], dict[str, Any], Any]]:
    """Yield the tables of a value, each with the names that lead to it and the shape that it should be of."""
    inner = get_args(hint)
    if is_dataclass(hint):
        if isinstance(value, dict):
            yield (), value, hint
    elif get_origin(hint) is Mapping:
        for name, entry in value.items() if isinstance(value, dict) else ():
            for above, table, shape in _tables_in(entry, inner[1]):
                yield (name, *above), table, shape
    elif get_origin(hint) is tuple:
        for entry in value if isinstance(value, list) else ():
            yield from _tables_in(entry, inner[0])
    else:
        for choice in inner:
            yield from _tables_in(value, choice)


def _out_of_range(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the numbers that are too small or too large, as paths, each with what is allowed."""
    parts = (
        value.items()
        if isinstance(value, Mapping)
        else [(item.name, getattr(value, item.name)) for item in fields(value)]
    )
    for name, part in parts:
        keys = (*above, name)
        if is_dataclass(part) or keys == (PROFILES,):
            yield from _out_of_range(part, keys)
        elif isinstance(part, int | float) and not part >= LEAST.get(name, 0):
            yield keys, f"must be at least {LEAST.get(name, 0)}"
        elif isinstance(part, int | float) and keys[0] == PROFILES and part > LARGEST_IN_PROFILE:
            yield keys, f"must be at most {LARGEST_IN_PROFILE}"


def _nearest(key: str, shape: Any) -> str:
    known = [field.name for field in fields(shape)]
    listed = ", ".join(known)
    near = difflib.get_close_matches(key, known, n=1)
    return f"there is no such key; {f'did you mean {near[0]!r}' if near else f'known are {listed}'}"


def _wanted(mistake: Mapping[str, Any]) -> str:
    """Say what a key wants and what it has, in words of TOML."""
    wanted = WANTED.get(mistake["type"].partition("_")[0])
    said = wanted.format_map(mistake.get("ctx", {})) if wanted else mistake["msg"]
    return f"wants {said}, not {_quoted(mistake['input'])}" if wanted else said


def _quoted(value: Any) -> str:
    """Return a wrong value as JSON, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists
        return "a value that is too long to print"
    return text if len(text) <= QUOTED_CHARS else f"{text[:QUOTED_CHARS]}…"


def meanings() -> Mapping[str, str]:
    """Return what each key means, as the page of the configuration has it."""
    return {row["key"]: row["meaning"].replace("\\|", "|") for row in ROW.finditer(pages().get("configuration", ""))}


def _refused(path: Path, mistakes: Mapping[tuple[str, ...], str]) -> BadUsage:
    """Tell of every mistake, in the order of the lines."""
    told = sorted((_line(path, keys), f"{'.'.join(keys)}: {why}.{_means(keys)}") for keys, why in mistakes.items())
    places = [(f":{line}" if line else "", text) for line, text in told]
    if len(places) == 1:
        ((where, text),) = places
        said = f"{path}{where}: {text}"
    else:
        said = "\n".join(
            (f"{path} has {len(places)} mistakes:", *(f"  {path.name}{where}: {text}" for where, text in places))
        )
    return BadUsage(said, hint="What a key means, and what it is without it: unstuck config KEY")


def _means(keys: tuple[str, ...]) -> str:
    meaning = meanings().get(".".join(keys), "")
    return f" It means: {meaning}." if meaning else ""


def _line(path: Path, keys: tuple[str, ...]) -> int:
    """Find the line of the offending key, as far as a search can; 0 where it cannot."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError:
        return 0
    for key in reversed(keys):
        pattern = re.compile(rf"^\s*(?:\[.*\b)?[\"']?{re.escape(key)}\b")
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                return number
    return 0
