"""Edge: `ui` and `board`: a run in the browser, and in any terminal."""

import os
import sys
from pathlib import Path

import click

from unstuck import compose
from unstuck.cli.options import run_option
from unstuck.cli.screen import render
from unstuck.cli.screen.attached import Attached, follow_lines
from unstuck.cli.screen.saying import say
from unstuck.errors import Unavailable


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Where to listen.  [default: 7433, or any that is free]")
@click.option("--host", default="127.0.0.1", help="Listen beyond this machine; needs a token.  [default: 127.0.0.1]")
@click.option("--token", default="", envvar="UNSTUCK_UI_TOKEN", help="The key to use.  [default: a new one each time]")
@click.option("--open", "open_browser", is_flag=True, help="Open it in a browser.")
def ui(*, port: int | None, host: str, token: str, open_browser: bool) -> None:
    """Serve the board: runs live in the browser, with buttons for what waits for you."""
    try:
        from unstuck.web import serve_board  # noqa: PLC0415  # an extra: it need not be there
    except ImportError as error:
        raise Unavailable(
            f"The board needs a package that is not installed: {error.name}.",
            hint="Install it: pip install 'unstuck[ui]'",
        ) from error
    serve_board(
        Path.cwd(), host=host, port=port, token=token, open_browser=open_browser, say=lambda text: say(text, err=True)
    )


@click.command()
@run_option
def board(*, run_id: str | None) -> None:
    """Attach to the latest run, or the one named, from any terminal; enter tells the story of a task."""
    view = compose.look(Path.cwd(), run_id)
    if sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        Attached(Path.cwd(), view.run).watch()
    else:
        follow_lines(Path.cwd(), view.run)
    say(render.summary(compose.look(Path.cwd(), view.run).summary))
