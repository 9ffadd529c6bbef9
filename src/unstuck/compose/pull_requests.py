"""Edge: Bring a run out again as a pull request: its text in a file, and opened where GitHub's own tool can."""

import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.compose.looking import look
from unstuck.errors import BadUsage
from unstuck.git import Repository, find
from unstuck.journal import redactor
from unstuck.process import put
from unstuck.tell import one_line, pull_request

FILE = "pull-request.md"
GH_SECONDS = 60
SAID_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The text of a pull request, where it is, and what became of it."""

    title: str
    body: str
    path: Path
    address: str = ""
    """Where it was opened."""
    why: str = ""
    """Why it was not, and what to type."""


def draft_request(cwd: Path, run: str | None, path: Path | None, *, only_file: bool) -> Opened:
    """Write a pull request for what a run landed into a file; open it where `gh` is there, logged in, and can see the branch."""
    view, repository = look(cwd, run), find(cwd)
    if not any(task.commit for task in view.state.tasks.values()):
        raise BadUsage(f"Nothing of run {view.run} has landed yet.", hint="See where it stands: unstuck status")
    asked = pull_request(view.state, view.summary)
    file = path.absolute() if path is not None else repository.ours / FILE
    repository.exclude_ours()
    put(file, f"# {asked.title}\n\n{asked.body}")
    made = Opened(title=asked.title, body=asked.body, path=file)
    if only_file:
        return made
    started = view.state.started
    home = (started.branch or "").removeprefix("refs/heads/") if started else ""
    head, base = _branches(repository, home, f"unstuck/{view.run}")
    return _opened(repository, made, head, base)


def _branches(repository: Repository, home: str, own: str) -> tuple[str, str]:
    """Return which branch is asked to be merged into which: the user's own into the remote's main one, else the run's."""
    found = repository.git.attempt("symbolic-ref", "--short", "refs/remotes/origin/HEAD").stdout.strip()
    main = found.removeprefix("origin/")
    return (home, main) if main and home and home != main else (own, home or main)


def _opened(repository: Repository, made: Opened, head: str, base: str) -> Opened:
    typed = f"git push -u origin {head} && unstuck pr"
    gh = shutil.which("gh")
    if gh is None:
        return replace(made, why="gh is not on PATH, so nothing was opened. Paste the file, or install gh.")
    if _gh(repository, gh, "auth", "status").returncode != 0:
        return replace(made, why="gh is not logged in, so nothing was opened. Log in with: gh auth login")
    git = repository.git
    there = git.attempt("ls-remote", "--exit-code", "origin", f"refs/heads/{head}")
    tip = git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{head}").stdout.strip()
    if there.returncode != 0 or not tip or not there.stdout.startswith(tip):
        return replace(
            made, why=f"The branch {head} is not at origin as it is here. We push nothing by ourselves: {typed}"
        )
    done = _gh(
        repository,
        gh,
        "pr",
        "create",
        "--title",
        made.title,
        "--body",
        made.body,
        "--head",
        head,
        *(("--base", base) if base else ()),
    )
    if done.returncode != 0:
        said = redactor({}).text(one_line(done.stderr, SAID_CHARS))
        return replace(made, why=f"gh could not open it: {said}")
    return replace(made, address=one_line(done.stdout, SAID_CHARS))


def _gh(repository: Repository, gh: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [gh, *arguments],
            cwd=repository.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GH_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(arguments, 1, "", str(error))
