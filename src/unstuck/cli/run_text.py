"""Edge: Text for people: summaries, plans and stories. Colours are left to click, which drops them where nobody sees them."""

import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from unstuck.app.inspect import Used, View
from unstuck.cli import say
from unstuck.cli.terminal_text import (
    COMMAND,
    TITLE_CHARS,
    clock,
    columns,
    cut,
    cut_agent,
    cut_columns,
    fitted,
    plain,
    price,
    span,
    width,
)
from unstuck.compat.notices import event_notice
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import AttemptState
from unstuck.model.event import Classified, Entry, SessionStarted
from unstuck.model.failure import Kind
from unstuck.model.text import counted
from unstuck.reports.event_lines import event_line
from unstuck.reports.questions import adds_to_question, question
from unstuck.reports.summaries import STATUS_WORDS, Row, Summary, acceptance_note, lineage_text

if TYPE_CHECKING:
    from unstuck.app.services import Watcher

MARKS = {
    "complete": ("✔", "green"),
    "skipped": ("↷", "cyan"),
    "stuck": ("✘", "red"),
    "blocked": ("⊘", "yellow"),
    "interrupted": ("‖", "yellow"),
    "running": ("▶", "blue"),
    "verifying": ("⚙", "blue"),
    "waiting": ("⏳", "yellow"),
    "pending": ("·", "white"),
}
HELD_UP = ("blocked", "waiting")
MANY = 60
SHORTEST_TITLE = 12
ASKED = 5
SHOWN_CAUTIONS = 10
FACT_INDENT = len("  changed: ")
SAID_LINES, MOST_TOOLS, LAST_CALLS, MOST_FILES = 6, 8, 3, 12
WHY_CHARS = 120
AGENT_CHARS = 24
DETAIL_LINES, DETAIL_CHARS = 20, 300
QUESTION_CHARS = 600
GO_ON = "Then go on with: unstuck resume"
BOX_WIDTH = 69
NARROWEST = 40
STATUS_ROOM = len(" complete  ")
WITH_STATUS = re.compile(r"((?:Phase|Task) .*) \.\.\. (complete|FAILED|blocked)")
COMMAND_STEP = re.compile(r"\d+\. Run: ")
HANGS = re.compile(r"(?:\d+\. |[\w ]+: )?")
"""What the further lines of a text in the box stand behind: a number, or a name."""


def summary(result: Summary) -> str:
    """Tell what a run came to: every task in a line, then what needs a person, then what to type."""
    if not result.rows:
        return result.reason
    if result.halted:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        box = halt_summary(result.halted, width)
        around = (
            f"Run {result.run}: {_counts(result)}",
            *_whereabouts(result),
            *_meanwhile(result),
            *_what_next(result),
        )
        return f"{box}\n\n{fitted(around)}"
    few = len(result.rows) <= MANY
    shown = result.rows if few else [row for row in result.rows if row.status not in ("complete", "pending")][:MANY]
    lines = [f"Run {result.run}", "", *_rows(shown)]
    if len(shown) < len(result.rows):
        lines.append(f"  … and {len(result.rows) - len(shown)} more")
    lines += ["", _counts(result), *_whereabouts(result), *_meanwhile(result), *_what_next(result)]
    return fitted(lines)


def _whereabouts(result: Summary) -> list[str]:
    """Say where the work is, how it is taken, and what is worth knowing about it."""
    lines = [result.home] if result.home else []
    if result.landed:
        lines += ["", result.landed]
        for what, command in result.commands:
            beside = len(what) + len(command) + len("  : ") <= width()
            lines += [f"  {what}: {command}"] if beside else [f"  {what}:", f"{COMMAND}{command}"]
    if result.cautions:
        lines += ["", "Worth a look:", *(f"  {plain(one)}" for one in result.cautions[:SHOWN_CAUTIONS])]
        more = len(result.cautions) - SHOWN_CAUTIONS
        lines += [f"  and {more} more: see `unstuck status --json`"] if more > 0 else []
    return lines


def _meanwhile(result: Summary) -> list[str]:
    """Tell what changed in the user's repository while agents were at work; nobody guesses who did it."""
    if not result.meanwhile:
        return []
    more = [f"  … and {len(result.meanwhile) - MANY} more: unstuck log"] if len(result.meanwhile) > MANY else []
    return ["", "While agents were at work:", *(f"  {plain(note)}" for note in result.meanwhile[:MANY]), *more]


def run_line(result: Summary, state: RunState, *, live: bool) -> str:
    """Tell of a run in a line."""
    plan = state.started.about if state.started else ""
    how = "running now" if live else "finished" if result.exit_code == 0 else "to be resumed"
    day = datetime.fromtimestamp(state.created).astimezone().strftime("%Y-%m-%d %H:%M")
    return f"{result.run}  {day}  {cut(plan)}: {_counts(result)} ({how})"


def story(view: View, name: str, used: Used) -> str:
    """Tell everything that happened to one task, in order."""
    task, lineage = view.state.tasks[name], lineage_text(view.state, name)
    row = next(row for row in view.summary.rows if row.id == name)
    mark, colour = MARKS[row.status]
    head = f"{click.style(mark, fg=colour)} Task {name}: {task.task.title} ({', '.join(filter(None, (STATUS_WORDS[row.status], plain(acceptance_note(task)))))})"
    lines = [head, *([lineage] if lineage else []), *([plain(f"It {row.why}.")] if row.status in HELD_UP else []), ""]
    for one in view.entries:
        request, about = getattr(one.event, "request", None), getattr(one.event, "task", None)
        if (request.task if request is not None else about) == name:
            lines.append(f"  {clock(one.at)}  {one.seq:>5}  {event_line(one.event).removeprefix(f'{about}: ')}")
    for attempt in task.attempts:
        lines += ["", *_tale(attempt, used)]
    last = task.attempts[-1] if task.attempts else None
    said = last.outcome.words if last and last.outcome else ""
    detail = last.failure.detail if last and last.failure else ""
    if detail and detail.strip() not in said:  # what the agent said stands above
        shown = detail.splitlines()[-DETAIL_LINES:]
        lines += ["", "The end of the output:", *(f"  | {plain(line)}" for line in shown)]
    if task.question:
        asked = question(task)
        more = [f"    {line}" for line in _clean(task.question)] if adds_to_question(task.question, asked) else []
        commands = next_commands(name, checked=task.can_be_accepted)[1:]
        lines += ["", *_under("It waits for a person: ", asked), *more, *commands, GO_ON]
    return fitted(lines)


def _tale(attempt: AttemptState, used: Used) -> list[str]:
    """Tell what one attempt did: who worked, on which files, with which tools, and what was said last."""
    outcome, cost = attempt.outcome, price(attempt.cost_usd).strip()
    head = ", ".join(part for part in (f"Attempt {attempt.number}", attempt.agent, span(attempt.worked), cost) if part)
    files = attempt.verdict.files if attempt.verdict else ()
    asked = attempt.failure is not None and attempt.failure.kind is Kind.QUESTION
    tools, words = used[attempt.number], outcome.words.splitlines() if outcome else []
    calls = Counter(call.name for call in tools)
    counts = ", ".join(f"{name} {count} times" if count > 1 else name for name, count in calls.most_common(MOST_TOOLS))
    facts = [
        ("changed", "nothing" if attempt.changed_nothing else ", ".join(files[:MOST_FILES]) + (f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else "")),
        ("tools", counts),
        ("last", " · ".join(f"{call.name} {cut(call.input)}".strip() for call in tools[-LAST_CALLS:])),
        ("denied", "; ".join(outcome.denied) if outcome else ""),
        ("asks" if asked else "error", attempt.failure.says if attempt.failure else ""),
        ("said", "\n".join([line for line in words if line.strip() and not line.startswith("COST: ")][-SAID_LINES:])),
    ]  # fmt: skip
    return [plain(head), *(line for name, text in facts if text for line in _fact(name, text))]


def _fact(name: str, text: str) -> list[str]:
    first, *rest = [line for one in text.splitlines() for line in wrapped(plain(one), FACT_INDENT)] or [""]
    return [f"  {name + ':':<9}{first.lstrip()}", *rest]


def entry_line(entry: Entry) -> str:
    return f"{clock(entry.at)}  {entry.seq:>5}  {event_line(entry.event)}"


def tells(entry: Entry) -> bool:
    """Whether an event tells a person something that the ones around it do not."""
    passed = isinstance(entry.event, Classified) and entry.event.failure is None
    return not passed and not isinstance(entry.event, SessionStarted)


class Lines(AbstractContextManager["Lines"]):
    """How a run is shown while it works: one line per event that tells something; nothing at all, where that is wanted."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def __exit__(self, *_: object) -> None:
        """Leave what is printed."""

    @property
    def watcher(self) -> "Watcher":  # who only looks at a run loads none
        from unstuck.app.services import Watcher

        return Watcher() if self._quiet else Watcher(entry=self._entry)

    def say(self, text: str) -> None:
        """Print a message beside the progress."""
        if not self._quiet:
            say(text, err=True)

    def _entry(self, entry: Entry, state: RunState) -> None:

        if tells(entry):
            self.say(entry_line(entry))
        if block := event_notice(entry, state):
            self.say(f"\n{block}\n")


def _rows(rows: Sequence[Row]) -> list[str]:
    """Lay tasks out in columns; where the terminal is narrow, what is known of a task goes below its title."""
    told = [_facts(row) for row in rows]
    names = max((columns(row.id) for row in rows), default=0)
    indent = len("  ✔ ") + names + len("  ")
    room = max(width() - indent, SHORTEST_TITLE)
    titles = [cut(row.title, min(room, TITLE_CHARS)) for row in rows]
    longest = max((columns(title) for title in titles), default=0)
    beside = all(indent + longest + len("  ") + columns(text) <= width() for text in told)
    titles = titles if beside else [cut(row.title, room) for row in rows]
    lines: list[str] = []
    for row, title, text in zip(rows, titles, told, strict=True):
        mark, colour = MARKS.get(row.status, ("?", "white"))
        head = f"  {click.style(mark, fg=colour)} {row.id.ljust(names)}  {title}"
        if beside:
            lines.append(f"{head}{' ' * (longest - columns(title))}  {text}")
        else:
            lines += [head, *wrapped(text, indent)]
    return lines


def wrapped(text: str, indent: int) -> list[str]:
    """Break a text between its words so that it fits below something, and never inside one."""
    margin = " " * indent
    room = max(width(), indent + SHORTEST_TITLE)
    return textwrap.wrap(
        text, room, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


def _facts(row: Row) -> str:
    tries = counted(row.attempts, "attempt") if row.attempts else ""
    why = "" if row.status == "stuck" else cut(row.why, WHY_CHARS)  # a question has its own place below
    fixes = f"fixes {row.fixes}" if row.fixes else ""
    cost = price(row.cost_usd).strip()
    took = span(row.seconds) if row.seconds else ""
    parts = (STATUS_WORDS.get(row.status, row.status), tries, (row.commit or "")[:10], row.changes, cut_agent(row.agent, AGENT_CHARS), cost, took, fixes, why)  # fmt: skip
    return ", ".join(part for part in parts if part)


def _counts(result: Summary) -> str:
    parts = [(word, result.count(status)) for status, word in STATUS_WORDS.items()]
    told = ", ".join(f"{number} {word}" for word, number in parts if number)
    cost = f" for{price(result.cost_usd)}" if result.cost_usd is not None else ""
    where = f"{counted(len(result.rows), 'task')} in {span(result.seconds)}{cost}"
    return f"{told or 'nothing done'} of {where}. {result.reason}".rstrip()


def _what_next(result: Summary) -> list[str]:
    stuck = {row.id: row for row in result.rows if row.status == "stuck"}
    lines = ["", "What needs you:"] if stuck else []
    for cause in result.questions[:ASKED]:
        first = stuck[cause.tasks[0]]
        lines += _under(f"  {cut(', '.join(cause.tasks))}: ", cause.question)
        if not cause.outside:
            lines += (
                [f"    {line}" for line in _clean(first.why)] if adds_to_question(first.why, cause.question) else []
            )
            lines += next_commands(first.id, checked=cause.checked)
            lines += [f"    and so for        {cut(', '.join(cause.tasks[1:]))}"] if len(cause.tasks) > 1 else []
    if len(result.questions) > ASKED:
        left = [name for cause in result.questions[ASKED:] for name in cause.tasks]
        lines.append(f"  and {len(left)} more: {cut(', '.join(left))}")
    unfinished = result.exit_code == 0 and result.count("complete", "skipped") < len(result.rows)
    if (result.exit_code or unfinished) and (stuck or "unstuck resume" not in result.reason):
        lines += ["", GO_ON if stuck else "Go on with: unstuck resume"]
    return lines


def _under(head: str, text: str) -> list[str]:
    """Put the further lines of a question under its first."""
    first, *rest = _clean(text) or [""]
    return [f"{head}{first}", *(f"    {line}" for line in rest)]


def _clean(text: str) -> list[str]:
    return [plain(line, QUESTION_CHARS) for line in text.splitlines()]


def next_commands(name: str, *, checked: bool) -> list[str]:
    """Return what a person can type about a stuck task: its story first."""
    return [
        f"    read its story    unstuck show {name}",
        f"    answer            unstuck answer {name} 'TEXT'",
        f"    try again         unstuck retry {name} --hint 'TEXT'",
        *([f"    take it as it is  unstuck accept {name} --because 'TEXT'"] if checked else []),
        f"    go on without it  unstuck skip {name}",
    ]


def halt_summary(lines: Sequence[str], width: int | None) -> str:
    """Put the summary of a halt into a box of so many columns; None, and a command that would not fit, leave it plain."""
    command = max(columns(line) for line in lines if COMMAND_STEP.match(line)) + len("║    ║")
    if width is None or width < NARROWEST or command > width:
        return "\n".join(lines)
    inner = min(width, max(BOX_WIDTH, command)) - 2
    edge, (title, _, *body) = "═" * inner, lines
    rows = (title.center(inner), *_body(body, inner), "")
    framed = [f"║{row}{' ' * max(inner - columns(row), 0)}║" for row in rows]
    return "\n".join([f"╔{edge}╗", framed[0], f"╠{edge}╣", *framed[1:], f"╚{edge}╝"])


def _body(lines: Sequence[str], inner: int) -> Iterator[str]:
    """Yield the lines as they fit: titles between rules, a task with dots up to its status and apart from the one above."""
    rule, above = f"  {'─' * (inner - 6)}", ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and not below.strip("-"):
            yield from (rule, f"  {line}", rule, "")
        elif found := WITH_STATUS.fullmatch(line):
            title = cut_columns(found[1], inner - STATUS_ROOM - len("  ...  "))
            dots = inner - len("  ") - columns(title) - STATUS_ROOM - 1
            yield from [""] * bool(above.strip("-"))
            yield f"  {title} {'.' * max(dots, 3)} {found[2]}"
        elif not line or line.strip("-"):
            yield from _wrapped(line, inner)
        above = line


def _wrapped(text: str, inner: int) -> Iterator[str]:
    """Break a text at blanks so that every line fits, below its first word; a word that is too long is broken anywhere."""
    bare = text.lstrip()
    first = " " * (len("  ") + len(text) - len(bare))
    rest = first + " " * len(HANGS.match(bare)[0])  # type: ignore[index]  # it matches anything
    line, empty = first, True
    for word in bare.split(" "):
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
