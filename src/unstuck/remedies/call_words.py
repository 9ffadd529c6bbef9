"""Read a failing call: its words if it is a simple command, the addresses in it, and which words may be others misspelled. Pure."""

import re
import shlex
from typing import NamedTuple

SPECIAL = frozenset("|&;<>()$`*?[]{}#!~\n\r\x00")
IN_DOUBLE_QUOTES = frozenset("$`\x00")
ASSIGNMENT = r"[A-Za-z_]\w*="
URL = r"(?P<scheme>https?|git|ftp)://(?:[^/@\s]*@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^/:?#\s]+)(?P<port>:\d+)?(?P<rest>[/?#]\S*)?"
SSH_URL = r"(?:ssh://)?(?:[\w.-]+@)(?P<host>[\w.-]+)(?::\d+)?[:/](?P<path>[^\s:][^\s]*)"
CONTROL = r"[\x00-\x1f\x7f]"
MAX_CHARS = 100_000
LOUD = frozenset({"-f", "--fail", "--fail-with-body", "--fail-early"})
TO_FILE, TO_OWN_NAME = ("-o", "--output", "--output-document"), ("-O", "--remote-name")
DESTROYERS = frozenset(
    {"rm", "rmdir", "unlink", "shred", "truncate", "mv", "dd", "mkfs", "kill", "pkill", "killall", "dropdb"}
)
DESTROYING = frozenset({"git rm", "git checkout", "git restore", "git clean", "git reset", "git branch", "docker rm"})
"""Whose operands are never guessed."""
RESTRAINTS = r"dry|check|preview|simulat|no-?op|what-?if|plan|confirm|interactive|safe|backup|only|exclude|filter|limit|keep|preserve|^no-"
"""Options that hold a call back: without them it does more than was asked for."""


class Address(NamedTuple):
    """An address on the network, taken apart."""

    scheme: str
    host: str
    port: str
    path: str

    @property
    def text(self) -> str:
        return f"{self.scheme}://{self.host}{self.port}{self.path}"

    @property
    def place(self) -> str:
        return f"{self.host}{self.port}"


def plain_words(command: str) -> tuple[str, ...] | None:
    """Return the words of a simple command; None if only a shell can tell what it does."""
    if len(command) > MAX_CHARS or _needs_shell(command):
        return None
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        return None
    return words if words and not re.match(ASSIGNMENT, words[0]) else None


def _needs_shell(command: str) -> bool:
    quote, escaped, start = "", False, True
    for char in command.strip():
        if escaped:
            escaped = False
        elif quote == "'":
            quote = "" if char == "'" else quote
        elif char == "\\":
            escaped = True
        elif quote == '"':
            if char in IN_DOUBLE_QUOTES:
                return True
            quote = "" if char == '"' else quote
        elif char in "'\"":
            quote = char
        elif char in SPECIAL and (char not in "#~!{}" or start):
            return True
        start = char.isspace() and not quote
    return bool(quote) or escaped


def parts(command: str) -> tuple[str, ...]:
    """Return the commands of a line that stand between `&&`, `||`, `;`, `|` and line ends, quoted text left whole."""
    found, current, quote, place = [], "", "", 0
    while place < len(command):
        char = command[place]
        two = command[place : place + 2]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char == "\\":
            current += two
            place += 2
            continue
        elif two in {"&&", "||"} or char in ";|\n&":
            near = command[place - 1 : place] + command[place + 1 : place + 2]
            if char != "&" or two == "&&" or ">" not in near:
                found.append(current)
                current, place = "", place + (2 if two in {"&&", "||"} else 1)
                continue
        current += char
        place += 1
    return tuple(part.strip() for part in (*found, current) if part.strip())


def simple_call(command: str, program: str) -> tuple[str, ...] | None:
    """Return the words of the first part that runs this program."""
    for part in parts(command[:MAX_CHARS]):
        words = plain_words(part)
        if words and words[0].rsplit("/", 1)[-1] == program:
            return words
    return None


def address(text: str) -> Address | None:
    """Return the address that a word is, or the first in a text."""
    found = re.search(URL, text)
    if found is None or re.search(CONTROL, found[0]):
        return None
    return Address(found["scheme"], found["host"], found["port"] or "", found["rest"] or "")


def ssh_address(text: str) -> Address | None:
    """Read `git@host:path` and `ssh://git@host/path`."""
    found = re.fullmatch(SSH_URL, text)
    return Address("https", found["host"], "", "/" + found["path"].lstrip("/")) if found else None


def program(words: tuple[str, ...] | None) -> str:
    """Return the name of the program that the words run, without its folder."""
    return words[0].rsplit("/", 1)[-1] if words else ""


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def operand(path: str) -> str:
    """Return a path that no program takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def download_target(words: tuple[str, ...] | None) -> str:
    """Return the file that a download writes; empty if it writes none, or nobody can say which."""
    if words is None or program(words) not in {"curl", "wget"}:
        return ""
    named = TO_FILE if program(words) == "curl" else (*TO_FILE[2:], "-O")
    for place, word in enumerate(words[:-1]):
        if word in named:
            return words[place + 1] if words[place + 1] not in {"-", "/dev/null", "/dev/stdout"} else ""
    source = next((word for word in words if address(word)), "")
    if program(words) == "wget" or set(TO_OWN_NAME).intersection(words):
        return source.rstrip("/").rsplit("/", 1)[-1].partition("?")[0]
    return ""


def loud(words: tuple[str, ...]) -> tuple[str, ...]:
    """Let curl fail where the server refuses: without that a page about an error is a success."""
    bundled = any(re.fullmatch(r"-[A-Za-z]*f[A-Za-z]*", word) for word in words)
    if program(words) != "curl" or bundled or LOUD.intersection(words):
        return words
    return (words[0], "--fail", *words[1:])


def destroys(line: str) -> bool:
    """Whether a part of a command line destroys what it is given."""
    called = [words for words in map(plain_words, parts(line)) if words]
    return any(program(words) in DESTROYERS or " ".join(words[:2]) in DESTROYING for words in called)


def restrains(name: str) -> bool:
    """Whether an option or argument holds a call back, so that leaving it out is no repair."""
    return bool(re.search(RESTRAINTS, name.lstrip("-").lower().replace("_", "-"))) or name in {"-n", "-i"}


# --- misspelled words ---------------------------------------------------------------------------------------------

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
