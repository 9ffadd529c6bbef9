"""What travels between supervisors and workers, as values and as JSON."""

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from unstuck.model.config import Config
from unstuck.model.errors import Unavailable
from unstuck.model.failure import Failure
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.outcome import Ended
from unstuck.model.verdict import Check, Verdict

T = TypeVar("T")
STOPPED = Ended(ending="stopped", tail="The run was stopped before the session began.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What every job of a run goes by, wherever it is done."""

    config: Config
    """As the supervisor has it; agents are the worker's own."""
    gates: tuple[Check, ...]
    left_out: tuple[str, ...]
    """The plan and its companions: they never land."""
    cache: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A job: the session or the verification, and where in the shared remote its commit is."""

    ref: str
    """Holds what the job begins with; a session's work replaces it."""
    fetch: str
    """The ref that has `begin`."""
    begin: str
    """The commit that holds everything which the job needs."""
    expected: str = ""
    """What `ref` must hold when the work is put there; empty if it must not exist."""
    session: SessionOrder | None = None
    subject: Subject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a job."""

    session: SessionDone | None = None
    commit: str = ""
    """A session's work, as the remote has it; empty if it could not be put there, or there is none."""
    tree: str = ""
    """The commit's tree."""
    log: str = ""
    """The end of what the session printed."""
    verdict: Verdict | None = None
    failure: Failure | None = None
    """Why nothing could be verified."""
    fault: str = ""
    """What is wrong with the worker, in words; the job is for another one."""


def write(value: Sheet | Wanted | Report) -> str:
    return _shape(type(value).__name__).dump_json(value, by_alias=True).decode()


def read(shape: type[T], text: str) -> T:
    try:
        return cast("T", _shape(shape.__name__).validate_json(text))
    except ValidationError as error:
        raise Unavailable(
            f"What another machine wrote is no {shape.__name__.lower()} that this unstuck knows.",
            hint="Use the same version of unstuck on all machines of a fleet.",
        ) from error


@cache
def _shape(name: str) -> TypeAdapter[Any]:
    return TypeAdapter({shape.__name__: shape for shape in (Sheet, Wanted, Report)}[name])
