"""Edge: `agents`: which coding agents are here, what a recorded session says, and whether one works."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from unstuck import compose
from unstuck.cli.screen.saying import say
from unstuck.tell import one_line

SIGNS = {True: "logged in", False: "no sign of a login", None: "login unknown"}


@click.group(
    invoke_without_command=True,
    epilog="Examples:\n\n\b\n  unstuck agents\n  unstuck agents read claude session.jsonl --exit-code 1 --json\n  unstuck agents check codex",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def agents(ctx: click.Context, *, as_json: bool) -> None:
    """List the coding agents that unstuck knows: found on PATH, version, signs of a login."""
    if ctx.invoked_subcommand is not None:
        return
    found = compose.known_agents(Path.cwd())
    if as_json:
        say(json.dumps({"schema": 1, "agents": [one.as_json() for one in found]}))
        return
    for one in found:
        if one.path is None:
            say(f"{one.name:10} not found ({one.program})")
        else:
            flags = f"; works with {' '.join(one.permission)}" if one.permission else ""
            say(f"{one.name:10} {one.version or 'version unknown'}, {SIGNS[one.logged_in]}, {one.path}{flags}")


@agents.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--stderr", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="The recorded stderr.")
@click.option("--exit-code", type=int, help="How the session ended; negative for a signal.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def read(name: str, file: Path, *, stderr: Path | None, exit_code: int | None, as_json: bool) -> None:
    """Say how a recorded session of agent NAME ended: FILE is what it printed on stdout."""
    told = compose.read_session(Path.cwd(), name, file, stderr, exit_code)
    if as_json:
        say(json.dumps(told, ensure_ascii=False))
        return
    say(f"end: {told['end']}, claim: {told['claim']}")
    for key in ("resets_at", "session_id", "cost_usd", "usage", "message"):
        if told[key] is not None:
            say(f"{key}: {told[key]}")
    for tool in told["tools"]:
        code = "" if tool["exit_code"] is None else f" (exit code {tool['exit_code']})"
        say(f"tool {'ok' if tool['ok'] else 'failed'}{code}: {tool['name']} {tool['input']}")


@agents.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(name: str, *, as_json: bool) -> int:
    """Let agent NAME do one small task in a scratch repository; exit code 1 if it did not. It costs what the agent costs."""
    found = compose.check_agent(Path.cwd(), name)
    if as_json:
        say(json.dumps({"schema": 1, **asdict(found)}))
    else:
        told = found.end or f"exit code {found.exit_code}"
        cost = "" if found.cost_usd is None else f", ${found.cost_usd:.2f}"
        where = "in a sandbox" if found.sandbox else "without a sandbox"
        say(f"{name} {'works' if found.landed else 'does not work'} {where}: {told} after {found.seconds:.1f} s{cost}")
        say(one_line(found.message, 300))
    return 0 if found.landed else 1
