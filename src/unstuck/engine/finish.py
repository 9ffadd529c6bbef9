"""Bring the run's work home to the user's branch, once every task is settled. May be repeated after a crash."""

from collections.abc import Sequence

from unstuck.core.event import BroughtHome
from unstuck.core.phase_file import subject
from unstuck.core.plan import Check
from unstuck.core.state import RunState
from unstuck.core.text import one_line
from unstuck.core.way_home import AlreadyHome, FastForward, Merge, NotPossible
from unstuck.engine.bench import Bench
from unstuck.engine.execute import set_up
from unstuck.engine.verify import run_check
from unstuck.ports import Home

MERGED_TREE = "merged"
"""The log's name for checks on the merged tree."""


def bring_home(bench: Bench, home: Home) -> BroughtHome:
    """Do what the commit mode says; where it cannot be done safely, say why and what to type."""
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


def _red_together(bench: Bench, merge: Merge) -> str:
    """Run every check of the run on the merged tree; return the first that fails."""
    landed = [name for name, task in bench.record.state.tasks.items() if task.commit]
    bench.workspace.prepare(bench.spare, merge.commit)
    if (failure := set_up(bench, MERGED_TREE, bench.spare)) is not None:
        return failure.summary
    checks: dict[str, Check] = {check.command: check for name in landed for check in bench.checks(name)}
    for check in checks.values():
        if run_check(bench, MERGED_TREE, check, bench.spare).status == "fail":
            return check.command
    return ""


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
