"""Edge: Keep a run as one file: the same page with all stories in it, for a pull request or a mail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unstuck.compose import View
from unstuck.errors import BadUsage
from unstuck.web.hub import Hub
from unstuck.web.page import kept_page

ROOM = 600_000
"""Characters for what programs and agents said; with the bundle and the rows the file stays below a megabyte."""
FEWEST, MOST = 300, 20_000
TOLD_TASKS = 400
"""Stories beyond that would say next to nothing: what is stuck comes first, then what took the most attempts."""


def keep_page(cwd: Path, view: View, path: Path) -> int:
    """Write the page; return its size."""
    hub = Hub(cwd)
    try:
        text = kept_page(kept(hub, view))
    finally:
        hub.close()
    try:
        return path.write_bytes(text.encode())
    except OSError as error:
        raise BadUsage(
            f"{path} cannot be written: {error.strerror}.", hint="Name a file in a folder that is there."
        ) from error


def kept(hub: Hub, view: View) -> dict[str, Any]:
    """Return the run with the stories of its tasks, each text as long as there is room for it."""
    tasks = view.state.tasks
    worked = sorted(
        (name for name, task in tasks.items() if task.attempts),
        key=lambda name: (tasks[name].status != "stuck", -len(tasks[name].attempts)),
    )[:TOLD_TASKS]
    attempts = sum(len(tasks[name].attempts) for name in worked)
    share = max(FEWEST, min(MOST, ROOM // (4 * attempts or 1)))
    return {
        "view": hub.whole(view.run),
        "experience": hub.experience(),
        "stories": {name: hub.story(view.run, name, share) for name in worked},
        "diffs": {name: _by_attempt(hub.diff, view, name, 2 * share, None) for name in worked},
        "briefs": {name: _by_attempt(hub.brief, view, name, share) for name in worked},
    }


def _by_attempt(told: Callable[..., str], view: View, name: str, limit: int, *more: None) -> dict[int, str]:
    found = {}
    for attempt in view.state.tasks[name].attempts:
        try:
            found[attempt.number] = told(view.run, name, attempt.number, *more, limit)
        except BadUsage as error:
            found[attempt.number] = f"# {error.message}"
    return found
