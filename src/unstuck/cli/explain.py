"""Edge: `explain`, `replay`, `policy`, `report` and `pr`: why things were decided, and what another profile would have done."""

from pathlib import Path

import click

from unstuck import compose
from unstuck.cli.options import run_option
from unstuck.cli.screen.fitting import fitted
from unstuck.cli.screen.saying import say
from unstuck.decide import Retold, retell, rungs_of, stopping_point
from unstuck.errors import BadUsage
from unstuck.line import blocked
from unstuck.tell import WORDS, causes, deed, escalation, lineage_text, page_of, weighed_text

profile_option = click.option("--profile", "profile_name", metavar="NAME", help="The profile to compare with.")


@click.command(epilog="Example:\n\n\b\n  unstuck explain 1.3 --profile standard")
@click.argument("task")
@profile_option
@run_option
def explain(task: str, *, profile_name: str | None, run_id: str | None) -> None:
    """Tell why TASK went as it did: each attempt, what was seen, which rung was taken, and what others would have done."""
    view = compose.look(Path.cwd(), run_id)
    task = view.named(task)
    profiles = compose.profiles(Path.cwd())
    if profile_name is not None and profile_name not in profiles:
        raise BadUsage(f"There is no profile {profile_name!r}.", hint=f"Profiles: {', '.join(profiles)}.")
    ours = view.state.started.options.profile if view.state.started else ""
    names = [profile_name] if profile_name else [name for name in profiles if name != ours]
    others = {name: [one for one in retell(view.entries, profiles[name]) if one.task == task] for name in names}
    state = view.state.tasks[task]
    status = next(row.status for row in view.summary.rows if row.id == task)
    say(f"Task {task}: {state.task.title} ({WORDS[status]}); decided by profile {ours}")
    if lineage := lineage_text(view.state, task):
        say(lineage)
    for place, one in enumerate(next(iter(others.values()), [])):
        say(f"\nAttempt {one.attempt}, event {one.seq}")
        say(f"  seen:     {f'{one.failure.kind}: {one.failure.summary}' if one.failure else 'all checks pass'}")
        if one.failure and one.failure.rule:
            say(f"  rule:     {one.failure.rule}")
        say(f"  decided:  {deed(one.action)}")
        say(f"  because:  {one.reason} [{one.rung}]")
        if one.weighed:
            say(f"  weighed:  {'; '.join(weighed_text(each) for each in one.weighed)}")
        for name, told in others.items():
            if not told[place].same:
                say(f"  {name} would {deed(told[place].other_action)} [{told[place].other_rung}]")


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--profile", "profile_name", required=True, metavar="NAME", help="The profile to decide by.")
def replay(run_id: str | None, *, profile_name: str) -> None:
    """Decide a run's decisions again under another profile; no agent is needed and nothing is changed."""
    profiles = compose.profiles(Path.cwd())
    if profile_name not in profiles:
        raise BadUsage(f"There is no profile {profile_name!r}.", hint=f"Profiles: {', '.join(profiles)}.")
    view = compose.look(Path.cwd(), run_id)
    told = retell(view.entries, profiles[profile_name])
    different = [one for one in told if not one.same]
    say(f"Run {view.run} under {profile_name}: {len(told)} decisions, {len(different)} of them different.")
    for one in different:
        say(f"  {one.task} attempt {one.attempt}: {_briefly(one)}")
    for task, one in stopping_point(told).items():
        landed = " It landed after all." if view.state.tasks[task].status == "complete" else ""
        say(f"Task {task} would have waited for a person after attempt {one.attempt}.{landed}")


@click.command()
@click.argument("name", metavar="[PROFILE]", required=False)
def policy(name: str | None) -> None:
    """Print the ladders and limits of PROFILE, or list all profiles."""
    profiles = compose.profiles(Path.cwd())
    if name is None:
        for profile in profiles.values():
            say(f"{profile.name}: {profile.about}")
        say("\nSee one: unstuck policy NAME")
        return
    if name not in profiles:
        raise BadUsage(f"There is no profile {name!r}.", hint=f"Profiles: {', '.join(profiles)}.")
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
    if open_page and page is None:
        raise click.UsageError("--open goes with --html FILE.")
    if page is not None:
        _keep(page, run_id, open_page=open_page)
        return
    view = compose.look(Path.cwd(), run_id)
    if markdown:
        if task is not None:
            raise BadUsage("--md tells of the whole run.", hint="Leave the task out.")
        say(page_of(view.state, view.summary).rstrip())
        return
    stuck = {name: state for name, state in view.state.tasks.items() if state.status == "stuck"}
    task = view.named(task) if task is not None else None
    if task is not None and task not in stuck:
        raise BadUsage(f"Task {task} does not wait for a person.", hint="See `unstuck status`.")
    if not stuck:
        say("Nothing waits for a person.")
        return
    waiting = blocked(view.state)
    for cause in causes(stuck.values()):
        if task is not None and task not in cause.tasks:
            continue
        if len(cause.tasks) > 1:
            head = f"One cause, {len(cause.tasks)} tasks: {', '.join(cause.tasks)}. {cause.question}\n"
            say(fitted(head.split("\n")))
        name = task or cause.tasks[0]
        blocks = [other for other, by in waiting.items() if name in by]
        say(fitted(escalation(stuck[name], lineage_text(view.state, name), blocks).split("\n")))


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
    named = Path(draft_file) if draft_file else None
    made = compose.draft_request(Path.cwd(), run_id, named, only_file=draft_file is not None)
    say(f"{made.title}\n\n{made.body}".rstrip())
    say(f"\nOpened: {made.address}" if made.address else f"\nWritten to {made.path}. {made.why}".rstrip(), err=True)


def _briefly(one: Retold) -> str:
    return f"{deed(one.action)} → would {deed(one.other_action)} [{one.other_rung}]"


def _keep(page: Path, run_id: str | None, *, open_page: bool) -> None:
    from unstuck.web import keep_page  # noqa: PLC0415  # only who keeps a page waits for it

    size = keep_page(Path.cwd(), compose.look(Path.cwd(), run_id), page)
    say(f"Wrote {page}, {size / 1000:.0f} kB. It holds diffs and outputs: look before you send it.")
    if open_page:
        click.launch(str(page))
