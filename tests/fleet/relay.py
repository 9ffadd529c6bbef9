"""Stands between a worker and Postgres; frozen by SIGSTOP it is a network that swallows everything: `python relay.py HOST PORT`."""

import selectors
import socket
import sys


def serve(host: str, target: int) -> None:
    """Pass on what comes from either side, for any number of connections."""
    ready = selectors.DefaultSelector()
    listening = socket.create_server((host, 0))
    ready.register(listening, selectors.EVENT_READ)
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    other: dict[socket.socket, socket.socket] = {}
    while True:
        for key, _ in ready.select():
            side = key.fileobj
            assert isinstance(side, socket.socket)
            if side is listening:
                near, far = listening.accept()[0], socket.create_connection(("127.0.0.1", target))
                other |= {near: far, far: near}
                for end in (near, far):
                    ready.register(end, selectors.EVENT_READ)
            elif side in other:
                _pass_on(side, other, ready)


def _pass_on(side: socket.socket, other: dict[socket.socket, socket.socket], ready: selectors.BaseSelector) -> None:
    try:
        said = side.recv(65536)
        other[side].sendall(said)
    except OSError:
        said = b""
    if not said:
        for end in (side, other[side]):
            ready.unregister(end)
            end.close()
            del other[end]


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
