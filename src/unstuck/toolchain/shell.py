"""Read shell commands without running them.

Plans and verdicts read command lines only with these functions.
"""

import re
import shlex
from collections.abc import Callable

Runnable = Callable[[str], bool]
"""A test of whether a word can begin a command."""

_BUILTINS = (
    "! . : [ [[ { alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown"
    " echo enable eval exec exit export false fc fg for function getopts hash help if jobs kill let local logout mapfile"
    " popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test time times trap true"
    " type typeset ulimit umask unalias unset until wait while"
)
BUILTINS = frozenset(_BUILTINS.split())
"""Bash's builtins, and the keywords that can begin a command."""

MOST_CHARS = 4000
"""Of a longer command only the beginning is read."""
QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\((?:[^()]|\([^()]*\))*\)|\\.", re.DOTALL)
ENDS = re.compile(r"\|\||&&|[;|&\n]")
_WHOLE = re.compile(rf"{QUOTED.pattern}|`[^`]*`", re.DOTALL)
_CUTS = re.compile(r"\|\||&&|[;|\n]|(?<!>)&(?!>)")
_TIMEOUT = r"timeout(?:\s+-\S+)*(?:\s+[\d.]+[smhd]?){1,2}\s+"
"""With the kill time, where it stands before the time limit."""
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
"""A line with any of these is not split. It counts as a check that can fail."""
_STRICT = re.compile(r"(?:^|[;&\n]\s*)set\s+(?:-\w*e|-o\s+errexit)")
_ASSIGNED = re.compile(r"^\w+=\S*\s*")


def first_word(command: str) -> str:
    """Return the first program that bash would look up, or an empty string."""
    at = 0
    rest = command.lstrip(" \t(")
    while assignment := _ASSIGNMENT.match(rest, at):
        at = assignment.end()
    word = _WORD.match(rest, at)
    return word[0] if word else ""


def before_program(part: str) -> str:
    """Return the assignments and the time limit before the program of a simple command."""
    match = _BEFORE.match(part)
    return match[0] if match else ""


def parts(command: str) -> tuple[str, ...]:
    """Return the simple commands of a line. Quoted text and redirections do not end one."""
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(match[0])
        return f"\x00{len(hidden) - 1}\x00"

    cut = _CUTS.split(_WHOLE.sub(hide, command))
    restored = (re.sub(r"\x00(\d+)\x00", lambda match: hidden[int(match[1])], part).strip() for part in cut)
    return tuple(part for part in restored if part)


def words(part: str) -> list[str]:
    """Return the words of a simple command without parentheses and assignments."""
    bare = part.lstrip(" \t(!{")
    while bare.endswith(")") and bare.count(")") > bare.count("("):
        bare = bare[:-1].rstrip()
    try:
        all_words = shlex.split(bare)
    except ValueError:  # a quotation that does not end
        all_words = bare.split()
    first = next((index for index, word in enumerate(all_words) if not _ASSIGNED.fullmatch(word)), len(all_words))
    return all_words[first:]


def programs(command: str) -> tuple[str, ...]:
    """Return the simple commands of a line without their wrappers such as `env` and `npx`."""
    return tuple(part for part in map(unwrapped, parts(command[:MOST_CHARS])) if part)


def can_fail(command: str) -> bool:
    """Return whether the line can end with another exit code than 0, as far as its text shows."""
    bare = re.sub(r"(?:^|\s)#.*$", "", QUOTED.sub(" '' ", command), flags=re.MULTILINE)
    if _BLOCKS.search(bare):
        return True
    lists = [part for part in re.split(r"[;\n]|(?<![&>])&(?![&>])", bare) if part.strip()]
    if not lists:
        return False
    return any(map(_list_can_fail, lists)) if _STRICT.search(bare) or is_script(command) else _list_can_fail(lists[-1])


def is_script(command: str) -> bool:
    """Return whether a command has several lines. As in CI, the first failing line ends it."""
    return "\n" in command.strip()


def _list_can_fail(line: str) -> bool:
    """Evaluate `a && b || c` from the left, as the shell does."""
    first, *rest = re.split(r"(&&|\|\|)", line)
    possible = _pipeline_can_fail(first)
    for operator, part in zip(rest[::2], rest[1::2], strict=True):
        following = _pipeline_can_fail(part)
        possible = possible or following if operator == "&&" else possible and following
    return possible


def _pipeline_can_fail(pipeline: str) -> bool:
    last = pipeline.rpartition("|")[2].strip()
    while match := _ASSIGNED.match(last):
        last = last[match.end() :]
    words = last.split()
    if not words or words[0] in _NEVER_FAIL or words[0] == "set":
        return False
    return words[:2] != ["exit", "0"]


def unwrapped(part: str) -> str:
    """Return a simple command without its wrappers, its program without folders."""
    for _ in range(6):
        shorter = WRAPPERS.sub("", part.lstrip("({ "))
        if shorter == part:
            break
        part = shorter
    head, _, rest = part.partition(" ")
    return f"{head.rsplit('/', 1)[-1]} {rest}".strip()
