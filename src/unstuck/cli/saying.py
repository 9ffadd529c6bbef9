"""Say something to a person: the one way to the terminal, past which nothing from elsewhere steers it."""

import json
from typing import Any

import click

from unstuck.tell import visible


def say(text: object = "", *, err: bool = False) -> None:
    """Print text; only our own colours reach the terminal as control characters."""
    click.echo(visible(str(text), colours=True), err=err)


def say_json(value: Any) -> None:
    """Print one JSON value on a line, every character that could steer a terminal escaped."""
    click.echo(json.dumps(value).replace("\x7f", "\\u007f"))
