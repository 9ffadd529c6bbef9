"""Faults of servers: refused, broken off, stalling, overloaded, limited, dead."""

import time
from collections.abc import Mapping

from benchmarks.faults.box import Box, Fault

FINE: tuple[int, Mapping[str, str], bytes] = (200, {}, b"data")


def refused_at_first(box: Box) -> Fault:
    port = box.serve(lambda _path, _count: FINE, after=1.0)
    return Fault(
        name="a server refuses, then listens",
        category="network_error",
        command=f"curl -sS -o d.txt http://127.0.0.1:{port}/d",
        healed=lambda: box.has("d.txt", "data"),
    )


def overloaded_at_first(box: Box) -> Fault:
    port = box.serve(lambda _path, count: FINE if count > 1 else (503, {}, b"Service Unavailable"))
    return Fault(
        name="a server answers 503, then works",
        category="network_error",
        command=f"curl -sSf -o d.txt http://127.0.0.1:{port}/d",
        healed=lambda: box.has("d.txt", "data"),
    )


def broken_off_at_first(box: Box) -> Fault:
    port = box.serve(lambda _path, count: FINE if count > 1 else None)
    return Fault(
        name="a server breaks off, then works",
        category="network_error",
        command=f"curl -sS -o d.txt http://127.0.0.1:{port}/d",
        healed=lambda: box.has("d.txt", "data"),
    )


def dead_with_mirror(box: Box) -> Fault:
    dead, alive = box.serve(lambda _path, _count: None), box.serve(lambda _path, _count: FINE)
    return Fault(name="a server is dead and has a mirror", category="network_error", command=f"curl -sS -o d.txt http://127.0.0.1:{dead}/d",
                 mirrors={f"127.0.0.1:{dead}": f"127.0.0.1:{alive}"}, healed=lambda: box.has("d.txt", "data"))  # fmt: skip


def dead_with_copy(box: Box) -> Fault:
    box.write("downloads/d.json", '{"data": 1}')
    dead = box.serve(lambda _path, _count: None)
    return Fault(
        name="a server is dead and there is a copy",
        category="network_error",
        command=f"curl -sS -o got.json http://127.0.0.1:{dead}/d.json",
        healed=lambda: box.has("got.json", "data"),
    )


def stalls_at_first(box: Box) -> Fault:
    def page(_path: str, count: int) -> tuple[int, Mapping[str, str], bytes]:
        time.sleep(3.0 if count == 1 else 0.0)
        return FINE

    port = box.serve(page)
    return Fault(
        name="a server stalls, then works",
        category="timeout",
        command=f"curl -sS -m 1 -o d.txt http://127.0.0.1:{port}/d",
        healed=lambda: box.has("d.txt", "data"),
    )


def limited(box: Box) -> Fault:
    port = box.serve(lambda _path, count: FINE if count > 1 else (429, {"Retry-After": "1"}, b"Too Many Requests"))
    return Fault(
        name="a server answers 429 with Retry-After",
        category="rate_limited",
        command=f"curl -sSif http://127.0.0.1:{port}/d",
        prints="data",
    )


def limited_side_by_side(box: Box) -> Fault:
    last = [0.0]

    def page(_path: str, _count: int) -> tuple[int, Mapping[str, str], bytes]:
        now, before = time.monotonic(), last[0]
        last[0] = now
        return FINE if now - before > 1.0 else (429, {"Retry-After": "1"}, b"Too Many Requests")

    port = box.serve(page)
    urls = f"http://127.0.0.1:{port}/a http://127.0.0.1:{port}/b http://127.0.0.1:{port}/c"
    return Fault(
        name="a server refuses several requests at once",
        category="rate_limited",
        command=f"curl -sSi --fail {urls}",
        pause=1.5,
        prints="data",
    )


def paid_perhaps(box: Box) -> Fault:
    paid: list[int] = []
    port = box.serve(lambda _path, count: paid.append(count))
    return Fault(
        name="a server takes an order and says nothing",
        category="network_error",
        command=f"curl -sS -X POST -d amount=1 http://127.0.0.1:{port}/orders",
        healed=lambda: False,
        intact=lambda: paid == [1],
        needs_person=True,
    )


def sent_perhaps(_box: Box) -> Fault:
    sent: list[object] = []

    def send(args: Mapping[str, object]) -> tuple[bool, str]:
        sent.append(args)
        return False, "Operation timed out after 1000 milliseconds"

    return Fault(
        name="a mail takes too long to be sent",
        category="timeout",
        tool="send_email",
        args={"to": "a@b", "timeout_ms": 1000},
        lent={"send_email": send},
        healed=lambda: False,
        intact=lambda: len(sent) == 1,
        needs_person=True,
    )


def wrong_password(box: Box) -> Fault:
    port = box.serve(lambda _path, _count: (401, {"WWW-Authenticate": "Basic"}, b"Unauthorized"))
    return Fault(
        name="a server wants a password",
        category="auth_failed",
        command=f"git clone http://127.0.0.1:{port}/x.git",
        env={"GIT_TERMINAL_PROMPT": "0"},
        healed=lambda: False,
        needs_person=True,
    )


FAULTS = (
    refused_at_first,
    overloaded_at_first,
    broken_off_at_first,
    dead_with_mirror,
    dead_with_copy,
    stalls_at_first,
    limited,
    limited_side_by_side,
    paid_perhaps,
    sent_perhaps,
    wrong_password,
)
