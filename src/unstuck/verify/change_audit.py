"""Edge: Look at the change itself: what it does to the checks, where it goes, what it gives away, and what was said of it."""

import re
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module

from unstuck.agents import claimed_files, missing_files, statement
from unstuck.journal import Remark, Severity
from unstuck.tell import one_line
from unstuck.verify import audit as reader
from unstuck.verify.change import EVIDENCE_CHARS, Change, Line, added_lines, found, is_declared, removed_lines
from unstuck.verify.exam import Exam

UNREADABLE = "The change could not be audited, so a person should look at it: {}"
_FOLLOWS = re.compile(r"(?:^|/)(?:__init__\.py|[\w.-]*lock(?:\.\w+)?|go\.sum|\.unstuck/.*)$")
"""Files that tools write by themselves when another file changes."""


def load_ahead() -> None:
    """Load what an audit needs, which takes a tenth of a second: for whoever waits while the agents work."""
    import_module("unstuck.verify.audit.auditing")


def look_at(exam: Exam, red: Sequence[str] = ()) -> list[Remark]:
    """Give everything that can be said about a change without running anything; `red`: tests that fail on the base."""
    fence = exam.kit.config.verify.scope
    remarks = [*_audited(exam, red)]
    if fence != "off":
        remarks += (
            *outside_scope(exam.changes, exam.task.files, fence),
            *_unspoken(exam, {one.path for one in remarks}),
        )
    return [*remarks, *_claims(exam)]


def _audited(exam: Exam, red: Sequence[str]) -> tuple[Remark, ...]:
    if not exam.changes:
        return ()
    try:
        return reader.audit(exam.changes, exam.task.files, red, exam.kit.redactor)
    except (ValueError, RecursionError, MemoryError, LookupError, TypeError, AttributeError) as error:
        # Nobody lands what nobody could read: a fault of ours becomes a question, not the end of the run.
        return (found("check-changed", says=UNREADABLE.format(one_line(repr(error), EVIDENCE_CHARS)), severity="ask"),)


def outside_scope(changes: Sequence[Change], declared: Sequence[str], severity: Severity = "warn") -> list[Remark]:
    """Find files that were touched although the task does not name them; a task that names none has no fence."""
    return [
        found("scope", change.path, says=f"{change.path} is not among the task's Files.", severity=severity)
        for change in changes
        if declared and not is_declared(change.path, declared) and not _FOLLOWS.search(change.path)
    ]


def _unspoken(exam: Exam, told: Collection[str]) -> Iterator[Remark]:
    """Tell once of what the checks are run by, where a task without Files does not speak of it and the reader found nothing."""
    text = f"{exam.task.title}\n{exam.task.body}".lower()
    for change in exam.playing("settings", "commands", "support") if not exam.task.files else ():
        name = change.path.rpartition("/")[2].lower()
        if change.old is not None and change.path not in told and name not in text and not reader.is_harmless(change):
            now = next(iter((*added_lines(change), *removed_lines(change))), Line(1, ""))
            says = f"{change.path} was {'changed' if change.new is not None else 'deleted'}, and the task does not name it."
            yield found("scope", change.path, now.number, says, now.text.strip(), "warn")


def _claims(exam: Exam) -> Iterator[Remark]:
    """Hold what the agent says against what is there. Its prose is only told; its own result must be true."""
    said = exam.subject.said
    result = statement(said, exam.task.id).result if said else None
    named = (*result.created, *result.modified) if result is not None and result.status == "complete" else ()
    if not named and not claimed_files(said):
        return
    present = exam.kit.workspace.files(exam.subject.tree)
    gone = [change.path for change in exam.changes if change.new is None]
    absent = {
        "unfinished-claim": [path for path in named if path.removeprefix("./") not in present],
        "claimed-file-missing": missing_files(said, present, gone),
    }
    for rule, paths in absent.items():
        yield from (found(rule, path, says=f"The agent names {path}, but there is no such file.") for path in paths)
