"""Edge: Serve the board: an address of its own, a key in it, and a browser if one is wanted."""

import secrets
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn

from unstuck.model.errors import BadUsage, Unavailable
from unstuck.web.access import KEY_CHARS, LOOPBACK, Admission, is_loopback
from unstuck.web.app import application
from unstuck.web.hub import Hub

PORT = 7433
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  # recognised, not used
GRACE_SECONDS = 1


def serve_board(
    root: Path, *, host: str, port: int | None, token: str, open_browser: bool, say: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C. Beyond this machine it is served only with a key that a person chose."""
    if not is_loopback(host) and not token:
        raise BadUsage(
            f"{host} can be reached from other machines, and no token was given.",
            hint="Give one with --token or UNSTUCK_UI_TOKEN, or leave --host out.",
        )
    if token and len(token) < KEY_CHARS:
        raise BadUsage(f"A token has at least {KEY_CHARS} characters.", hint="`openssl rand -hex 16` makes one.")
    listener = _listening(host, port)
    admission = Admission(
        token=token or secrets.token_urlsafe(KEY_CHARS),
        port=listener.getsockname()[1],
        names=(*LOOPBACK, host.lower(), socket.gethostname().lower()) if not is_loopback(host) else (*LOOPBACK, host),
        everywhere=host in EVERYWHERE,
    )
    name = socket.gethostname() if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    address = f"http://{name}:{admission.port}/"
    say(f"The board is at {address}?token={admission.token}")
    say("Ctrl-C ends it; runs go on without it.")
    if open_browser:
        admission.tickets.add(ticket := secrets.token_urlsafe(KEY_CHARS))
        webbrowser.open(f"{address}?token={ticket}")
    hub = Hub(root)
    try:
        config = uvicorn.Config(
            application(hub, admission),
            http="h11",
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        hub.close()
        listener.close()


def _listening(host: str, port: int | None) -> socket.socket:
    """Return a socket at the port that is wanted; where none is, at our own, or any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if port is None:
        with suppress(OSError):
            return socket.create_server((host, PORT), family=family)
    try:
        return socket.create_server((host, port or 0), family=family)
    except OSError as error:
        raise Unavailable(
            f"The board cannot be served at {host}:{port or PORT}: {error.strerror or error}.",
            hint="Name another port with --port, or leave it out.",
        ) from error
