"""Edge: Text for people: summaries, plans and stories. Colours are left to click, which drops them where nobody sees them."""

import re
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime

import click

from unstuck.cli.columns import columns, cut_columns
from unstuck.cli.halt_box import halt_summary
from unstuck.journal import Entry, TaskState
from unstuck.plans import Check, Plan, Problem, Task, execution
from unstuck.tell import Row, Summary, counted, one_line, sentence

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
WORDS = {
    "complete": "landed",
    "running": "running",
    "verifying": "checking",
    "waiting": "waiting",
    "stuck": "stuck",
    "blocked": "blocked",
    "skipped": "skipped",
    "interrupted": "interrupted",
    "pending": "pending",
}
MANY = 60
TITLE_CHARS = 56
SHORTEST_TITLE = 12
ASKED = 5
DETAIL_LINES, DETAIL_CHARS = 20, 300
TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def summary(result: Summary) -> str:
    """Tell what a run came to: every task in a line, then what needs a person, then what to type."""
    if not result.rows:
        return result.reason
    if result.halted is not None:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        box = halt_summary(result.halted, width)
        return "\n".join(
            [
                box,
                "",
                f"Run {result.run}: {_counts(result)}",
                *([result.home] if result.home else []),
                *_meanwhile(result),
                *_ways_on(result),
            ]
        )
    few = len(result.rows) <= MANY
    shown = result.rows if few else [row for row in result.rows if row.status not in ("complete", "pending")][:MANY]
    lines = [f"Run {result.run}", "", *_rows(shown)]
    if len(shown) < len(result.rows):
        lines.append(f"  … and {len(result.rows) - len(shown)} more")
    lines += ["", _counts(result)]
    if result.home:
        lines.append(result.home)
    lines += (*_meanwhile(result), *_ways_on(result))
    return "\n".join(lines)


def _meanwhile(result: Summary) -> list[str]:
    """Tell what changed in the user's repository while agents were at work; nobody guesses who did it."""
    if not result.meanwhile:
        return []
    more = [f"  … and {len(result.meanwhile) - MANY} more: unstuck log"] if len(result.meanwhile) > MANY else []
    return ["", "While agents were at work:", *(f"  {plain(note)}" for note in result.meanwhile[:MANY]), *more]


def story(task: TaskState, status: str, entries: list[Entry], lineage: str = "") -> str:
    """Tell everything that happened to one task, in order."""
    mark, colour = MARKS[status]
    head = f"{click.style(mark, fg=colour)} Task {task.task.id}: {task.task.title} ({status})"
    lines = [head, *([lineage] if lineage else []), ""]
    lines += [f"  {clock(entry.at)}  {entry.seq:>5}  {_after_id(entry)}" for entry in entries]
    for attempt in task.attempts[-1:]:
        if attempt.failure is not None and attempt.failure.detail:
            lines += [
                "",
                "The end of the output:",
                *(f"  | {plain(line)}" for line in attempt.failure.detail.splitlines()[-DETAIL_LINES:]),
            ]
    if task.question:
        lines += ["", f"It waits for a person: {_indented(task.question)}", *_for_stuck(task.task.id), GO_ON]
    return "\n".join(lines)


def plan(document: Plan, gates: Sequence[Check]) -> str:
    """Show a plan as it will be run: its tasks in batches, what checks them, and what looks odd."""
    tasks = {task.id: task for task in document.tasks}
    width = max((columns(task.shown) for task in document.tasks), default=0)
    settled = sum(task.done or task.skipped for task in document.tasks)
    lines = [
        f"{document.path} ({document.format}): {counted(len(tasks), document.noun)}, {settled} done already",
        "",
    ]
    for number, batch in enumerate(execution(document), 1):
        lines.append(f"Batch {number}{', side by side' if batch.parallel and document.phased else ''}")
        for task in (tasks[name] for name in batch.tasks):
            beside = "  side by side" if task.group else f"  fixes {task.fixes}" if task.fixes else ""
            points = f"  {task.estimate} points" if task.estimate.isdigit() else ""
            lines.append(
                f"  {task.shown.ljust(width)}  {cut(task.title)}  [{_checked(task, len(gates))}]{points}{beside}"
            )
    lines += _commands(document, gates)
    if document.concerns:
        lines += ["", "Worth a look (none of this stops a run):"]
        lines += [f"  {concern(one)}" for one in document.concerns]
    return "\n".join(lines)


def _commands(document: Plan, gates: Sequence[Check]) -> list[str]:
    """List every command that a run will start by itself, agents aside."""
    after = [(check, "after every task") for check in gates]
    own = [(one, task.shown) for task in document.tasks if not task.done and not task.skipped for one in task.checks]
    lines = [f"  {plain(check.command)}  ({when})" for check, when in (*own, *after)]
    return ["", "Commands that will be run:", *lines] if lines else []


def concern(one: Problem) -> str:
    """Tell something that is worth a look, in one line."""
    return plain(f"{f'line {one.line}: ' if one.line else ''}{one.message} {one.hint}".rstrip())


def _checked(task: Task, checks: int) -> str:
    if task.done or task.skipped:
        return "done" if task.done else "skipped"
    return counted(len(task.checks) + checks, "check") if task.checks or checks else "nothing checks it"


def entry_line(entry: Entry) -> str:
    return f"{clock(entry.at)}  {entry.seq:>5}  {sentence(entry.event)}"


def clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def span(seconds: float) -> str:
    """Say how long something took: 7 s, 3:05, 2:14:09."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}" if minutes else f"{seconds:.1f} s" if seconds < 10 else f"{rest} s"  # noqa: PLR2004  # one decimal where it tells something


def cut(text: str, limit: int = TITLE_CHARS) -> str:
    """Fold text into one line that takes at most `limit` columns of a terminal."""
    return cut_columns(one_line(TERMINAL_CODES.sub("", text), limit), limit)


def plain(line: str) -> str:
    """Return a line of a program's output without what would steer a terminal; its indentation stays."""
    clean = TERMINAL_CODES.sub("", line).expandtabs()
    return "".join(char for char in clean if char.isprintable())[:DETAIL_CHARS]


def _rows(rows: Sequence[Row]) -> list[str]:
    """Lay tasks out in columns; titles give way where the terminal is narrow."""
    told = [_facts(row) for row in rows]
    names = max((columns(row.id) for row in rows), default=0)
    facts = max((columns(text) for text in told), default=0)
    room = max(_width() - len("  ✔ ") - names - facts - 2 * len("  "), SHORTEST_TITLE)
    titles = [cut(row.title, min(room, TITLE_CHARS)) for row in rows]
    longest = max((columns(title) for title in titles), default=0)
    lines: list[str] = []
    for row, title, text in zip(rows, titles, told, strict=True):
        mark, colour = MARKS.get(row.status, ("?", "white"))
        gap = " " * (longest - columns(title))
        lines.append(f"  {click.style(mark, fg=colour)} {row.id.ljust(names)}  {title}{gap}  {text}")
    return lines


def _facts(row: Row) -> str:
    tries = counted(row.attempts, "attempt") if row.attempts else ""
    why = "" if row.status == "stuck" else cut(row.why)  # a question has its own place below
    fixes = f"fixes {row.fixes}" if row.fixes else ""
    parts = (WORDS.get(row.status, row.status), tries, (row.commit or "")[:10], fixes, why)
    return ", ".join(part for part in parts if part)


def _width() -> int:
    """Return the terminal's width; a file may be as wide as it likes."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 200


def _counts(result: Summary) -> str:
    parts = [(word, result.count(status)) for status, word in WORDS.items()]
    told = ", ".join(f"{number} {word}" for word, number in parts if number)
    cost = f" for ${result.cost_usd:.2f}" if result.cost_usd is not None else ""
    where = f"{counted(len(result.rows), 'task')} in {span(result.seconds)}{cost}"
    return f"{told or 'nothing done'} of {where}. {result.reason}".rstrip()


def _ways_on(result: Summary) -> list[str]:
    stuck = [row for row in result.rows if row.status == "stuck"]
    lines = ["", "What needs you:"] if stuck else []
    for row in stuck[:ASKED]:
        lines += [f"  {row.id}: {_indented(row.why)}", *_for_stuck(row.id)]
    if len(stuck) > ASKED:
        lines.append(f"  and {len(stuck) - ASKED} more: {cut(', '.join(row.id for row in stuck[ASKED:]))}")
    left = result.exit_code == 0 and result.count("complete", "skipped") < len(result.rows)
    if result.exit_code or left:
        lines += ["", GO_ON if stuck else "Go on with: unstuck resume"]
    return lines


def _indented(text: str) -> str:
    """Put the further lines of a question under its first."""
    return "\n    ".join(plain(line) for line in text.splitlines())


GO_ON = "Then go on with: unstuck resume"


def _for_stuck(name: str) -> list[str]:
    return [
        f"    read its story    unstuck show {name}",
        f"    try again         unstuck retry {name} --hint 'TEXT'",
        f"    take it as it is  unstuck accept {name} --because 'TEXT'",
        f"    go on without it  unstuck skip {name}",
    ]


def _after_id(entry: Entry) -> str:
    return sentence(entry.event).partition(": ")[2] or sentence(entry.event)
