"""The summary of a halted run: autobuild's box on a terminal, the same text without lines elsewhere."""

from collections.abc import Iterator, Sequence

from unstuck.cli.screen.columns import columns, cut_columns
from unstuck.tell import Halted, Line

TITLE = "UNSTUCK HALTED"
SEED_WIDTH = 69
NARROWEST = 40
STATUS_ROOM = len(" complete  ")


def halt_summary(halted: Halted, width: int | None) -> str:
    """Lay the summary out for a terminal of so many columns; None, and a command that would not fit, make it plain."""
    if width is None or width < NARROWEST or columns(_resume(halted)) + len("║  2. ") + len("  ║") > width:
        return "\n".join(_plain(halted))
    wanted = max(SEED_WIDTH, columns(_resume(halted)) + len("║  2. ") + len("  ║"))
    inner = min(width, wanted) - 2
    edge = "═" * inner
    lines = [f"╔{edge}╗", _row(TITLE.center(inner), inner), f"╠{edge}╣"]
    lines += [_row(line, inner) for line in _body(halted, inner)]
    return "\n".join([*lines, f"╚{edge}╝"])


def _body(halted: Halted, inner: int) -> Iterator[str]:
    yield ""
    yield from _wrapped(f"Reason: {halted.reason}", inner, "  ", "          ")
    for title, lines in _sections(halted):
        rule = f"  {'─' * (inner - 6)}"
        yield from ("", rule, f"  {title}", rule, "")
        for place, line in enumerate(lines):
            if isinstance(line, str):
                yield from _wrapped(line, inner, "  ", "     ")
                continue
            if place and line.name:
                yield ""
            yield from _phase(halted, line, inner)
    yield ""


def _phase(halted: Halted, line: Line, inner: int) -> Iterator[str]:
    """Yield a task's line with dots up to its status, and its facts below."""
    if line.name:
        status = _status(halted, line)
        title = cut_columns(
            f"{halted.noun.capitalize()} {line.name}: {line.title}", inner - STATUS_ROOM - len("  ...  ")
        )
        dots = inner - len("  ") - columns(title) - STATUS_ROOM - 1
        yield f"  {title} {'.' * max(dots, 3)} {status}"
    for name, text in line.facts:
        indent = "    " if line.name else "  "
        yield from _wrapped(f"{name}: {text}", inner, indent, indent + " " * (len(name) + 2))


def _plain(halted: Halted) -> Iterator[str]:
    yield from (TITLE, "=" * len(TITLE), "", f"Reason: {halted.reason}")
    for title, lines in _sections(halted):
        yield from ("", title, "-" * len(title))
        for line in lines:
            if isinstance(line, str):
                yield line
                continue
            if line.name:
                yield f"{halted.noun.capitalize()} {line.name}: {line.title} ... {_status(halted, line)}"
            yield from (f"{'  ' if line.name else ''}{name}: {text}" for name, text in line.facts)


def _sections(halted: Halted) -> Iterator[tuple[str, Sequence[Line | str]]]:
    noun = halted.noun.upper()
    yield f"COMPLETED {noun}S", halted.completed or ("none",)
    yield f"FAILED {noun}{'S'[: len(halted.failed) > 1]}", halted.failed
    yield f"BLOCKED {noun}S", halted.blocked or ("none",)
    yield "STATE PRESERVED", (Line(name="", title="", facts=halted.preserved),)
    steps = [f"{number}. {step}" for number, step in enumerate(halted.steps, 1)]
    steps += [f"{len(steps) + 1}. {_resume(halted)}", "", "To start fresh: Add --fresh flag"]
    yield "RESUME INSTRUCTIONS", steps


def _resume(halted: Halted) -> str:
    return f"Run: {halted.command}"


def _status(halted: Halted, line: Line) -> str:
    return "FAILED" if line in halted.failed else "blocked" if line in halted.blocked else "complete"


def _wrapped(text: str, inner: int, first: str, rest: str) -> Iterator[str]:
    """Break a text at blanks so that every line fits; a word that is too long by itself is broken anywhere."""
    line, empty = first, True
    for word in text.split(" "):
        piece = word
        while piece:
            gap = "" if empty else " "
            room = inner - columns(line) - len(gap) - 2
            if columns(piece) <= room:
                line, empty, piece = f"{line}{gap}{piece}", False, ""
            elif not empty:
                yield line
                line, empty = rest, True
            else:
                head = _head(piece, max(room, 1))
                yield f"{line}{head}"
                line, piece = rest, piece[len(head) :]
    yield line if not empty else ""


def _head(text: str, room: int) -> str:
    """Return as much of the text as takes at most `room` columns, at least one character."""
    end = 1
    while end < len(text) and columns(text[: end + 1]) <= room:
        end += 1
    return text[:end]


def _row(text: str, inner: int) -> str:
    return f"║{text}{' ' * max(inner - columns(text), 0)}║"
