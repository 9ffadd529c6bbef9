"""Run a command where the network is loopback and nothing else: `python island.py COMMAND...`.

Linux gives such a network to root, and to anybody where user namespaces are open. Elsewhere the command is run as it
is: then only its environment keeps it at home.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

NEW_NETWORK, NEW_USER = 0x40000000, 0x10000000
SET_FLAGS, UP = 0x8914, 0x1


def enter() -> str:
    """Put this process into a network of its own; return why it is not possible, or nothing."""
    user, group = os.geteuid(), os.getegid()
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no network namespaces"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK if user == 0 else NEW_NETWORK | NEW_USER) != 0:
        return f"a network namespace is refused: {os.strerror(ctypes.get_errno())}"
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_text(text, encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", UP))
    return ""


def alone() -> bool:
    """Whether this process sees no network but loopback."""
    return {name for _, name in socket.if_nameindex()} == {"lo"}


if __name__ == "__main__":
    if problem := enter():
        sys.stderr.write(f"Not cut off from the network, only kept from it by proxies: {problem}.\n")
    os.execvp(sys.argv[1], sys.argv[1:])
