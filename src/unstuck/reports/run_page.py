"""A run as a page of Markdown."""

import re
from collections.abc import Iterable, Iterator

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState
from unstuck.model.text import counted, one_line
from unstuck.model.verdict import CheckResult
from unstuck.reports.event_lines import action_text
from unstuck.reports.summaries import Summary, failed_attempts

TITLE_CHARS = 72
QUOTE_CHARS = 200
COMMAND_CHARS = 160
LEFT_STATUSES = ("stuck", "blocked", "pending", "interrupted", "waiting", "running", "verifying")


def pull_request(state: RunState, summary: Summary) -> tuple[str, str]:
    """Return the title and the body of a pull request for the landed tasks."""
    landed = [task for task in state.tasks.values() if task.commit is not None]
    about = state.started.title if state.started else ""
    title = landed[0].task.subject if len(landed) == 1 else about or f"{counted(len(landed), 'task')} of a plan"
    return one_line(title, TITLE_CHARS), "\n".join(_page_sections(state, summary)) + "\n"


def run_page(state: RunState, summary: Summary) -> str:
    """Return the whole page."""
    about = state.started.about if state.started else ""
    head = [f"# Run {summary.run}: {_prose(about)}", "", summary.reason, _prose(summary.home), ""]
    return "\n".join([*head, *_page_sections(state, summary)]) + "\n"


def _page_sections(state: RunState, summary: Summary) -> Iterator[str]:
    landed = [task for task in state.tasks.values() if task.commit is not None]
    parts = (
        ("What landed", _landed(landed)),
        ("How it was verified", _verified(landed)),
        ("What was recovered", _recovered(landed)),
        ("What is left", _left(summary)),
        ("Worth a look", [f"- {_prose(caution)}" for caution in summary.cautions]),
    )
    for heading, lines in parts:
        section = list(lines)
        if section:
            yield from (f"## {heading}", "", *section, "")
    cost = f", ${summary.cost_usd:.2f}" if summary.cost_usd is not None else ""
    tries = sum(len(task.attempts) for task in state.tasks.values())
    yield f"{counted(tries, 'attempt')}{cost}, run `{summary.run}` of `unstuck`: every claim was checked in a clean checkout."


def _landed(tasks: Iterable[TaskState]) -> Iterator[str]:
    rows = list(tasks)
    if rows:
        yield from ("| task | what | commit | files |", "|---|---|---|---|")
    for task in rows:
        changes = task.changes
        files = f"{len(changes.files)} (+{changes.plus} -{changes.minus})" if changes else ""
        yield f"| {task.task.shown} | {_prose(task.task.subject)} | {(task.commit or '')[:12]} | {files} |"


def _verified(tasks: Iterable[TaskState]) -> Iterator[str]:
    """Yield each command once, with its last result and the number of tasks."""
    by_command: dict[str, list[CheckResult]] = {}
    for task in tasks:
        verdict = task.verdict
        for result in verdict.results if verdict else ():
            by_command.setdefault(result.command, []).append(result)
        if task.accepted:
            yield f"- Task {task.task.shown} was taken as it is by a person: {_prose(task.accepted)}"
    for command, results in by_command.items():
        last = results[-1]
        counts = last.counts
        facts = [f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped" if counts else last.status]
        facts += [_prose(part) for part in (last.excused_because, last.not_meaningful_because) if part]
        facts += [f"after {len(results)} tasks"] if len(results) > 1 else []
        yield f"- {_code(command, COMMAND_CHARS)}: {'; '.join(facts)}"


def _recovered(tasks: Iterable[TaskState]) -> Iterator[str]:
    for task in tasks:
        for attempt, failure in failed_attempts(task):
            then = f"; decided to {_prose(action_text(attempt.decision.action))}" if attempt.decision else ""
            what = f"{failure.kind.value} {_code(failure.says, QUOTE_CHARS)}"
            yield f"- Task {task.task.shown}, attempt {attempt.number}: {what}{then}"


def _left(summary: Summary) -> Iterator[str]:
    questions = {name: cause.question for cause in summary.questions for name in cause.tasks}
    for row in summary.rows:
        if row.status in LEFT_STATUSES:
            reason = questions.get(row.id) or row.why
            yield f"- {row.id} {_prose(row.title)}: {row.status}{f', {_code(reason, QUOTE_CHARS)}' if reason else ''}"
        elif row.status == "skipped":
            yield f"- {row.id} {_prose(row.title)}: skipped by a person"


def _prose(text: str) -> str:
    """Return foreign text as one line without markup, mentions or references to issues."""
    marked = re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", one_line(text, QUOTE_CHARS))
    return re.sub(r"([@#])(?=\w)", "\\1\u200b", marked)


def _code(text: str, limit: int) -> str:
    """Return foreign text as inline code that it cannot end itself."""
    return f"`{one_line(text, limit).replace('`', chr(39)).replace('|', chr(0xA6))}`"
