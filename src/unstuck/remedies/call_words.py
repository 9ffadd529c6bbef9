"""Read a failing call: its words if it is a simple command, the addresses in it, and which words may be others misspelled. Pure."""

import re
import shlex
from collections.abc import Iterable
from itertools import takewhile
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import quote, unquote

from unstuck.remedies.chain import listed, shape
from unstuck.toolchain.shell import parts, programs

ASSIGNMENT = r"[A-Za-z_]\w*="
CONTROL = r"[\x00-\x1f\x7f]"
MAX_CHARS = 100_000


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
    if len(command) > MAX_CHARS or _needs_shell(command.strip()):
        return None
    words = tuple(shlex.split(command))
    return words if words and not re.match(ASSIGNMENT, words[0]) else None


def _needs_shell(command: str) -> bool:
    """Whether a shell reads more in it than words: besides its quotations, or inside of double quotes."""
    bare = re.sub(r"""'[^']*'|"(?:[^"\\$`\0]|\\.)*"|\\.""", "x", command, flags=re.DOTALL)
    return re.search(r"""['"\\|&;<>()$`*?\[\]\n\r\0]|(?:^|\s)[{}#!~]""", bare) is not None


def entered(line: str) -> tuple[str, str]:
    """Return the folder that a line changes to before anything else, and the rest of the line."""
    found = re.fullmatch(shape("entering"), line, flags=re.DOTALL)
    return (shlex.split(found[1])[0], found[2]) if found else ("", line)


def simple_call(command: str, program: str) -> tuple[str, ...] | None:
    """Return the words of the first part that runs this program."""
    for part in parts(command[:MAX_CHARS]):
        words = plain_words(part)
        if words and words[0].rsplit("/", 1)[-1] == program:
            return words
    return None


def address(text: str) -> Address | None:
    """Return the address that a word is, or the first in a text."""
    found = re.search(shape("url"), text)
    if found is None or re.search(CONTROL, found[0]):
        return None
    return Address(found["scheme"], found["host"], found["port"] or "", found["rest"] or "")


def ssh_address(text: str) -> Address | None:
    """Read `git@host:path` and `ssh://git@host/path`."""
    found = re.fullmatch(shape("ssh_url"), text)
    return Address("https", found["host"], "", "/" + found["path"].lstrip("/")) if found else None


def local_path(value: str) -> str:
    """Return the path that an argument is, or names as the address of a file; empty for other addresses."""
    scheme, colon, rest = value.partition("://")
    return value if not colon else unquote(rest) if scheme == "file" else ""


def file_address(cwd: str, path: str) -> str:
    """Return the address of a file."""
    return f"file://{quote(path if path.startswith('/') else normpath(f'{cwd}/{path}'))}"


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
    named = listed("to_file") if program(words) == "curl" else (*listed("to_file")[2:], "-O")
    for place, word in enumerate(words[:-1]):
        if word in named:
            return words[place + 1] if words[place + 1] not in {"-", "/dev/null", "/dev/stdout"} else ""
    source = next((word for word in words if address(word)), "")
    if program(words) == "wget" or not set(words).isdisjoint(listed("to_own_name")):
        return source.rstrip("/").rsplit("/", 1)[-1].partition("?")[0]
    return ""


def loud(words: tuple[str, ...]) -> tuple[str, ...]:
    """Let curl fail where the server refuses: without that a page about an error is a success."""
    bundled = any(re.fullmatch(r"-[A-Za-z]*f[A-Za-z]*", word) for word in words)
    if program(words) != "curl" or bundled or not set(words).isdisjoint(listed("loud")):
        return words
    return (words[0], "--fail", *words[1:])


def destroys(line: str) -> bool:
    """Whether a part of a command line destroys what it is given."""
    called = [part.split() for part in programs(line)]
    return any(words[0] in listed("destroyers") or "-".join(words[:2]) in listed("destroying") for words in called)


def reads_input(line: str) -> bool:
    """Whether a command line begins with a program that reads its input, because it is given no file."""
    words = plain_words(next(iter(parts(line)), "")) or ("",)
    before = dict(row.split(":") for row in listed("filters")).get(program(words))
    given = [word for word in words[1:] if not word.startswith("-") and not word.isdigit()]
    recursive = "grep" in program(words) and any(re.fullmatch(r"-\w*[rR]\w*|--recursive", word) for word in words)
    return before is not None and not recursive and (len(given) <= int(before) or "-" in words)


def restrains(name: str) -> bool:
    """Whether an option or argument holds a call back, so that leaving it out is no repair."""
    return bool(re.search(shape("restraints"), name.lstrip("-").lower().replace("_", "-"))) or name in {"-n", "-i"}


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
    return len(off) <= 1 and all(_misspelled(*pair) and not _opposite(*pair) for pair in off)


def only_alike(wanted: str, names: Iterable[str]) -> str:
    """Return the one of these names that a word is, or is a misspelling of; empty if none is, or several are."""
    found = {name for name in names if alike(wanted, name)}
    return wanted if wanted in found else found.pop() if len(found) == 1 else ""


def _opposite(one: str, other: str) -> bool:
    """Whether two words differ in what turns one into another that is meant: `activate`, `deactivate`."""
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one[::-1], other[::-1], strict=False))))
    return {one[: len(one) - shared], other[: len(other) - shared]} <= {"", *listed("turning")}


def _misspelled(one: str, other: str) -> bool:
    if one.isdigit() or other.isdigit():
        return False
    shortest = min(len(one), len(other))
    if shortest >= SHORTEST_SWAPPED and _undoubled(one) == _undoubled(other):
        return True
    if sorted(one) == sorted(other) and shortest >= SHORTEST_SWAPPED:
        places = [place for place in range(shortest) if one[place] != other[place]]
        return len(places) == 2 and places[1] - places[0] == 1  # noqa: PLR2004  # neighbours that changed places
    most = 2 if shortest >= LONG else 1
    return shortest >= SHORTEST_MISSPELLED and _distance(one, other) <= most


def _undoubled(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", word)


def _distance(one: str, other: str) -> int:
    """Return how many letters must be added, left out or changed."""
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        before, row[0] = row[0], place
        for column, its in enumerate(other, 1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (letter != its))
    return row[-1]
