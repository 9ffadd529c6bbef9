"""Edge: `worker` and `fleet`: do the work of runs on this machine, and say who does what."""

import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unstuck import compose
from unstuck.cli import say
from unstuck.errors import BadUsage
from unstuck.tell import one_line

if TYPE_CHECKING:
    from unstuck.fleet import Roster

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
    names = tuple(name.strip() for part in agents for name in part.split(",") if name.strip())
    opened = compose.open_worker(
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
    opened = compose.open_fleet(Path.cwd(), store)
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
