"""Run only some test files: find the runner in the checks that are there, and write the line that runs just these."""

import re
from collections.abc import Iterable, Sequence

from unstuck.tools import ENDS, QUOTED

_SCRIPTS = r"\.(?:[cm]?[jt]sx?)$"
_RUNNERS: tuple[tuple[str, str, str], ...] = (
    # (a command that shows the runner; what of it to keep, with the files behind; which files it takes)
    (r"^((?:[\w./-]*\s+run\s+(?:-\S+\s+)*)?(?:[\w./-]*python[\d.]*(?:\s+-(?!m\b)[A-Za-z]+)*\s+-m\s+)?[\w./-]*pytest)\b", r"\1 -q -p no:cacheprovider", r"\.py$"),
    (r"^((?:npx|pnpm exec|yarn|bunx)?\s*[\w./-]*vitest)\b", r"\1 run", _SCRIPTS),
    (r"^((?:npx|pnpm exec|yarn|bunx)?\s*[\w./-]*jest)\b", r"\1 --ci --runTestsByPath", _SCRIPTS),
    (r"^([\w./-]*node(?:\s+--[\w-]+(?:=\S+)?)*?\s+--test)\b", r"\1", _SCRIPTS),
)  # fmt: skip


def selecting(commands: Iterable[str], files: Sequence[str]) -> str | None:
    """Return a command that runs these test files and no others; None where no check shows how."""
    for command in commands:
        for part in _parts(command):
            for shape, kept, endings in _RUNNERS:
                found = re.match(shape, part)
                mine = [file for file in files if re.search(endings, file)]
                if found and mine:
                    return " ".join([found.expand(kept), *(_quoted(f"./{file}") for file in sorted(mine))])
    return None


def is_plain_run(command: str) -> bool:
    """Whether the line is one test run and nothing else, so that its exit code is the runner's own."""
    bare = QUOTED.sub("''", command).strip()
    return not ENDS.search(bare) and not bare.startswith("!") and any(re.match(shape, bare) for shape, _, _ in _RUNNERS)


def _parts(command: str) -> list[str]:
    """Return the simple commands of a line that begins where the checks begin; a changed folder is not followed."""
    parts = [part.strip() for part in ENDS.split(command)]
    return [] if any(part.startswith("cd ") for part in parts) else parts


def _quoted(word: str) -> str:
    """Quote for the shell: file names are foreign text."""
    return "'" + word.replace("'", "'\"'\"'") + "'"
