"""Edge: Every key of the configuration: its value, its default, where the value comes from, and what it means."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from unstuck.agents import manifest
from unstuck.config import Config
from unstuck.config_file import meanings, readable_config
from unstuck.errors import BadUsage, UnstuckError
from unstuck.git import find

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key."""

    key: str
    value: Any
    default: Any
    source: str
    """The file that says so, or `default`."""


def settings(cwd: Path) -> tuple[tuple[Setting, ...], BadUsage | None]:
    """Return every key of the configuration that holds here, without what is wrong, and that as a run would tell it."""
    found = readable_config(_root(cwd))
    config, content = found.config, found.content
    return tuple(
        Setting(key=key, value=value, default=default, source=found.source if _stands_in(content, key) else DEFAULT)
        for key, value, default in (*_keys(config, Config()), *_agents(config, content))
    ), found.refused


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of `unstuck.toml`: unknown keys are refused, as a run refuses them."""
    from pydantic import TypeAdapter  # noqa: PLC0415  # heavy, and only for this

    schema = TypeAdapter(Config).json_schema()
    shapes = {"Config": schema, **schema.get("$defs", {})}
    for shape in shapes.values():
        if "properties" in shape:
            shape["additionalProperties"] = False
    for key, meaning in meanings().items():
        *above, last = key.split(".")
        section = shapes.get(f"{above[0].capitalize()}Config", {}) if above else schema
        if last in section.get("properties", {}):
            section["properties"][last]["description"] = meaning
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "unstuck.toml"}


def _root(cwd: Path) -> Path:
    try:
        return find(cwd).root
    except UnstuckError:  # outside of a repository the defaults hold, or the file that is here
        return cwd


def _keys(value: Any, default: Any, above: str = "") -> Iterator[tuple[str, Any, Any]]:
    for field in fields(value):
        key, part, ours = f"{above}{field.name}", getattr(value, field.name), getattr(default, field.name)
        if is_dataclass(part):
            yield from _keys(part, ours, f"{key}.")
        elif key == "agents" and part:
            continue  # each of them is told by itself
        elif isinstance(part, Mapping) and part:
            yield from ((f"{key}.{name}", one, ours.get(name)) for name, one in part.items())
        else:
            yield key, part, ours


def _agents(config: Config, content: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what is said of agents; what a known one has by itself is its default."""
    for name, agent in config.agents.items():
        known = manifest(name, {})
        ours, theirs = asdict(known) if known else {}, asdict(agent)
        for key in content.get("agents", {}).get(name, {}):
            yield f"agents.{name}.{key}", theirs[key], ours.get(key)


def _stands_in(content: Mapping[str, Any], key: str) -> bool:
    place: Any = content
    for part in key.split("."):
        if not isinstance(place, Mapping) or part not in place:
            return False
        place = place[part]
    return True
