"""Edge: Say something to a person: the one way to the terminal, past which nothing from elsewhere steers it."""

import click

from unstuck.tell import visible


def say(text: object = "", *, err: bool = False) -> None:
    """Print text; only our own colours reach the terminal as control characters."""
    click.echo(visible(str(text), colours=True), err=err)
