"""What a failure is about: the path, address, port, command or package that its output or its call names. Pure."""

import re

from unstuck.remedies.call_words import Address, address, ssh_address
from unstuck.remedies.situation import LOOPBACK, PATH_KEYS, Situation

REASONS = (
    r"(?:[Nn]o such file or directory|[Pp]ermission denied|Read-only file system|[Oo]peration not permitted"
    r"|[Aa]ccess (?:is )?denied|No space left on device|Is a directory|[Nn]ot a directory|[Dd]isk quota exceeded"
    r"|cannot be opened|does not exist|not found|[Ff]ile exists)"
)
OPEN, CLOSE = "['\"\u2018\u201c`]", "['\"\u2019\u201d]"
PATHS = (
    rf"{REASONS}[:,]? (?:\w+ )?{OPEN}([^'\"\u2019\u201d\n]{{1,1000}}){CLOSE}",
    rf"{OPEN}([^'\"\u2019\u201d\n]{{1,1000}}){CLOSE}:? {REASONS}",
    rf"(?m)^(?:[\w.+/-]+: )+(?:line \d+: |\d+: )?(?:cannot \w+ )?([^:\n]{{1,1000}}): {REASONS}",
    rf"(?m)^([^\s:][^:\n]{{0,1000}}): {REASONS}",
)
"""Strings, compiled on first use: most failures need none of them."""
PORT = r"(?i)(?:port[ =:]+|:::|[\w.\]*]:)(\d{2,5})\b|address already in use[^\n]{0,80}?[:,( ](\d{2,5})\b"
NOT_FOUND = r"(?m)(?:^|: |env: )['\u2018]?([\w.+@/-]{1,100})['\u2019]?: (?:command not found|not found|No such file)"
LOCK = r"['\"\u2018]?((?:/|\.{0,2}/|[\w.-]+/)[^'\"\u2019\n:]{0,1000}?(?:\.lock|lock-frontend|\.pid|/lock))['\"\u2019]?(?=[\s:.,]|$)"
HIGHEST_PORT = 65535


def path(situation: Situation) -> str:
    """Return the path that the failure is about; empty if none is named."""
    if not situation.is_command:
        for name in PATH_KEYS:
            value = situation.call.args.get(name)
            if isinstance(value, str) and value and "\0" not in value:
                return value
    for text in (situation.message, situation.text[-8_000:]):
        for pattern in PATHS:
            found = re.search(pattern, text)
            if found and "\0" not in found[1] and not address(found[1]):
                return found[1]
    return next((file for file, _ in situation.where if file), "")


def url(situation: Situation) -> Address | None:
    """Return the address that was called, from the call first."""
    values = [value for value in situation.call.args.values() if isinstance(value, str)]
    for text in (situation.call.line, *values, situation.message, situation.text[-8_000:]):
        if found := address(text):
            return found
    for word in situation.call.words or ():
        if found := ssh_address(word):
            return found
    return None


def host(situation: Situation) -> str:
    found = url(situation)
    return found.place if found else ""


def is_loopback(place: str) -> bool:
    return place in LOOPBACK or place.rsplit(":", 1)[0] in LOOPBACK


def port(situation: Situation) -> int | None:
    """Return the port that is taken."""
    for text in (situation.message, situation.text[-8_000:], situation.call.line):
        for found in re.finditer(PORT, text):
            number = int(found[1] or found[2])
            if number <= HIGHEST_PORT:
                return number
    numbers = [int(word) for word in situation.call.words or () if word.isdigit() and 80 <= int(word) <= HIGHEST_PORT]  # noqa: PLR2004
    return numbers[-1] if numbers else None


def command(situation: Situation) -> str:
    """Return the program that is missing."""
    named = situation.names.get("command", "")
    if named:
        return named.rsplit("/", 1)[-1] if "/" not in named.strip("./") else named
    for text in (situation.message, situation.text[-8_000:]):
        if found := re.search(NOT_FOUND, text):
            return found[1]
    return (situation.call.words or ("",))[0]


def lock(situation: Situation) -> str:
    """Return the lock file that stands in the way."""
    for text in (situation.message, situation.text[-8_000:]):
        if found := re.search(LOCK, text):
            return found[1]
    return ""


def blanks(situation: Situation) -> dict[str, str]:
    """Return what fills the blanks of a question."""
    line = situation.call.line
    taken = port(situation) if situation.kind == "port_in_use" else None
    return {
        "command": (command(situation) if situation.kind == "command_not_found" else line)
        or situation.call.tool
        or "the command",
        "tool": situation.call.tool or (situation.call.words or ("the command",))[0],
        "path": lock(situation) or path(situation) or "it",
        "host": host(situation) or "the server",
        "port": str(taken or ""),
        "package": situation.names.get("package", "") or "the package",
        "env": situation.names.get("env", "") or "what is missing",
        "message": situation.message or situation.text.strip()[-200:] or "it failed without a word",
    }
