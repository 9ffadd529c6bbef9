"""Read shell text without running it: its words and programs, and whether it can fail at all.

The one reader of command lines: what a plan calls a check, and what a verdict makes of it, is decided here.
"""

import re
from collections.abc import Callable

Runnable = Callable[[str], bool]
"""Whether a word can begin a command."""

_BUILTINS = (
    "! . : [ [[ { alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown"
    " echo enable eval exec exit export false fc fg for function getopts hash help if jobs kill let local logout mapfile"
    " popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test time times trap true"
    " type typeset ulimit umask unalias unset until wait while"
)
BUILTINS = frozenset(_BUILTINS.split())
"""Bash's builtins, and the keywords that can begin a command."""

QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\((?:[^()]|\([^()]*\))*\)|\\.", re.DOTALL)
ENDS = re.compile(r"\|\||&&|[;|&\n]")
_WHOLE = re.compile(rf"{QUOTED.pattern}|`[^`]*`", re.DOTALL)
_CUTS = re.compile(r"\|\||&&|[;|\n]|(?<!>)&(?!>)")
_TIMEOUT = r"timeout(?:\s+-\S+)*(?:\s+[\d.]+[smhd]?){1,2}\s+"
"""With the time after which it kills, where that stands before the other."""
WRAPPERS = re.compile(
    r"^(?:\w+=\S*\s+"
    r"|(?:env|sudo|doas|time|nice|nohup|exec|command(?!\s+-[vV])|builtin|stdbuf|xvfb-run|catchsegv|set|then|do|else|if|while|!)"
    r"(?:\s+-\S+)*\s+"
    rf"|{_TIMEOUT}"
    r"|(?:npx|bunx|uvx|pipx\s+run|pnpx|yarn\s+(?:run|dlx|exec)|pnpm\s+(?:run|exec|dlx)|npm\s+exec|bun\s+(?:x|run))"
    r"(?:\s+-\S+)*\s+"
    r"|(?:uv|poetry|pdm|rye|hatch|pipenv|pixi|conda)\s+run\s+(?:-\S+\s+)*"
    r"|(?:bundle|rbenv|opam|cs)\s+exec\s+(?:--\s+)?"
    r"|xargs(?:\s+-\S+)*\s+|busybox\s+|rtk\s+"
    r"|(?:\S*/)?python[\d.]*(?:\s+-[BEIOsSuqX]\S*)*\s+-m\s+)",
)

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s;&|\"'])*\s+", re.ASCII)
_BEFORE = re.compile(rf"(?:{_ASSIGNMENT.pattern}|env\s+(?=\w+=)|(?:time|nice)\s+|{_TIMEOUT})*", re.ASCII)
_WORD = re.compile(r"[^\s;&|<>()]+")


_NEVER_FAIL = frozenset({"echo", "printf", "true", ":", "sleep", "pwd", "date"})
_BLOCKS = re.compile(r"[(){}`]|\$\(|(?:^|[;&|\n]\s*)(?:if|for|while|until|case|function|trap|\[\[|!)\b|(?:^|\s)!\s")
"""A line with any of these is not taken apart: it is taken for a check."""
_STRICT = re.compile(r"(?:^|[;&\n]\s*)set\s+(?:-\w*e|-o\s+errexit)")
_GIVEN = re.compile(r"^\w+=\S*\s*")


def first_word(command: str) -> str:
    """Return the word that bash would look up first, past `(` and variable assignments; empty if there is none."""
    at = 0
    rest = command.lstrip(" \t(")
    while assignment := _ASSIGNMENT.match(rest, at):
        at = assignment.end()
    word = _WORD.match(rest, at)
    return word[0] if word else ""


def before_program(part: str) -> str:
    """Return what stands before the program of a simple command: variables that it sets, and a limit to its time."""
    found = _BEFORE.match(part)
    return found[0] if found else ""


def parts(command: str) -> tuple[str, ...]:
    """Return the simple commands of a line as they stand; what is quoted, and where output goes, is no end of one."""
    hidden: list[str] = []

    def hide(found: re.Match[str]) -> str:
        hidden.append(found[0])
        return f"\x00{len(hidden) - 1}\x00"

    cut = _CUTS.split(_WHOLE.sub(hide, command))
    shown = (re.sub(r"\x00(\d+)\x00", lambda found: hidden[int(found[1])], part).strip() for part in cut)
    return tuple(part for part in shown if part)


def words(part: str) -> list[str]:
    """Return the words of a simple command, past parentheses and the variables that it sets."""
    bare = part.lstrip(" \t(!{")
    while bare.endswith(")") and bare.count(")") > bare.count("("):
        bare = bare[:-1].rstrip()
    from shlex import split  # noqa: PLC0415  # a diagnosis needs no words

    try:
        found = split(bare)
    except ValueError:  # a quotation that does not end
        found = bare.split()
    return found[next((place for place, word in enumerate(found) if not _GIVEN.fullmatch(word)), len(found)) :]


def programs(command: str) -> tuple[str, ...]:
    """Return the simple commands of a line, each without what merely wraps it."""
    return tuple(found for found in map(unwrapped, parts(command[:4000])) if found)


def can_fail(command: str) -> bool:
    """Whether the line can end with another exit code than 0, as far as its text shows."""
    bare = re.sub(r"(?:^|\s)#.*$", "", QUOTED.sub(" '' ", command), flags=re.MULTILINE)
    if _BLOCKS.search(bare):
        return True
    lists = [part for part in re.split(r"[;\n]|(?<![&>])&(?![&>])", bare) if part.strip()]
    if not lists:
        return False
    return any(map(_list_can_fail, lists)) if _STRICT.search(bare) or is_script(command) else _list_can_fail(lists[-1])


def is_script(command: str) -> bool:
    """Whether it has several lines: such a check ends with the first that fails, as a CI's does."""
    return "\n" in command.strip()


def _list_can_fail(line: str) -> bool:
    """Fold `a && b || c` from the left, as the shell does."""
    first, *rest = re.split(r"(&&|\|\|)", line)
    possible = _pipeline_can_fail(first)
    for operator, part in zip(rest[::2], rest[1::2], strict=True):
        following = _pipeline_can_fail(part)
        possible = possible or following if operator == "&&" else possible and following
    return possible


def _pipeline_can_fail(pipeline: str) -> bool:
    last = pipeline.rpartition("|")[2].strip()
    while match := _GIVEN.match(last):
        last = last[match.end() :]
    words = last.split()
    if not words or words[0] in _NEVER_FAIL or words[0] == "set":
        return False
    return words[:2] != ["exit", "0"]


def unwrapped(part: str) -> str:
    """Return a simple command without what merely wraps it, its program without folders."""
    for _ in range(6):
        shorter = WRAPPERS.sub("", part.lstrip("({ "))
        if shorter == part:
            break
        part = shorter
    head, _, rest = part.partition(" ")
    return f"{head.rsplit('/', 1)[-1]} {rest}".strip()
