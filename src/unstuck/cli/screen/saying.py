"""Edge: Say something to a person: the one way to the terminal, past which nothing from elsewhere steers it."""

import click

from unstuck.tell import visible

STEP_CHARS = 300


def say(text: object = "", *, err: bool = False) -> None:
    """Print text; only our own colours reach the terminal as control characters."""
    click.echo(visible(str(text), colours=True), err=err)


def show_step(_task: str, line: str) -> None:
    """Show a set-up command or a check as it starts and ends; beside the result, which others may read."""
    folded = "".join(char for char in visible(line).expandtabs() if char.isprintable())
    say(click.style(f"  … {folded[:STEP_CHARS]}", dim=True), err=True)
