"""Edge: Keep a run as one file: the same page with all stories in it, for a pull request or a mail."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from unstuck.app.inspect import View
from unstuck.model.errors import BadUsage
from unstuck.web.hub import Hub
from unstuck.web.overview import clean
from unstuck.web.page import kept_page

LARGEST = 950_000
"""Of a run of a hundred tasks; what programs and agents said is cut until that holds."""
LIMITS = (20_000, 8_000, 4_000, 2_000, 1_000, 500, 250)
"""How long a text may be, from the longest on."""
TOLD_TASKS = 400
"""Stories beyond that would say next to nothing: what is stuck comes first, then what took the most attempts."""


def keep_page(cwd: Path, view: View, path: Path) -> int:
    """Write the page; return its size."""
    hub = Hub(cwd)
    try:
        whole = kept(hub, view)
    finally:
        hub.close()
    page = b""
    for limit in LIMITS:
        page = kept_page(clean(whole, limit)).encode()
        if len(page) <= LARGEST:
            break
    try:
        return path.write_bytes(page)
    except OSError as error:
        raise BadUsage(
            f"{path} cannot be written: {error.strerror}.", hint="Name a file in a folder that is there."
        ) from error


def kept(hub: Hub, view: View) -> dict[str, Any]:
    """Return the run with the stories of its tasks; of those the steps, which tell what the events do."""
    tasks = view.state.tasks
    worked = sorted(
        (name for name, task in tasks.items() if task.attempts),
        key=lambda name: (tasks[name].status != "stuck", -len(tasks[name].attempts)),
    )[:TOLD_TASKS]
    return {
        "view": hub.whole(view.run),
        "experience": hub.experience(),
        "stories": {name: hub.story(view.run, name) | {"events": None} for name in worked},
        "diffs": {name: _by_attempt(partial(hub.diff, since=None), view, name) for name in worked},
        "briefs": {name: _by_attempt(hub.brief, view, name) for name in worked},
    }


def _by_attempt(told: Callable[[str, str, int], str], view: View, name: str) -> dict[str, str]:
    found = {}
    for attempt in view.state.tasks[name].attempts:
        try:
            found[str(attempt.number)] = told(view.run, name, attempt.number)
        except BadUsage as error:
            found[str(attempt.number)] = f"# {error.message}"
    return found
