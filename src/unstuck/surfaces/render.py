"""Text for people: summaries, plans and stories. Colours are left to click, which drops them where nobody sees them."""

from datetime import datetime

import click

from unstuck.core.event import Entry
from unstuck.core.narrate import sentence
from unstuck.core.plan import Plan, batches
from unstuck.core.report import Row, Summary
from unstuck.core.task_state import TaskState

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
    "blocked": "blocked",
    "stuck": "stuck",
    "skipped": "skipped",
    "interrupted": "interrupted",
}
MANY = 60
TITLE_CHARS = 56


def summary(result: Summary) -> str:
    """Tell what a run came to: every task in a line, then what needs a person, then what to type."""
    if not result.rows:
        return result.reason
    lines = [f"Run {result.run}", ""]
    shown = result.rows if len(result.rows) <= MANY else [row for row in result.rows if row.status != "complete"][:MANY]
    width = max((len(row.id) for row in shown), default=0)
    lines += [_row(row, width) for row in shown]
    if len(shown) < len(result.rows):
        lines.append(f"  … and {len(result.rows) - len(shown)} more")
    lines += ["", _counts(result)]
    if result.home:
        lines.append(result.home)
    lines += _ways_on(result)
    return "\n".join(lines)


def story(task: TaskState, entries: list[Entry]) -> str:
    """Tell everything that happened to one task, in order."""
    mark, colour = MARKS[task.status]
    head = f"{click.style(mark, fg=colour)} Task {task.task.id}: {task.task.title} ({task.status})"
    lines = [head, ""]
    lines += [f"  {clock(entry.at)}  {entry.seq:>5}  {_after_id(entry)}" for entry in entries]
    for attempt in task.attempts[-1:]:
        if attempt.failure is not None and attempt.failure.detail:
            lines += [
                "",
                "The end of the output:",
                *(f"  | {line}" for line in attempt.failure.detail.splitlines()[-20:]),
            ]
    if task.question:
        lines += ["", f"It waits for a person: {task.question}", *_for_stuck(task.task.id)]
    return "\n".join(lines)


def plan(document: Plan, checks: int) -> str:
    """Show a plan as it will be run: its tasks in batches, what checks them, and what looks odd."""
    tasks = {task.id: task for task in document.tasks}
    width = max((len(name) for name in tasks), default=0)
    lines = [
        f"{document.path} ({document.format}): {len(tasks)} tasks, {sum(task.done for task in tasks.values())} done already",
        "",
    ]
    for number, wave in enumerate(batches(document.tasks), 1):
        lines.append(f"Batch {number}")
        for name in wave:
            task = tasks[name]
            done = (
                "done"
                if task.done
                else f"{len(task.checks) + checks} checks"
                if task.checks or checks
                else "nothing checks it"
            )
            beside = "  side by side" if task.group else ""
            lines.append(f"  {name.ljust(width)}  {cut(task.title)}  [{done}]{beside}")
    if document.concerns:
        lines += ["", "Worth a look (none of this stops a run):"]
        lines += [f"  line {one.line}: {one.message} {one.hint}".rstrip() for one in document.concerns]
    return "\n".join(lines)


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


def cut(text: str) -> str:
    return text if len(text) <= TITLE_CHARS else text[: TITLE_CHARS - 1] + "…"


def _row(row: Row, width: int) -> str:
    mark, colour = MARKS.get(row.status, ("?", "white"))
    tries = f"{row.attempts} attempt{'s'[: row.attempts != 1]}" if row.attempts else ""
    facts = ", ".join(
        part for part in (WORDS.get(row.status, row.status), tries, (row.commit or "")[:10], row.why) if part
    )
    return f"  {click.style(mark, fg=colour)} {row.id.ljust(width)}  {cut(row.title).ljust(TITLE_CHARS)}  {facts}"


def _counts(result: Summary) -> str:
    parts = [(word, result.count(status)) for status, word in WORDS.items()]
    told = ", ".join(f"{number} {word}" for word, number in parts if number)
    return f"{told or 'nothing done'} of {len(result.rows)} tasks in {span(result.seconds)}. {result.reason}"


def _ways_on(result: Summary) -> list[str]:
    stuck = [row for row in result.rows if row.status == "stuck"]
    if stuck:
        return [
            "",
            "What needs you:",
            *(line for row in stuck[:5] for line in [f"  {row.id}: {row.why}", *_for_stuck(row.id)]),
            _GO_ON,
        ]
    if result.exit_code not in (0, None):
        return ["", _GO_ON]
    return []


_GO_ON = "Then go on with: unstuck resume"


def _for_stuck(name: str) -> list[str]:
    return [
        f"    read its story    unstuck show {name}",
        f"    try again         unstuck retry {name} --hint 'TEXT'",
        f"    go on without it  unstuck skip {name}",
    ]


def _after_id(entry: Entry) -> str:
    return sentence(entry.event).partition(": ")[2] or sentence(entry.event)
