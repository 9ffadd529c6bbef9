"""Find the commits that a run can be taken back to, remove what runs left behind, and examine the place they run in."""

from pathlib import Path

from unstuck.compose.looking import look
from unstuck.config_file import read_config
from unstuck.errors import BadUsage
from unstuck.git import find, slots_folder
from unstuck.git import prune as prune_repository
from unstuck.journal import SqliteJournal, journal_path
from unstuck.line import unfinished


def before_landing(cwd: Path, task: str) -> str:
    """Return the commit that the run's branch stood at before the task landed."""
    view = look(cwd)
    task = view.named(task)
    commit = view.state.tasks[task].commit
    if commit is None:
        raise BadUsage(f"Task {task} has no commit on the run's branch.", hint="See `unstuck status`.")
    return commit_of_run(cwd, f"{commit}^")


def commit_of_run(cwd: Path, name: str) -> str:
    """Resolve a commit that a person named; one that is on the user's branch already cannot be rolled back here."""
    repository, view = find(cwd), look(cwd)
    git = repository.git
    found = git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode != 0:
        raise BadUsage(f"There is no commit {name!r}.", hint=f"See them with `git log unstuck/{view.run}`.")
    commit = found.stdout.strip()
    started = view.state.started
    home = started.branch if started and started.branch else repository.head
    if view.state.tip != commit and git.succeeds("merge-base", "--is-ancestor", view.state.tip, home):
        raise BadUsage(
            "The run's work is on your branch already.",
            hint=f"Take it back there: git revert {commit[:12]}..{view.state.tip[:12]}",
        )
    return commit


def prune(cwd: Path, *, dry_run: bool) -> tuple[str, ...]:
    """Remove what ended runs left behind; say what was removed, and what was kept and why."""
    repository = find(cwd)
    path = journal_path(repository)
    if not path.exists():
        return ("There is nothing of unstuck's here.",)
    journal = SqliteJournal(path)
    try:
        journal.claim("prune")
        try:
            finished = [run for run in journal.runs() if not unfinished(tuple(journal.read(run)))]
            slots = slots_folder(repository, read_config(repository.root).workspace.slots)
            pruned = prune_repository(repository, finished, slots, dry_run=dry_run)
        finally:
            journal.release()
    finally:
        journal.close()
    return (*pruned.removed, *pruned.kept) or ("There was nothing to remove.",)
