"""Edge: Look where the checks run: in a slot that was set up, never in the user's checkout."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from unstuck.compose.side_slots import Side, first_checking_slot
from unstuck.config import Config
from unstuck.errors import Owned
from unstuck.git import Repository
from unstuck.line import Bench, Interrupted, Stopper
from unstuck.tell import one_line
from unstuck.tools import BUILTINS, ENDS
from unstuck.verify import NotSetUp, Site

NAME = "doctor"
"""The name of the log."""
SECONDS, SAID_CHARS = 60.0, 200
_SETS = re.compile(r"[A-Za-z_]\w*=\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was seen in the slot."""

    trouble: str = ""
    """Why it could not be set up."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What each line would not find there."""


def look_where_checks_run(
    repository: Repository, config: Config, stopper: Stopper, seen: Callable[[str, str], None]
) -> Looked:
    """Set a slot up as a run does, and ask there for the programs of every check."""
    lines = tuple(config.checks.values())
    if not lines and not config.workspace.setup:
        return Looked()
    try:
        with first_checking_slot(repository) as slot:
            bench = Side(repository=repository, config=config, stopper=stopper, seen=seen).bench(slot)
            Site(bench=bench, name=NAME, slot=slot).stand(repository.head)
            found = {line: next(_not_there(bench, slot, line), "") for line in lines}
    except NotSetUp as error:
        return Looked(trouble=one_line(error.failure.summary, SAID_CHARS))
    except Owned as error:
        return Looked(trouble=error.message)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    return Looked(missing={line: word for line, word in found.items() if word})


def _not_there(bench: Bench, slot: int, line: str) -> Iterator[str]:
    """Yield what a line calls and the slot has not; a folder that it changes into is changed into."""
    before = ""
    for part in ENDS.split(line):
        words = _words(part)
        if words[:1] == ["cd"]:
            before += f"{shlex.join(words)} && "
        elif words and words[0] not in BUILTINS:
            ask = f"{before}command -v -- {shlex.quote(words[0])}"
            module = words[2] if words[1:2] == ["-m"] and len(words) > 2 else ""  # noqa: PLR2004  # python -m MODULE
            if not _holds(bench, slot, ask):
                yield words[0]
            elif module and not _holds(
                bench, slot, f"{before}{shlex.quote(words[0])} -c {shlex.quote(_finds(module))}"
            ):
                yield f"the module {module} of {words[0]}"


def _words(part: str) -> list[str]:
    try:
        words = shlex.split(part.strip(" \t()!"))
    except ValueError:  # a quotation that goes on in the next part
        return []
    return words[next((place for place, word in enumerate(words) if not _SETS.fullmatch(word)), len(words)) :]


def _finds(module: str) -> str:
    return (
        f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module.split('.', maxsplit=1)[0]!r}) is None)"
    )


def _holds(bench: Bench, slot: int, line: str) -> bool:
    return bench.processes.run(bench.command(NAME, line, slot, timeout=SECONDS), stop=bench.stop).ok
