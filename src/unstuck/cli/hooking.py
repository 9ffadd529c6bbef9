"""Edge: `hook`, `install`, `uninstall`: help from inside an agent, and how it gets there."""

import sys
from pathlib import Path
from typing import Literal

import click

from unstuck.cli.screen.saying import say
from unstuck.hook import AGENTS, WIRINGS, Edit, answer_event, carry_out, edits_to_install, edits_to_uninstall

Scope = Literal["user", "project"]
EVENTS = """Agents call this: it reads one event of theirs from standard input and prints its answer. It exits with 0
whatever happens; what went wrong in it stands in ~/.local/state/unstuck/hook/hook.log."""


@click.command(help=f"Answer an agent's hook.\n\n{EVENTS}")
@click.argument("agent", type=click.Choice(AGENTS))
def hook(*, agent: str) -> int:
    return answer_event([agent])


def _scoped(command: click.Command) -> click.Command:
    command.params += [
        click.Option(["--user", "scope"], flag_value="user", default="user", help="In your own settings.  [default]"),
        click.Option(["--project", "scope"], flag_value="project", help="In the settings of this repository."),
        click.Option(["--dry-run"], is_flag=True, help="Print the change and make none."),
    ]
    return command


@_scoped
@click.command()
@click.argument("agent", type=click.Choice(AGENTS))
@click.option("--no-guard", is_flag=True, help="Do not stand in the way of destructive calls.")
@click.option("--mcp", is_flag=True, help="Offer the MCP server, too.")
def install(*, agent: str, scope: Scope, dry_run: bool, no_guard: bool, mcp: bool) -> None:
    """Let an agent call the hook: ways out of failing calls, warnings of circles, no false end, nothing destroyed."""
    edits = edits_to_install(agent, scope, Path.cwd(), guard=not no_guard, mcp=mcp)
    _carry_out(edits, dry_run=dry_run, done="Installed in", nothing="It is installed already")
    if agent in WIRINGS and WIRINGS[agent].note:
        say(WIRINGS[agent].note)


@_scoped
@click.command()
@click.argument("agent", type=click.Choice(AGENTS))
def uninstall(*, agent: str, scope: Scope, dry_run: bool) -> None:
    """Take the hook, and the MCP server, out of an agent's settings again."""
    edits = edits_to_uninstall(agent, scope, Path.cwd())
    _carry_out(edits, dry_run=dry_run, done="Taken out of", nothing="It is not installed")


def _carry_out(edits: tuple[Edit, ...], *, dry_run: bool, done: str, nothing: str) -> None:
    needed = [edit for edit in edits if edit.needed]
    if not needed:
        say(f"{nothing}: {', '.join(str(edit.path) for edit in edits) or 'there are no settings'}.")
    for edit in needed:
        if dry_run:
            sys.stdout.write(edit.shown)
            continue
        backup = carry_out(edit)
        say(f"{done} {edit.path}." + (f" What it was before: {backup}" if backup else ""))
