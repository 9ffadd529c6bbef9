"""Edge: Our other faces: `board` and `ui` for people, `mcp`, `hook`, `install` and `uninstall` for agents, `worker` and `fleet` for other machines."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from unstuck.cli import run_option, run_text, say
from unstuck.cli.run_text import Lines
from unstuck.hook.entry import answer_event
from unstuck.hook.installing import AGENTS, WIRINGS, Edit, carry_out, edits_to_install, edits_to_uninstall
from unstuck.journal.run_state import RunState
from unstuck.model.errors import BadUsage, Unavailable, with_extra
from unstuck.model.text import one_line

if TYPE_CHECKING:
    from unstuck.fleet.roster import Roster

TICK_SECONDS = 0.25
Scope = Literal["user", "project"]
EVENTS = """Agents call this: it reads one event of theirs from standard input and prints its answer. It exits with 0
whatever happens; what went wrong in it stands in ~/.local/state/unstuck/hook/hook.log."""


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Where to listen.  [default: 7433, or any that is free]")
@click.option("--host", default="127.0.0.1", help="Listen beyond this machine; needs a token.  [default: 127.0.0.1]")
@click.option("--token", default="", envvar="UNSTUCK_UI_TOKEN", help="The key to use.  [default: a new one each time]")
@click.option("--open", "open_browser", is_flag=True, help="Open it in a browser.")
def ui(*, port: int | None, host: str, token: str, open_browser: bool) -> None:
    """Serve the board: runs live in the browser, with buttons for what waits for you."""
    with _extra("ui", "The board"):
        from unstuck.web.server import serve_board  # it need not be there
    serve_board(
        Path.cwd(), host=host, port=port, token=token, open_browser=open_browser, say=lambda text: say(text, err=True)
    )


@click.command()
@run_option
def board(*, run_id: str | None) -> None:
    """Attach to the latest run, or the one named, from any terminal; enter tells the story of a task."""
    from unstuck.app.inspect import look

    view = look(Path.cwd(), run_id)
    if sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from unstuck.cli.terminal_board import Attached  # rich is heavy

        Attached(Path.cwd(), view.run).watch()
    else:
        _follow_lines(view.run)
    say(run_text.summary(look(Path.cwd(), view.run).summary))


def _follow_lines(run: str) -> None:
    """Print a run's events as lines until its supervisor is gone: for who has no terminal to draw on."""
    from unstuck.app.inspect import Follower

    follower, state, lines = Follower(Path.cwd()), RunState(), Lines()
    while True:
        owner = follower.owner(run)
        for entry in follower.news(run, state.seq):
            state.apply(entry)
            lines.watcher.entry(entry, state)
        if owner is None:
            return
        time.sleep(TICK_SECONDS)


@click.command()
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="The folder that all paths are confined to.  [default: here]",
)
@click.option("--profile", default="adaptive", help="How to decide.  [default: adaptive]")
def mcp(*, workspace: Path, profile: str) -> None:
    """Serve recovery tools on stdin and stdout; agents start this."""
    with _extra("mcp", "The MCP server"):
        from unstuck.mcp.offer import serve  # it need not be there
    serve(workspace.absolute(), profile)


@contextmanager
def _extra(name: str, what: str) -> Iterator[None]:
    """Say how an extra is installed, where what is loaded from it is not there."""
    try:
        yield
    except ImportError as error:
        says = f"{what} needs a package that is not installed: {error.name}."
        raise Unavailable(says, hint=with_extra(name)) from error


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


LEAST_LEASE = 1.0
MOST_COLUMNS = 160


@click.command(
    epilog="Example:\n\n\b\n  unstuck worker --store postgresql://db/fleet --repo ssh://git@host/cart.git --slots 2"
)
@click.option("--store", metavar="URL", required=True, help="The Postgres that the fleet shares; no password in it.")
@click.option("--repo", metavar="URL|PATH", required=True, help="The remote that the fleet shares.")
@click.option(
    "--agents", multiple=True, metavar="NAME,...", help="Whom to offer (default: those on PATH and configured)."
)
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True, help="Sessions side by side.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="What this machine has, such as gpu.")
@click.option(
    "--lease",
    type=click.FloatRange(min=LEAST_LEASE),
    default=20.0,
    show_default=True,
    help="Seconds of silence after which others take its work.",
)
def worker(store: str, *, repo: str, agents: tuple[str, ...], slots: int, labels: tuple[str, ...], lease: float) -> int:
    """Do the work of runs: take sessions that fit, and send the work back. SIGTERM lets what runs end first."""
    from unstuck.app.worker_setup import open_worker

    names = tuple(name.strip() for part in agents for name in part.split(",") if name.strip())
    opened = open_worker(
        store=store,
        repo=repo,
        agents=names,
        slots=slots,
        labels=labels,
        lease=lease,
        told=lambda line: say(line, err=True),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: opened.ask_to_leave())
    opened.work()
    return 0


@click.command(
    epilog="Examples:\n\n\b\n  unstuck fleet --store postgresql://db/fleet\n  unstuck fleet --limit claude=4 --limit anthropic=6:claude,aider"
)
@click.option("--store", metavar="URL", help="The Postgres that the fleet shares (default: this repository's).")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=N[:AGENT,...]",
    help="Let an agent, or a provider of several, have N sessions at most; N of 0 lifts it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def fleet(store: str | None, *, limits: tuple[str, ...], as_json: bool) -> int:
    """Say which workers there are, what they do, and when they were last heard of."""
    from unstuck.app.worker_setup import open_fleet

    opened = open_fleet(Path.cwd(), store)
    try:
        for limit in limits:
            opened.limit(*_limit(limit))
        seen = opened.look()
    finally:
        opened.close()
    say(json.dumps({"schema": 1, **asdict(seen)}) if as_json else _shown(seen))
    return 0


def _limit(text: str) -> tuple[str, int, tuple[str, ...]]:
    name, _, rest = text.partition("=")
    number, _, members = rest.partition(":")
    if not name or not number.isdecimal():
        raise BadUsage(f"--limit {text!r} is none.", hint="Write claude=4, or anthropic=6:claude,aider.")
    return name, int(number), tuple(part for part in members.split(",") if part) or (name,)


def _shown(seen: "Roster") -> str:
    lines = [] if seen.workers else ["There is no worker. Start one with: unstuck worker --store URL --repo URL"]
    for one in seen.workers:
        fresh = f"heard of {one.beat:.0f} s ago" if one.beat <= one.lease else f"silent for {one.beat:.0f} s"
        has = ", ".join([*one.agents, *(f"+{label}" for label in one.labels)]) or "no agents"
        state = one.state if not one.said else f"{one.state}: {one.said}"
        lines.append(one_line(f"{one.id}  {state}  {len(one.jobs)}/{one.slots} slots  {has}  ({fresh})", MOST_COLUMNS))
        for job in one.jobs:
            who = f" by {job.agent}" if job.agent else ""
            said = f"  {job.said}" if job.said else ""
            lines.append(
                one_line(f"{job.kind} of {job.task} in {job.run}{who}, {job.seconds:.0f} s{said}", MOST_COLUMNS)
            )
            lines[-1] = f"  {lines[-1]}"
    for wait in seen.queued:
        what = f"for {wait.agent}" if wait.agent else "to verify"
        lines.append(one_line(f"waiting: {wait.jobs} {what} in {wait.run}, priority {wait.priority}", MOST_COLUMNS))
    lines += [one_line(f"held back: {one.agent} for {one.seconds:.0f} s, {one.why}", MOST_COLUMNS) for one in seen.held]
    for limit in seen.limits:
        lines.append(one_line(f"limit: {limit.name} at most {limit.most} ({', '.join(limit.members)})", MOST_COLUMNS))
    return "\n".join(lines)
