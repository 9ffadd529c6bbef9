"""Judge shell text without running it: what its first word is, and whether it can fail at all."""

import os
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

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

_WORDS = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[<>]&|[^;&|\n"'\\])*"""
_HARMLESS = rf"[ \t]*(?:(?:echo|printf|true|:)(?=[\s;&|]|\Z){_WORDS}|exit[ \t]+0[ \t]*|\#[^\n]*)"
_ALWAYS_PASSES = re.compile(rf"{_HARMLESS}(?:[;&|\s](?:{_HARMLESS})?)*", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s;&|\"'])*\s+", re.ASCII)
_WORD = re.compile(r"[^\s;&|<>()]+")


def runnable_in(root: Path) -> Runnable:
    """Return the test for commands that run in `root`: a builtin, a program on PATH or a file of the repository."""

    @cache
    def runnable(word: str) -> bool:
        on_path = os.sep not in word and shutil.which(word) is not None
        return word in BUILTINS or on_path or os.path.isfile(root / word)  # noqa: PTH113  # Path.is_file raises on odd names

    return runnable


def first_word(command: str) -> str:
    """Return the word that bash would look up first, past `(` and variable assignments; empty if there is none."""
    at = 0
    rest = command.lstrip(" \t(")
    while assignment := _ASSIGNMENT.match(rest, at):
        at = assignment.end()
    word = _WORD.match(rest, at)
    return word[0] if word else ""


def always_passes(command: str) -> bool:
    """Tell whether the command is nothing but echo, printf, true, `:`, `exit 0` and comments."""
    return _ALWAYS_PASSES.fullmatch(command) is not None
