"""Edge: Look at a run and change nothing: `status`, `show`, `diff`, `log`, `runs`; `explain`, `replay`, `policy`, `report` and `pr`."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unstuck.cli import json_option, run_option, run_text, say
from unstuck.cli.terminal_text import fitted, patch_line, plain, span
from unstuck.compat.autobuild import phase
from unstuck.model.errors import BadUsage
from unstuck.model.event import Entry
from unstuck.model.text import iso
from unstuck.policy.history import first_questions, replay_decisions
from unstuck.policy.profiles import Policy, rungs_of
from unstuck.policy.schedule import blocked_tasks
from unstuck.reports.event_lines import action_text
from unstuck.reports.questions import causes, stuck_report
from unstuck.reports.run_page import run_page
from unstuck.reports.summaries import STATUS_WORDS, acceptance_note, lineage_text

if TYPE_CHECKING:
    from unstuck.app.inspect import View

FOLLOW_SECONDS = 0.5
WATCH_SECONDS = 1.0


@click.command()
@click.option("--watch", is_flag=True, help="Show it again whenever something happens; ends with the supervisor.")
@run_option
@json_option
def status(*, watch: bool, run_id: str | None, as_json: bool) -> None:
    """Say where every task of the latest run stands, and who works on it."""
    from unstuck.app.inspect import look

    seen = None
    while True:
        view = look(Path.cwd(), run_id)
        if view.state.seq != seen or sys.stdout.isatty():
            if watch and not as_json:
                click.clear()  # nothing, where nobody looks at a screen
            say(json.dumps(_status_object(view)) if as_json else _status_text(view))
        seen = view.state.seq
        if not watch or view.owner is None:
            return
        run_id = view.run  # the one that was looked at first, whatever starts meanwhile
        time.sleep(WATCH_SECONDS)


def _status_text(view: "View") -> str:
    lines = [run_text.summary(view.summary)]
    if (owner := view.owner) is not None:
        since = span(time.time() - owner.since)
        lines.append(f"Supervisor: pid {owner.pid} on {owner.host.partition('/')[0]}, for {since}.")
    elif view.summary.exit_code is None:
        lines.append("No supervisor works on it. Go on with: unstuck resume")
    return "\n".join(lines)


def _status_object(view: "View") -> dict[str, Any]:
    told, owner = view.summary, view.owner
    return {
        "schema": 1,
        "run": view.run,
        "owner": {"pid": owner.pid, "host": owner.host.partition("/")[0], "since": owner.since} if owner else None,
        "exit": told.exit_code,
        "reason": told.reason,
        "seconds": round(told.seconds, 1),
        "cost_usd": told.cost_usd,
        "home": told.home,
        "landed": told.landed,
        "commands": [{"for": what, "type": command} for what, command in told.commands],
        "questions": [{"tasks": cause.tasks, "question": cause.question} for cause in told.questions],
        "cautions": told.cautions,
        "tasks": {row.id: {key: value for key, value in asdict(row).items() if key != "id"} for row in told.rows},
    }


@click.command()
@click.argument("task")
@click.option("--brief", is_flag=True, help="Print what its last session was told.")
@click.option("--diff", "patch", is_flag=True, help="Print what its last attempt changed, or what landed.")
@run_option
@json_option
def show(task: str, *, brief: bool, patch: bool, run_id: str | None, as_json: bool) -> None:
    """Tell the story of TASK: every attempt, what was seen, what was decided and why."""
    from unstuck.app.inspect import brief_of, changed, look, tools_used

    view = look(Path.cwd(), run_id)
    task = view.named(task)
    if brief:
        say("\n".join(plain(line) for line in brief_of(view, task).splitlines()))
        return
    if patch:
        _show_patch(changed(view, task, None, stat=False))
        return
    if as_json:
        say(json.dumps({"schema": 1, **phase(view.state, task)}))
        return
    say(run_text.story(view, task, tools_used(view, task)))


@click.command()
@click.argument("task")
@click.argument("attempt", type=click.IntRange(1), required=False)
@click.option("--stat", is_flag=True, help="Only list the files and how much of them changed.")
@run_option
def diff(task: str, attempt: int | None, *, stat: bool, run_id: str | None) -> None:
    """Show the work of TASK as a patch: what landed, or what the last attempt, or the ATTEMPT named, left."""
    from unstuck.app.inspect import changed, look

    view = look(Path.cwd(), run_id)
    name = view.named(task)
    if patch := changed(view, name, attempt, stat=stat):
        _show_patch(patch)
    else:
        say(f"{f'Attempt {attempt} of task' if attempt else 'Task'} {name} changed nothing.", err=True)


def _show_patch(patch: str) -> None:
    """Print a patch: what an agent wrote must not steer a terminal; a file gets it as it is."""
    lines = [patch_line(line) for line in patch.splitlines()] if sys.stdout.isatty() else [patch]
    say("\n".join(lines).removesuffix("\n"))


@click.command()
@json_option
def runs(*, as_json: bool) -> None:
    """List all runs of this repository: plan, how far each came, what it cost, and whether anybody works on it."""
    from unstuck.app.inspect import all_runs

    views = all_runs(Path.cwd())
    if as_json:
        say(json.dumps({"schema": 1, "runs": [_run_object(view) for view in views]}))
        return
    for view in views:
        say(run_text.run_line(view.summary, view.state, live=view.owner is not None))


def _run_object(view: "View") -> dict[str, Any]:
    started, result = view.state.started, view.summary
    return {
        "run": view.run,
        "plan": started.plan if started else None,
        "started_at": iso(view.state.created),
        "live": view.owner is not None,
        "exit": result.exit_code,
        "tasks": len(result.rows),
        "landed": result.count("complete"),
        "stuck": result.count("stuck"),
        "cost_usd": result.cost_usd,
        "seconds": round(result.seconds, 1),
    }


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on printing as things happen; ends with the run.")
@run_option
@json_option
def log(*, follow: bool, run_id: str | None, as_json: bool) -> None:
    """Print the journal of the latest run, one event per line."""
    from unstuck.app.inspect import entry_json

    for entry in _entries(run_id, follow=follow):
        say(entry_json(entry) if as_json else run_text.entry_line(entry))


def _entries(run_id: str | None, *, follow: bool) -> Iterator[Entry]:
    from unstuck.app.inspect import Follower, look

    view = look(Path.cwd(), run_id)
    yield from view.entries
    state, follower = view.state, Follower(Path.cwd())
    while follow and (state.ended is None or follower.owner(view.run) is not None):
        time.sleep(FOLLOW_SECONDS)
        for entry in follower.news(view.run, state.seq):
            state.apply(entry)
            yield entry


compared_profile = click.option("--profile", "profile_name", metavar="NAME", help="The profile to compare with.")


@click.command()
@click.argument("task")
@compared_profile
@run_option
def explain(task: str, *, profile_name: str | None, run_id: str | None) -> None:
    """Tell why TASK went as it did: each attempt, what was seen, which rung was taken, and what others would have done."""
    from unstuck.app.inspect import look

    view = look(Path.cwd(), run_id)
    task = view.named(task)
    profiles = _profiles(profile_name)
    ours = view.state.started.options.profile if view.state.started else ""
    names = [profile_name] if profile_name else [name for name in profiles if name != ours]
    others = {
        name: [one for one in replay_decisions(view.entries, profiles[name]) if one.task == task] for name in names
    }
    state = view.state.tasks[task]
    status = next(row.status for row in view.summary.rows if row.id == task)
    say(f"Task {task}: {state.task.title} ({STATUS_WORDS[status]}); decided by profile {ours}")
    if lineage := lineage_text(view.state, task):
        say(lineage)
    for place, one in enumerate(told := next(iter(others.values()), [])):
        well = (acceptance_note(state) if one is told[-1] else "") or "all checks pass"
        say(f"\nAttempt {one.attempt}, event {one.seq}")
        say(f"  seen:     {f'{one.failure.kind}: {one.failure.summary}' if one.failure else well}")
        if one.failure and one.failure.rule:
            say(f"  rule:     {one.failure.rule}")
        say(f"  decided:  {action_text(one.action)}")
        say(f"  because:  {one.reason} [{one.rung}]")
        for name, its in others.items():
            if not its[place].is_same:
                say(f"  {name} would {action_text(its[place].other_action)} [{its[place].other_rung}]")


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--profile", "profile_name", required=True, metavar="NAME", help="The profile to decide by.")
def replay(run_id: str | None, *, profile_name: str) -> None:
    """Decide a run's decisions again under another profile; no agent is needed and nothing is changed."""
    from unstuck.app.inspect import look

    profiles = _profiles(profile_name)
    view = look(Path.cwd(), run_id)
    told = replay_decisions(view.entries, profiles[profile_name])
    different = [one for one in told if not one.is_same]
    say(f"Run {view.run} under {profile_name}: {len(told)} decisions, {len(different)} of them different.")
    for one in different:
        other = f"{action_text(one.other_action)} [{one.other_rung}]"
        say(f"  {one.task} attempt {one.attempt}: {action_text(one.action)} → would {other}")
    for task, one in first_questions(told).items():
        landed = " It landed after all." if view.state.tasks[task].status == "complete" else ""
        say(f"Task {task} would have waited for a person after attempt {one.attempt}.{landed}")


@click.command()
@click.argument("name", metavar="[PROFILE]", required=False)
def policy(name: str | None) -> None:
    """Print the ladders and limits of PROFILE, or list all profiles."""
    profiles = _profiles(name)
    if name is None:
        for profile in profiles.values():
            say(f"{profile.name}: {profile.about}")
        say("\nSee one: unstuck policy NAME")
        return
    profile = profiles[name]
    say(f"{profile.name}: {profile.about}\n")
    charges = "the agent's own failures" if profile.charges == "blame" else "every finished attempt"
    say(f"decides by {profile.view}; charges {charges}; a stuck task means: {profile.on_stuck}")
    limits = profile.limits
    say(
        f"at most {limits.attempts} charged attempts, {limits.sessions} sessions an attempt, {limits.rollbacks} rollbacks\n"
    )
    width = max(len(value) for value in profile.ladders)
    for value, ladder in profile.ladders.items():
        say(f"  {value.ljust(width)}  {rungs_of(ladder)}")


@click.command()
@click.argument("task", required=False)
@click.option("--md", "markdown", is_flag=True, help="Print the whole run as a page of Markdown instead.")
@click.option("--html", "page", metavar="FILE", type=click.Path(path_type=Path), help="Keep the whole run as one page.")
@click.option("--open", "open_page", is_flag=True, help="Open that page in a browser.")
@run_option
def report(task: str | None, *, markdown: bool, page: Path | None, open_page: bool, run_id: str | None) -> None:
    """Print what waits for a person: the report of TASK, or of every stuck task; one cause is told once.

    With --html the run is kept as one file that needs no network: for a pull request, or a mail.
    """
    from unstuck.app.inspect import look

    if open_page and page is None:
        raise click.UsageError("--open goes with --html FILE.")
    if page is not None:
        _keep(page, run_id, open_page=open_page)
        return
    view = look(Path.cwd(), run_id)
    if markdown:
        if task is not None:
            raise BadUsage("--md tells of the whole run.", hint="Leave the task out.")
        say(run_page(view.state, view.summary).rstrip())
        return
    stuck = {name: state for name, state in view.state.tasks.items() if state.status == "stuck"}
    task = view.named(task) if task is not None else None
    if task is not None and task not in stuck:
        raise BadUsage(f"Task {task} does not wait for a person.", hint="See `unstuck status`.")
    if not stuck:
        say("Nothing waits for a person.")
        return
    waiting = blocked_tasks(view.state)
    for cause in causes(stuck.values()):
        if task is not None and task not in cause.tasks:
            continue
        if len(cause.tasks) > 1:
            head = f"One cause, {len(cause.tasks)} tasks: {', '.join(cause.tasks)}. {cause.question}\n"
            say(fitted(head.split("\n")))
        name = task or cause.tasks[0]
        blocks = [other for other, by in waiting.items() if name in by]
        say(fitted(stuck_report(stuck[name], lineage_text(view.state, name), blocks).split("\n")))


@click.command()
@click.option(
    "--draft-file",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Only write it into a file (.unstuck/pull-request.md, if no other is named); open nothing.",
)
@run_option
def pr(*, draft_file: str | None, run_id: str | None) -> None:
    """Make a pull request of what landed: how it was verified, what was recovered, what is left.

    It is written into a file, and opened where `gh` is there and logged in and the branch is at origin.
    """
    from unstuck.app.inspect import draft_request

    named = Path(draft_file) if draft_file else None
    made = draft_request(Path.cwd(), run_id, named, only_file=draft_file is not None)
    say(f"{made.title}\n\n{made.body}".rstrip())
    say(f"\nOpened: {made.address}" if made.address else f"\nWritten to {made.path}. {made.why}".rstrip(), err=True)


def _profiles(named: str | None) -> dict[str, Policy]:
    """Return the profiles that hold here; refuse a name that is none of theirs."""
    from unstuck.app import settings

    profiles = settings.profiles(Path.cwd())
    if named is not None and named not in profiles:
        raise BadUsage(f"There is no profile {named!r}.", hint=f"Profiles: {', '.join(profiles)}.")
    return profiles


def _keep(page: Path, run_id: str | None, *, open_page: bool) -> None:
    from unstuck.app.inspect import look
    from unstuck.web.page import keep_page  # only who keeps a page waits for it

    size = keep_page(Path.cwd(), look(Path.cwd(), run_id), page)
    say(f"Wrote {page}, {size / 1000:.0f} kB. It holds diffs and outputs: look before you send it.")
    if open_page:
        click.launch(str(page))
