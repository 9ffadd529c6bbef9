"""Events to JSON and back. The journal's format is the shape of the values themselves."""

from functools import cache
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from unstuck.errors import JournalDamaged
from unstuck.journal.event import Event


def encode(event: Event) -> str:
    return _adapter().dump_json(event, exclude_defaults=False).decode()


def decode(text: str, *, seq: int) -> Event:
    """Read one event; a journal written by a newer unstuck is refused by name, not misread."""
    try:
        return _adapter().validate_json(text)
    except ValidationError as error:
        raise JournalDamaged(
            f"Event {seq} of the journal cannot be read: {error.errors()[0]['msg']}.",
            hint="If a newer unstuck wrote it, use that version. The journal was not changed.",
        ) from error


@cache
def _adapter() -> TypeAdapter[Event]:
    return TypeAdapter(Annotated[Event, Field(discriminator="type")])
