"""A scripted model on loopback: it plays turns to whichever agent asks, and remembers what it was asked.

    with ModelServer([Run("touch a.txt"), Say("Done.")]) as model:
        ...  # point an agent at model.url

It is also the proxy that agents are given for everything else. A request to leave loopback is refused and remembered.
"""

import json
import math
import re
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from tests.conformance.turns import MESSAGES, STATUS, Cut, Fault, Say, Stall, Turn
from tests.conformance.wires import WIRES, Asked, Wire

AT_THE_END = Say("There is nothing left in the script.")
ASIDE = Say("A scripted task")
"""The answer to a side question."""
OVERFLOW = Fault(trouble="overflow")
BRIEF = re.compile(r"# Task (\d+(?:\.\d+)*):")
GONE_POLL = 0.1
SESSION_HEADERS = ("x-claude-code-session-id", "session-id")


class ModelServer:
    """One model for one test. The turns are shared by all sessions: each request takes the next one.

    `tasks` are scripts for single tasks, by the id that stands in their briefs.
    """

    def __init__(
        self,
        turns: Iterable[Turn] = (),
        *,
        window: int | None = None,
        tasks: Mapping[str, Iterable[Turn]] | None = None,
    ) -> None:
        self._turns = deque(turns)
        self._tasks = {name: deque(script) for name, script in (tasks or {}).items()}
        self._window = window
        self._full: set[str] = set()
        """Conversations that have overflown, where they have names: making one shorter does not save it."""
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self.asked: list[Asked] = []
        """The requests for the next step of a task, oldest first."""
        self.answers: list[Turn] = []
        """What each of them got."""
        self.escapes: list[str] = []
        """Where an agent wanted to go besides."""
        self._http = _Http(("127.0.0.1", 0), _Desk)
        self._http.model = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self._http.server_address[1]

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self.address)

    @property
    def left(self) -> Sequence[Turn]:
        """Turns that nobody has asked for yet; a fault that lasts stays until a request comes after its end."""
        return tuple(turn for script in (self._turns, *self._tasks.values()) for turn in script)

    def turn(self, asked: Asked) -> tuple[int, Turn]:
        """Take the next turn; return it with its number."""
        with self._lock:
            turn = self._next(asked)
            self.asked.append(asked)
            self.answers.append(turn)
            return len(self.asked), turn

    def _next(self, asked: Asked) -> Turn:
        if self._window is not None and (asked.results > self._window or asked.session in self._full):
            self._full |= {asked.session} - {""}
            return _met(OVERFLOW, time.time())
        turns = self._script(asked)
        while turns:
            turn = turns[0]
            if not isinstance(turn, Fault):
                return turns.popleft()
            now = time.time()
            if not turn.ends:
                turn = turns[0] = _met(turn, now)
            if turn.lasts and now < turn.ends:
                return turn
            turns.popleft()
            if not turn.lasts:
                return turn
        return AT_THE_END

    def _script(self, asked: Asked) -> deque[Turn]:
        named = BRIEF.search(asked.conversation)
        return self._tasks.get(named[1], self._turns) if named else self._turns


def _met(fault: Fault, now: float) -> Fault:
    """Fill in when the fault ends."""
    ends = now + fault.lasts
    reset = str(math.ceil(ends))
    headers = {name: value.replace("{reset}", reset) for name, value in fault.headers.items()}
    message = (fault.message or MESSAGES[fault.trouble]).replace("{reset}", reset)
    return replace(fault, ends=ends, headers=headers, message=message)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    model: ModelServer


class _Desk(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: _Http

    @property
    def model(self) -> ModelServer:
        return self.server.model

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Print nothing."""

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        if urlsplit(self.path).netloc or self.headers.get("host", "").partition(":")[0] != "127.0.0.1":
            return self._refuse(self.path)
        wire = next((wire for wire in WIRES if wire.serves(path)), None)
        if path.endswith("/count_tokens"):
            return self._put(200, {"input_tokens": 1000})
        if wire is None:
            return self._put(404, {"error": {"message": f"{path} is not served here"}})
        session = next((value for name in SESSION_HEADERS if (value := self.headers.get(name))), "")
        body = json.loads(content)
        stream = path.endswith(":streamGenerateContent") or bool(body.get("stream"))
        asked = replace(wire.read(body), stream=stream, session=session)
        if asked.shell is None:
            return self._answer(wire, asked, 0, ASIDE)
        number, turn = self.model.turn(asked)
        match turn:
            case Fault():
                self._fail(wire, asked, turn)
            case Stall():
                self._stall()
            case Cut():
                self._cut(wire, asked, number)
            case _:
                self._answer(wire, asked, number, turn)
        return None

    def do_GET(self) -> None:
        if urlsplit(self.path).netloc:
            return self._refuse(self.path)
        return self._put(404, {"error": {"message": f"{self.path} is not served here"}})

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_CONNECT(self) -> None:
        self._refuse(self.path)

    def _refuse(self, where: str) -> None:
        self.model.escapes.append(where)
        self.close_connection = True
        self._put(403, {"error": {"message": "only loopback"}})

    def _answer(self, wire: Wire, asked: Asked, number: int, turn: Any) -> None:
        if asked.stream:
            self._stream(wire.events(turn, asked, number))
        else:
            self._put(200, wire.whole(turn, asked, number))

    def _fail(self, wire: Wire, asked: Asked, fault: Fault) -> None:
        if asked.stream and fault.trouble in wire.in_stream:
            self._stream(wire.failed(fault))
        else:
            self._put(STATUS[fault.trouble], wire.error(fault), fault.headers)

    def _stall(self) -> None:
        self.close_connection = True
        while not self.model.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], GONE_POLL)
            with suppress(OSError):
                if readable and not self.connection.recv(1, socket.MSG_PEEK):
                    return

    def _cut(self, wire: Wire, asked: Asked, number: int) -> None:
        self.close_connection = True
        self._begin_stream()
        self.wfile.write(next(wire.events(Say("I will"), asked, number)).encode())
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _stream(self, events: Iterable[str]) -> None:
        self._begin_stream()
        with suppress(ConnectionError):  # an agent may be killed while it is answered
            for event in events:
                self.wfile.write(event.encode())
                self.wfile.flush()

    def _begin_stream(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()

    def _put(self, status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            for name, value in {
                "content-type": "application/json",
                "content-length": str(len(body)),
                **(headers or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
