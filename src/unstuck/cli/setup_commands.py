"""Edge: `init`, `doctor` and `agents`: write a first configuration, say what is missing, and who is there to work."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from unstuck.cli import json_option, say
from unstuck.cli.terminal_text import ending_on_interrupt, plain, show_step
from unstuck.model.text import one_line

MARKS = {"ok": ("✔", "green"), "note": ("!", "yellow"), "bad": ("✘", "red")}
MISSING = 69
SIGNS = {True: "logged in", False: "no sign of a login", None: "login unknown"}


@click.command()
@click.option("--force", is_flag=True, help="Replace an unstuck.toml that is there; the old one is kept beside it.")
@click.option("--no-run", is_flag=True, help="Write what fits without setting anything up or running it.")
def init(*, force: bool, no_run: bool) -> None:
    """Write unstuck.toml: the set-up and the checks that fit this repository, each run on HEAD in a slot of its own."""
    from unstuck.app.init import write_first_config

    seen = None if no_run else show_step
    with ending_on_interrupt() as run_stop:
        written = write_first_config(Path.cwd(), force=force, run_stop=run_stop, seen=seen)
    say(written.text)
    for note in written.notes:
        say(f"Note: {plain(note)}", err=True)
    agent = "" if written.agents else " --agent 'COMMAND'"
    say(f"Wrote {written.path}. Read it through and commit it, then: unstuck go 'What should be done'{agent}", err=True)


@click.command()
@json_option
@click.option("--no-run", is_flag=True, help="Set no slot up to look where the checks run.")
def doctor(*, as_json: bool, no_run: bool) -> int:
    """Say what a run would miss here, what an earlier one left over, and what to do about each."""
    from unstuck.app.doctor import examine

    with ending_on_interrupt() as run_stop:
        findings = examine(Path.cwd(), run_stop=run_stop, seen=None if no_run else show_step)
    if as_json:
        say(json.dumps({"schema": 1, "findings": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            mark, colour = MARKS[finding.grade]
            say(f"{click.style(mark, fg=colour)} {finding.about}: {finding.says}")
            if finding.remedy:
                say(f"    {finding.remedy}")
    return MISSING if any(finding.grade == "bad" for finding in findings) else 0


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def agents(ctx: click.Context, *, as_json: bool) -> None:
    """List the coding agents that unstuck knows: found on PATH, version, signs of a login."""
    from unstuck.app.init import known_agents

    if ctx.invoked_subcommand is not None:
        return
    found = known_agents(Path.cwd())
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
@json_option
def read(name: str, file: Path, *, stderr: Path | None, exit_code: int | None, as_json: bool) -> None:
    """Say how a recorded session of agent NAME ended: FILE is what it printed on stdout."""
    from unstuck.app.init import read_session

    told = read_session(Path.cwd(), name, file, stderr, exit_code)
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
@json_option
def check(name: str, *, as_json: bool) -> int:
    """Let agent NAME do one small task in a scratch repository; exit code 1 if it did not. It costs what the agent costs."""
    from unstuck.app.init import check_agent

    found = check_agent(Path.cwd(), name)
    if as_json:
        say(json.dumps({"schema": 1, **asdict(found)}))
    else:
        told = found.end or f"exit code {found.exit_code}"
        cost = "" if found.cost_usd is None else f", ${found.cost_usd:.2f}"
        where = "in a sandbox" if found.sandbox else "without a sandbox"
        say(f"{name} {'works' if found.landed else 'does not work'} {where}: {told} after {found.seconds:.1f} s{cost}")
        say(one_line(found.message, 300))
    return 0 if found.landed else 1
