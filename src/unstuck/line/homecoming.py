"""Bring the run's work home to the user's branch, once every task is settled. May be repeated after a crash."""

from collections.abc import Sequence
from dataclasses import replace

from unstuck.errors import UnstuckError
from unstuck.journal import BroughtHome, RunState, subject
from unstuck.line.parts import Bench
from unstuck.plans import Check
from unstuck.ports import AlreadyHome, FastForward, Home, Merge, NotPossible
from unstuck.tell import one_line
from unstuck.verify import NotSetUp, Site, check_on

MERGED_TREE = "merged"
"""The log's name for checks on the merged tree."""
MOST_NAMES = 10


def bring_home(bench: Bench, home: Home) -> BroughtHome:
    """Do what the commit mode says; where it cannot be done safely, say why and what to type."""
    brought, unknown = _brought(bench, home), _unknown(bench)
    return replace(brought, text=f"{brought.text} {unknown}") if unknown else brought


def _brought(bench: Bench, home: Home) -> BroughtHome:
    started = bench.record.state.started
    assert started is not None
    mode, branch = started.options.commit, f"unstuck/{bench.run}"
    if not any(task.commit for task in bench.record.state.tasks.values()):
        return BroughtHome(commit=None, text=_with_plan(home, started.plan_files, "There was nothing to commit."))
    if mode == "message-only":
        return BroughtHome(
            commit=None, text=f"The commits are on {branch}; make them yours with: sh {home.write_script()}"
        )
    way = home.plan_merge(message=_message(bench.record.state), at=bench.record.state.began)
    if isinstance(way, Merge) and (red := _red_together(bench, way)):
        way = NotPossible(reason=f"Merged with your new commits, `{red}` fails.", command=f"git merge {branch}")
    if isinstance(way, FastForward | Merge):
        way = home.apply_merge(way.commit)
    if isinstance(way, AlreadyHome):
        name = (started.branch or "").removeprefix("refs/heads/")
        return BroughtHome(
            commit=way.commit, text=_with_plan(home, started.plan_files, f"Everything is on your branch {name}.")
        )
    return BroughtHome(commit=None, text=f"The work is on {branch}. {way.reason} To bring it home: {way.command}")


def _unknown(bench: Bench) -> str:
    """Say which tasks a person wrote into the plan while the run worked: it knows nothing of them."""
    try:
        tasks = bench.plan.read().tasks
    except UnstuckError:  # the plan is gone; what landed comes home all the same
        return ""
    new = [task.shown for task in tasks if task.id not in bench.record.state.tasks and not task.done]
    more = f" and {len(new) - MOST_NAMES} more" if len(new) > MOST_NAMES else ""
    told = f"Written into the plan meanwhile, and not done: {', '.join(new[:MOST_NAMES])}{more}."
    return f"{told} Run the plan again to have them done." if new else ""


def _red_together(bench: Bench, merge: Merge) -> str:
    """Run every check of the run on the merged tree; return the first that fails."""
    landed = [name for name, task in bench.record.state.tasks.items() if task.commit]
    site = Site(bench=bench, name=MERGED_TREE, slot=bench.spare)
    lasting = [name for name in landed if "RED" not in bench.tasks[name].markers]  # what was red is green by now
    checks: dict[str, Check] = {check.command: check for name in lasting for check in bench.tasks[name].checks}
    checks |= {gate.command: gate for gate in bench.gates}
    try:
        for check in checks.values():
            if check_on(site, check, merge.commit, None, merge.tree).status == "fail" and _was_green(bench, check):
                return check.command
    except NotSetUp as error:
        return error.failure.summary
    return ""


def _was_green(bench: Bench, check: Check) -> bool:
    """Whether a check held by itself when its task landed; a gate that was red all along tells nothing new."""
    verdicts = [task.current.verdict for task in bench.record.state.tasks.values() if task.commit and task.attempts]
    command = bench.redactor.text(check.command)
    results = [one for verdict in verdicts if verdict for one in verdict.results if one.command == command]
    return all(not one.although for one in results)


def _message(state: RunState) -> str:
    """Write the text of a single or a merge commit."""
    assert state.started is not None
    landed = [f"- {task.task.id} {one_line(subject(task.task), 70)}" for task in state.tasks.values() if task.commit]
    title = one_line(state.started.title, 72) or f"Merge unstuck/{state.started.run}"
    return "\n".join([title, "", *landed]) + "\n"


def _with_plan(home: Home, paths: Sequence[str], text: str) -> str:
    """Commit the plan's own ticks as the last commit, where the plan is tracked."""
    committed = home.commit_plan(paths, "Tick the plan\n") if paths else None
    return f"{text} {committed.reason}" if isinstance(committed, NotPossible) else text
