"""Edge: What runs taught in all repositories of this user: each keeps a file of its own counts, and reads the others'."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unstuck.decide import Experience, Record, Tried, pooled
from unstuck.errors import UnstuckError
from unstuck.git import Repository, slots_folder
from unstuck.journal import Store, experience_of
from unstuck.process import put

SCHEMA = 1
MOST_FILES = 100


def known_experience(repository: Repository, journal: Store, *, without: str = "") -> Experience:
    """Return what runs taught here, and, for a quarter, in the user's other repositories; tell those what was learned here."""
    here = experience_of(journal, without=without)
    own = _folder() / f"{slots_folder(repository).parent.name}.json"
    with contextlib.suppress(UnstuckError):  # a state folder that cannot be written shares nothing
        put(own, json.dumps(_written(here), ensure_ascii=False))
    return pooled(here, _others(own))


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "unstuck" / "experience"


def _others(own: Path) -> Iterator[Experience]:
    """Read the other repositories' files; one that cannot be read teaches nothing."""
    for path in sorted(own.parent.glob("*.json"))[:MOST_FILES]:
        if path == own:
            continue
        try:
            yield _read(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue


def _written(known: Experience) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "agents": [[name, one.landed, one.failed] for name, one in known.agents.items()],
        "sorts": [[*key, one.landed, one.failed] for key, one in known.sorts.items()],
        "moves": [[*key, one.tried, one.won, round(one.seconds, 3)] for key, one in known.moves.items()],
    }


def _read(table: dict[str, Any]) -> Experience:
    if table["schema"] != SCHEMA:
        raise ValueError(table["schema"])
    return Experience(
        agents={str(name): _record(landed, failed) for name, landed, failed in table["agents"]},
        sorts={(str(name), str(sort)): _record(landed, failed) for name, sort, landed, failed in table["sorts"]},
        moves={
            (str(kind), str(move), str(agent)): Tried(tried=int(tried), won=int(won), seconds=float(seconds))
            for kind, move, agent, tried, won, seconds in table["moves"]
        },
    )


def _record(landed: object, failed: object) -> Record:
    return Record(landed=int(str(landed)), failed=int(str(failed)))
