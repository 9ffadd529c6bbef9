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
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from unstuck.model.config import AgentConfig, Config
from unstuck.model.errors import BadUsage
from unstuck.shipped import pages

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NAME = "unstuck.toml"
LEAST = {"parallel": 1}
"""What a number must be at least; 0 for all others."""
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
    config, sound = _judged(_without(content, mistakes), mistakes)
    if small := tuple(_too_small(config)):
        mistakes |= {keys: f"must be at least {LEAST.get(keys[-1], 0)}" for keys in small}
        config, sound = _judged(_without(sound, small), mistakes)
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


def _place(content: Mapping[str, Any], parts: Iterable[object]) -> tuple[str, ...]:
    """Return the keys of the file that lead to a mistake: what follows them is an entry of a list, or a name of pydantic's."""
    place: Any = content
    keys: list[str] = []
    for part in map(str, parts):
        if not isinstance(place, Mapping) or part not in place:
            break
        keys.append(part)
        place = place[part]
    return tuple(keys)


def _without(content: Mapping[str, Any], gone: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    here, below = {keys[0] for keys in gone if len(keys) == 1}, [keys for keys in gone if len(keys) > 1]
    return {
        key: _without(value, [keys[1:] for keys in below if keys[0] == key]) if isinstance(value, Mapping) else value
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
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            if table:
                continue  # a broken pyproject.toml is not ours to judge
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
            raise BadUsage(
                f"{path} cannot be read: {why}.", hint="Correct it, or move it away to use the defaults."
            ) from error
        for part in table:
            content = content.get(part, {})
        if content or not table:
            return path, content
    return places[0][0], {}


def _store(root: Path) -> Path:
    """Return our folder in git's own; a linked worktree names git's in a file."""
    git = root / ".git"
    try:
        inner = Path(git.read_text(encoding="utf-8").removeprefix("gitdir: ").strip())
        return (inner / (inner / "commondir").read_text(encoding="utf-8").strip()) / "unstuck"
    except (OSError, UnicodeDecodeError):
        return git / "unstuck"


def _unknown(content: dict[str, Any], shape: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the keys that the shape does not have, as paths, each with the shape that it should be of."""
    hints = get_type_hints(shape)
    for key, value in content.items():
        inner: dict[tuple[str, ...], Any] = {}
        if key not in hints:
            yield (key,), shape
        elif is_dataclass(hints[key]):
            inner = {(key,): (value, hints[key])}
        elif hints[key] == Mapping[str, AgentConfig] and isinstance(value, dict):
            inner = {(key, name): (entry, AgentConfig) for name, entry in value.items()}
        for above, (part, its_shape) in inner.items():
            if isinstance(part, dict):
                yield from (((*above, *rest), of) for rest, of in _unknown(part, its_shape))


def _too_small(value: Any) -> Iterator[tuple[str, ...]]:
    for field in fields(value):
        part = getattr(value, field.name)
        if is_dataclass(part):
            yield from ((field.name, *rest) for rest in _too_small(part))
        elif isinstance(part, int | float) and not part >= LEAST.get(field.name, 0):
            yield (field.name,)


def _nearest(key: str, shape: Any) -> str:
    known = [field.name for field in fields(shape)]
    listed = ", ".join(known)
    near = difflib.get_close_matches(key, known, n=1)
    return f"there is no such key; {f'did you mean {near[0]!r}' if near else f'known are {listed}'}"


def _wanted(mistake: Mapping[str, Any]) -> str:
    """Say what a key wants and what it has, in words of TOML."""
    wanted = WANTED.get(mistake["type"].partition("_")[0])
    said = wanted.format_map(mistake.get("ctx", {})) if wanted else mistake["msg"]
    return f"wants {said}, not {json.dumps(mistake['input'], ensure_ascii=False, default=str)}" if wanted else said


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
    pattern = re.compile(rf"^\s*(?:\[.*\b)?[\"']?{re.escape(keys[-1])}\b")
    return next((number for number, line in enumerate(lines, 1) if pattern.search(line)), 0)
