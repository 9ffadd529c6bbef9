"""The HTML page of the board, served in parts or saved as one file."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from unstuck.app.inspect import View
from unstuck.model.errors import BadUsage
from unstuck.shipped import shipped
from unstuck.web.hub import Hub
from unstuck.web.overview import clean

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='9' "
    "fill='%232f6f5e'/%3E%3Cpath d='M9 17.5l5 5 9.5-12' fill='none' stroke='white' stroke-width='3.4' stroke-linecap='round' "
    "stroke-linejoin='round'/%3E%3C/svg%3E"
)
FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="{icon}">
{head}
</head>
<body>
<div id="page"><noscript>This page needs JavaScript. `unstuck status` tells the same in a terminal.</noscript></div>
{body}
</body>
</html>
"""
STRICT = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"
POLICY = (
    f"{STRICT}; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What the browser may do with the served page: run our bundle, talk to us, and nothing else."""
PARTS = {"/ui.js": ("ui/ui.js", "text/javascript"), "/ui.css": ("ui/ui.css", "text/css")}
ENTRY = FRAME.format(
    title="unstuck", icon=ICON, head='<meta http-equiv="refresh" content="0;url=/">', body="<p>Opening the board…</p>"
)
"""Leads from the address with the key to the one without it; a page of our own does, so that the cookie comes along."""


def served_page() -> str:
    """Return the page that a server gives."""
    head = '<link rel="stylesheet" href="/ui.css">\n<script src="/ui.js" defer></script>'
    return FRAME.format(title="unstuck", icon=ICON, head=head, body="")


def kept_page(kept: Mapping[str, Any]) -> str:
    """Return one file that holds everything: the bundle, allowed by its hash, and the run as inert data."""
    script, style = shipped("ui/ui.js"), shipped("ui/ui.css")
    policy = f"{STRICT}; script-src {_hash(script)}; style-src {_hash(style)}"
    head = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n<style>{style}</style>'
    body = f'<script type="application/json" id="kept">{_inert(kept)}</script>\n<script>{script}</script>'
    title = escape(f"unstuck {kept['view']['run']['id']}")
    return FRAME.format(title=title, icon=ICON, head=head, body=body)


def _inert(value: Mapping[str, Any]) -> str:
    """Write a value as JSON in which nothing can end the element that it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


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
