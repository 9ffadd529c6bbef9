"""What a failure is about: the path, address, port, command or package that its output or its call names. Pure."""

import re
from collections.abc import Iterable, Sequence

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
NO_PATH = r"(?i)-|stdin|stdout|stderr|standard (?:in|out)put|(?:f?write|read|i/o|input/output) ?(?:error|failed)?|error (?:reading|writing|closing)|error|failed"
"""What stands where a path stands in messages without one."""
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
            if found and "\0" not in found[1] and not address(found[1]) and not re.fullmatch(NO_PATH, found[1]):
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
        "path": lock(situation) or path(situation) or ("it" if situation.around.cwd == "." else situation.around.cwd),
        "host": host(situation) or "the server",
        "port": str(taken or ""),
        "package": situation.names.get("package", "") or "the package",
        "env": situation.names.get("env", "") or "what is missing",
        "message": situation.message or situation.text.strip()[-200:] or "it failed without a word",
    }


SIMILAR, SURE, GUESSED = 0.72, 0.93, 0.7
MOST = 5


def sandboxed(path: str, root: str, sandbox: str) -> str:
    """Return the place of a path below the sandbox: its folders are kept, and it can never leave."""
    if root != "." and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            kept = kept[:-1]
        elif part not in {"", ".", "~"}:
            kept.append(part)
    return "/".join((sandbox.rstrip("/"), *(kept or ["file"])))


def parent_of(path: str) -> str:
    head, slash, _ = path.rstrip("/").rpartition("/")
    return head or ("/" if slash else ".")


def name_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def likely(path: str, parent: str, names: Iterable[str], twins: Sequence[str]) -> tuple[str, ...]:
    """Rank the existing paths that a wrong one may mean: by case, by spelling, by another ending, by another place."""
    wanted = name_of(path)
    in_place = ((_likeness(wanted, name), name) for name in names)
    scored = [
        (score, f"{parent}/{name}" if parent not in {"", "."} else name) for score, name in in_place if score >= SIMILAR
    ]
    elsewhere = [
        (_likeness(wanted, name_of(twin)) - 0.05 - place / 1000, twin) for place, twin in enumerate(twins[:200])
    ]
    scored += [(score, twin) for score, twin in elsewhere if score >= SIMILAR]
    best = sorted(scored, key=lambda one: (-one[0], len(one[1]), one[1]))
    return tuple(dict.fromkeys(found for _, found in best))[:MOST]


def likeness(wanted: str, found: str) -> float:
    """Return how sure it is that one path means the other: the same name, or a guess at it."""
    return 1.0 if _likeness(name_of(wanted), name_of(found)) >= SURE else GUESSED


def _likeness(wanted: str, name: str) -> float:
    """Return 1 for the same name, a little less for another case or ending, less for another spelling, 0 for another name."""
    if name == wanted:
        return 1.0
    if name.casefold() == wanted.casefold():
        return 0.98
    stem, _, ending = wanted.rpartition(".")
    if stem and name.rpartition(".")[0].casefold() == stem.casefold():
        same = {ending.casefold(), name.rpartition(".")[2].casefold()}
        return 0.95 if same in ({"yml", "yaml"}, {"htm", "html"}, {"jpg", "jpeg"}, {"md", "markdown"}) else 0.0
    if _squeezed(name) == _squeezed(wanted):
        return 0.93
    return 0.85 if alike(wanted, name) else 0.0


SHORTEST_MISSPELLED, SHORTEST_SWAPPED, LONG = 4, 3, 8
"""In a shorter word one other letter makes another word."""
MOST_OFF = 4
"""Letters that a misspelling can lack or have too many, separators included."""


def alike(wanted: str, name: str) -> bool:
    """Whether a name is a misspelling of another: the same words and numbers, one of the longer words a letter off."""
    if abs(len(wanted) - len(name)) > MOST_OFF:  # before anything dear: a PATH has thousands of names
        return False
    one, other = (re.findall(r"[^\W\d_]+|\d+", text.casefold()) for text in (wanted, name))
    if len(one) != len(other):
        return False
    off = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    return len(off) <= 1 and all(_misspelled(*pair) for pair in off)


def _misspelled(one: str, other: str) -> bool:
    if one.isdigit() or other.isdigit():
        return False
    shortest = min(len(one), len(other))
    if sorted(one) == sorted(other) and shortest >= SHORTEST_SWAPPED:
        places = [place for place in range(shortest) if one[place] != other[place]]
        return len(places) == 2 and places[1] - places[0] == 1  # noqa: PLR2004  # neighbours that changed places
    most = 2 if shortest >= LONG else 1
    return shortest >= SHORTEST_MISSPELLED and _distance(one, other) <= most


def _distance(one: str, other: str) -> int:
    """Return how many letters must be added, left out or changed."""
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        before, row[0] = row[0], place
        for column, its in enumerate(other, 1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (letter != its))
    return row[-1]


def _squeezed(name: str) -> str:
    return name.casefold().translate({ord(char): None for char in "-_ ."})
