"""Who may speak to the board: only pages of its own, at the address that it was opened under, with the key. Pure.

Law: the host is checked first (another name for our address is a page that was bound to it by DNS), then the origin
(a page of somebody else's), then the key. A request that changes something must say where it comes from.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE = ("GET", "HEAD")
KEY_CHARS = 24
"""Fewer than that can be guessed."""


@dataclass(slots=True)
class Admission:
    """The keys of one server, and the names that it goes by."""

    token: str
    """Stands in the address that is printed; whoever opens that gets the cookie."""
    port: int
    names: tuple[str, ...] = LOOPBACK
    everywhere: bool = False
    """It listens at all addresses: any number is one of them, and no name but those given is."""
    tickets: set[str] = field(default_factory=set)
    """Keys that open once: they stand in the command line of a browser, which others can read."""

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers keep cookies by host, and there may be a board at every port."""
        return f"unstuck-{self.port}"

    @property
    def session(self) -> str:
        """What the cookie holds: pages come back to a server that is started anew with the same token."""
        return hmac(self.token.encode(), b"cookie", sha256).hexdigest()

    def opens(self, key: str) -> bool:
        """Whether a key is right; a ticket is so once."""
        tickets = {one for one in self.tickets if compare_digest(one.encode(), key.encode())}
        self.tickets -= tickets
        return bool(tickets) or compare_digest(self.token.encode(), key.encode())

    def refuses(self, method: str, headers: Mapping[str, str], cookies: Mapping[str, str], key: str) -> tuple[int, str]:
        """Return why a request is refused, as a status and a sentence; 0 if it is not."""
        host = headers.get("host", "")
        if not self._ours(host):
            return 403, "This board is not at that address."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        changes = method not in SAFE
        if (origin is None and changes) or (origin is not None and origin not in _origins(host)):
            return 403, "Only a page of this board may ask for that."
        if site not in ("same-origin", "none") and (changes or not key):
            return 403, "Only a page of this board may ask for that."
        if key and method == "GET" and self.opens(key):
            return 0, ""
        if compare_digest(cookies.get(self.cookie, "").encode(), self.session.encode()):
            return 0, ""
        return 401, "Open the address that `unstuck ui` printed; it holds the key."

    def _ours(self, host: str) -> bool:
        name, port = _split(host)
        if port != self.port:
            return False
        return name in self.names or (self.everywhere and _is_number(name))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host in LOOPBACK or (_is_number(host) and ipaddress.ip_address(host).is_loopback)


def _origins(host: str) -> tuple[str, ...]:
    return (f"http://{host}",)


def _split(host: str) -> tuple[str, int]:
    """Return the name and the port of a `Host` header; port 0 where there is none that could be right."""
    name, _, port = host.lower().rpartition(":") if not host.endswith("]") else (host, "", "80")
    if not name:
        name, port = host.lower(), "80"
    return name.removeprefix("[").removesuffix("]"), int(port) if port.isascii() and port.isdecimal() else 0


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
