"""The web server of the board."""

import json
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from anyio.to_thread import run_sync
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from unstuck.model.errors import BadUsage, Unavailable, UnstuckError
from unstuck.shipped import shipped
from unstuck.web.access import KEY_CHARS, LOOPBACK, Admission, is_loopback
from unstuck.web.hub import TICK_SECONDS, Hub, UnknownRun, refusal
from unstuck.web.page import ENTRY, PARTS, POLICY, served_page

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


REST = 9
"""A look that took a second is followed by so many seconds without one: a run must not feel that it is watched."""
LONGEST_BODY = 64_000
PING_SECONDS = 15
RETRY_MILLISECONDS = 1000
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Watch:
    """The one look at the journal for all pages: it looks while anybody watches, and wakes whoever does."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._watched: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self._doing: dict[str, bytes] = {}
        self._told: dict[tuple[str, int], tuple[int, bytes]] = {}
        self._news = anyio.Event()
        self._joined = anyio.Event()

    async def look(self) -> None:
        """Look again and again, as long as the server lives."""
        while True:
            if not self._watched:
                await self._joined.wait()
            began = anyio.current_time()
            news = [await run_sync(self._refreshed, run) for run in list(self._watched)]
            if any(news):
                self._news.set()
                self._news = anyio.Event()
            await anyio.sleep(max(TICK_SECONDS, REST * (anyio.current_time() - began)))

    async def stream(self, run: str, seen: int | None) -> AsyncIterator[bytes]:
        """Yield the run, or what changed in it since an event that was seen, and then every change."""
        self._watched[run] = self._watched.get(run, 0) + 1
        self._joined.set()
        try:
            version, doing = await run_sync(self.hub.version_at, run, seen) if seen is not None else 0, b""
            while True:
                news = self._news
                if version != self._versions.get(run):
                    known = self._told.get((run, version))
                    version, told = known if known is not None else await run_sync(self._tell, run, version)
                    if told:
                        yield told
                        continue  # there may be more by now
                if (did := self._doing.get(run, b"")) != doing:
                    doing = did
                    yield doing
                await news.wait()
        finally:
            self._watched[run] -= 1
            if not self._watched[run]:
                del self._watched[run]
                self._joined = anyio.Event() if not self._watched else self._joined

    def _refreshed(self, run: str) -> bool:
        """Read on; where something is new, write it at once for the pages that have all before it."""
        try:
            version, doing = self.hub.refresh(run), self.hub.doing(run)
        except UnstuckError:  # a journal that cannot be read now may be so at the next look
            return False
        before, did = self._versions.get(run, 0), self._doing.get(run, b"")
        self._doing[run] = _event("doing", doing) if doing or did else b""
        if version != before:
            self._told = {key: told for key, told in self._told.items() if key[0] != run}
            if before:
                self._tell(run, before)
            self._versions[run] = version
        return version != before or did != self._doing[run]

    def _tell(self, run: str, version: int) -> tuple[int, bytes]:
        """Write an event once for all pages that are at the same place."""
        now, seq, text = self.hub.told(run, version)
        if not text:
            return now, b""
        self._told[run, version] = now, _event("patch" if version else "view", text, seq)
        return self._told[run, version]


class Guard:
    """Stands before every address: refuses strangers, and tells the browser what it may do with an answer."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, admission = Request(scope), self._admission
        key = request.query_params.get("token", "") if request.url.path == "/" else ""
        status, why = admission.refuses(request.method, request.headers, request.cookies, key)
        answer: ASGIApp = self._app
        if status:
            answer = PlainTextResponse(f"{why}\n", status)
        elif key:
            response = Response(ENTRY, media_type="text/html")
            response.set_cookie(admission.cookie, admission.session, httponly=True, samesite="strict", path="/")
            answer = response
        await answer(scope, receive, _with_headers(send))


def _event(kind: str, text: str, seq: int | None = None) -> bytes:
    number = str(seq) if seq is not None else None
    return ServerSentEvent(data=text or "{}", event=kind, id=number, retry=RETRY_MILLISECONDS).encode()


def application(hub: Hub, admission: Admission) -> Starlette:
    """Return the application over one repository's runs."""
    watch = Watch(hub)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(watch.look)
            yield
            group.cancel_scope.cancel()

    async def events(request: Request) -> Response:
        run = await run_sync(_run, request, hub)
        last = request.headers.get("last-event-id", "")
        seen = int(last) if last.isascii() and last.isdecimal() else None
        return EventSourceResponse(watch.stream(run, seen), ping=PING_SECONDS)

    answers: dict[str, Callable[[Request, Hub], Any]] = {
        "/api/runs": lambda _, hub: {"runs": hub.runs(), "latest": hub.latest()},
        "/api/story": lambda asked, hub: hub.story(_run(asked, hub), _task(asked)),
        "/api/diff": lambda asked, hub: {
            "diff": hub.diff(_run(asked, hub), _task(asked), _number(asked, "attempt"), _number(asked, "since"))
        },
        "/api/brief": lambda asked, hub: {
            "brief": hub.brief(_run(asked, hub), _task(asked), _number(asked, "attempt") or 1)
        },
        "/api/experience": lambda _, hub: hub.experience(),
        "/api/fleet": lambda _, hub: hub.fleet(),
    }

    async def answered(request: Request) -> Response:
        return JSONResponse(await run_sync(answers[request.url.path], request, hub))

    async def ask(request: Request) -> Response:
        wanted = await _body(request)
        return JSONResponse(await run_sync(partial(hub.ask, **wanted)))

    routes = [
        Route("/", lambda _: Response(served_page(), media_type="text/html")),
        *(Route(path, _part) for path in PARTS),
        *(Route(path, answered) for path in answers),
        Route("/api/events", events),
        Route("/api/ask", ask, methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, admission=admission)],
        exception_handlers={UnstuckError: _refused},
    )


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, UnstuckError)
    if isinstance(error, UnknownRun):
        return JSONResponse(refusal(error), 404)
    return JSONResponse(refusal(error), 400 if isinstance(error, BadUsage) else 500)


async def _part(request: Request) -> Response:
    name, sort = PARTS[request.url.path]
    return Response(shipped(name), media_type=sort)


async def _body(request: Request) -> dict[str, Any]:
    """Read what is asked for: an object of texts, as our page sends it."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise BadUsage("A request is JSON.", hint="Ask from the page.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            raise BadUsage("That is too long.", hint="Say it in fewer words.")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadUsage("A request is JSON.", hint="Ask from the page.") from error
    fields = value if isinstance(value, dict) else {}
    wanted: dict[str, Any] = {name: fields.get(name, "") for name in ("run", "verb", "text", "shown")}
    if not all(isinstance(one, str) for one in wanted.values()) or not isinstance(fields.get("task"), str | None):
        raise BadUsage("A request consists of texts.", hint="Ask from the page.")
    return {**wanted, "task": fields.get("task") or None}


def _run(request: Request, hub: Hub) -> str:
    run = request.query_params.get("run", "") or hub.latest()
    if not run:
        raise BadUsage("There is no run in this repository yet.", hint="Start one with `unstuck run PLAN`.")
    hub.require(run)
    return run


def _task(request: Request) -> str:
    return request.query_params.get("task", "")


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 10):  # noqa: PLR2004  # more is no number of an attempt
        raise BadUsage(f"{name} is a number.", hint="Ask from the page.")
    return int(text) if text else None


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in names]
            message["headers"] = [*message["headers"], *more]
        await send(message)

    return sending
