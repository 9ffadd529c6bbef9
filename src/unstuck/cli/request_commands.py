"""Edge: What a person asks of a run: each command leaves a request, and carries it out where no supervisor is alive."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from unstuck.cli import say
from unstuck.model.errors import BadUsage
from unstuck.model.event import Acted, Entry, Operated, Verb
from unstuck.model.text import one_line
from unstuck.reports.event_lines import event_line

task_argument = click.argument("task")
LONGEST = 200


def _said(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Refuse to take nothing for an answer or a reason."""
    if not text.strip():
        raise click.BadParameter("it is empty.")
    return text


@click.command()
def stop() -> None:
    """Ask the running supervisor to stop: nothing new starts, running sessions get time to finish."""
    from unstuck.app.inspect import look

    view = look(Path.cwd())
    if view.owner is None:
        say("No supervisor is running here.")
        return
    _ask("stop", done="")


@click.command()
@task_argument
@click.option("--hint", default="", help="A line for the agent's next brief.")
def retry(task: str, *, hint: str) -> None:
    """Open TASK again with a fresh budget, starting from the tip of the run's branch."""
    _ask("retry", task, hint, done=f"Task {task} is open again; go on with: unstuck resume")


@click.command()
@task_argument
@click.argument("text", callback=_said)
def answer(task: str, text: str) -> None:
    """Answer what TASK asks: it is opened again with a fresh budget, and the answer stands in the agent's brief."""
    _ask("answer", task, text, done=f"Task {task} is open again with your answer; go on with: unstuck resume")


@click.command()
@task_argument
@click.option("--because", default="", help="Why; kept in the journal.")
def skip(task: str, *, because: str) -> None:
    """Settle TASK without doing it; tasks that depend on it may go on."""
    _ask("skip", task, because, done=f"Task {task} is skipped; go on with: unstuck resume")


@click.command()
@task_argument
def reset(task: str) -> None:
    """Do TASK again as if it had not been done; what landed stays until you roll it back."""
    _ask("reset", task, done=f"Task {task} will be done again; go on with: unstuck resume")


@click.command()
@task_argument
@click.option("--because", required=True, callback=_said, help="Why its work is right; stands in the commit.")
def accept(task: str, *, because: str) -> None:
    """Vouch for the work of TASK as it is shown; it lands when the run goes on."""
    from unstuck.app.inspect import waiting_work

    tree, lines = waiting_work(Path.cwd(), task)
    for line in lines:
        say(one_line(line, LONGEST))
    _ask("accept", task, because, tree, done=f"The work of task {task} will land; go on with: unstuck resume")


@click.command()
@click.argument("task", required=False)
def approve(task: str | None) -> None:
    """Let the work of TASK land, or the whole run go on: the plan, and all work that waits for your word."""
    what = f"The work of task {task} will land" if task is not None else "Approved"
    _ask("approve", task, done=f"{what}; go on with: unstuck resume")


@click.command()
@click.argument("task", required=False)
@click.option("--to", "commit", help="A commit of the run's branch.")
def rollback(task: str | None, *, commit: str | None) -> None:
    """Move the run's branch back to before TASK landed, or to a commit. `unstuck undo` takes it back."""
    from unstuck.app.inspect import before_landing, commit_of_run

    if (task is None) == (commit is None):
        raise click.UsageError("Give either a TASK or --to COMMIT.")
    cwd = Path.cwd()
    target = before_landing(cwd, task) if task is not None else commit_of_run(cwd, commit or "")
    done = f"The run's branch is at {target[:12]}; tasks that landed after it are open again."
    _ask("rollback", None, target, done=f"{done} `unstuck undo` takes this back.")


@click.command()
@click.argument("event", type=int, required=False)
def undo(event: int | None) -> None:
    """Take back EVENT (a number from `unstuck log`), or the last thing that can be taken back."""
    _ask("undo", None, str(event) if event is not None else "", done=_taken_back)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def prune(*, dry_run: bool) -> None:
    """Remove worktrees, branches and snapshots of ended runs, but only what is clean, merged and unused."""
    from unstuck.app import inspect

    for line in inspect.prune(Path.cwd(), dry_run=dry_run):
        say(line)


def _taken_back(answer: Operated, entries: Sequence[Entry]) -> str:
    """Say what was taken back, and what follows."""
    event = next((entry.event for entry in entries if entry.seq == answer.undoes), None)
    if isinstance(event, Acted):
        return f"Task {event.task} begins again with the work at {event.snapshot}; go on with: unstuck resume"
    told = f" ({event_line(event).removesuffix(': done')})" if event else ""
    anew = ""
    if isinstance(event, Operated) and event.request.verb == "skip":
        anew = f" Task {event.request.task} is open again, with fresh attempts and without its question."
    return f"Event {answer.undoes} is taken back{told}.{anew} See `unstuck status`."


def _ask(
    verb: Verb,
    task: str | None = None,
    text: str = "",
    shown: str = "",
    *,
    done: str | Callable[[Operated, Sequence[Entry]], str],
) -> None:
    from unstuck.app.inspect import look
    from unstuck.app.open_run import reopen_run

    view = look(Path.cwd())
    task = view.named(task) if task is not None else None
    answer = reopen_run(view.run).operate(verb, task=task, text=text, shown=shown)
    if answer is None:
        say(
            f"Left for the running supervisor (pid {view.owner.pid if view.owner else '?'}); watch with: unstuck log -f"
        )
    elif answer.refused:
        raise BadUsage(answer.refused, hint="Nothing was changed.")
    else:
        say(done if isinstance(done, str) else done(answer, view.entries))
