"""Edge: Look at the change itself: what it does to the checks, where it goes, what it gives away, and what was said of it."""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from unstuck.agents import statement
from unstuck.journal import Remark
from unstuck.line import Bench
from unstuck.orders import Subject
from unstuck.plans import Task
from unstuck.tell import one_line
from unstuck.verify.weighing import own

if TYPE_CHECKING:
    from unstuck.verify.audit import Change, Finding

EVIDENCE_CHARS = 120
UNREADABLE = "The change could not be audited, so a person should look at it: {}"


def load_ahead() -> None:
    """Load what an audit needs, which takes a tenth of a second: for whoever waits while the agents work."""
    import_module("unstuck.verify.audit")


def look_at(bench: Bench, subject: Subject, changes: "Sequence[Change]", red: Sequence[str] = ()) -> tuple[Remark, ...]:
    """Give everything that can be said about a change without running anything; `red`: tests that fail on the base."""
    remarks = [
        *_audited(subject, changes, red),
        *_outside(bench, subject, changes),
        *_secrets(bench, changes),
        *_claims(bench, subject, changes),
    ]
    return tuple(dict.fromkeys(remarks))


def changed_tests(changes: "Iterable[Change]", roles: Sequence[str] = ("test",)) -> "list[Change]":
    """Return the changes to files that play one of these parts."""
    from unstuck.verify.audit import part_of  # noqa: PLC0415  # heavy: loaded when there is a change to judge

    return [change for change in changes if part_of(change.path) in roles]


def names_path(task: Task, path: str) -> bool:
    """Whether the task itself names the path, so that changing it is what it asks for."""
    from unstuck.verify.audit import is_declared  # noqa: PLC0415  # as above

    return is_declared(path, task.files)


def _audited(subject: Subject, changes: "Sequence[Change]", red: Sequence[str]) -> Iterator[Remark]:
    if not changes:
        return
    from unstuck.verify.audit import audit  # noqa: PLC0415  # as above

    try:
        found = audit(changes, subject.task.files, red)
    except (ValueError, RecursionError, MemoryError, LookupError, TypeError, AttributeError) as error:
        # Nobody lands what nobody could read: a fault of ours becomes a question, not the end of the run.
        says = UNREADABLE.format(one_line(repr(error), EVIDENCE_CHARS))
        yield Remark(rule="check-changed", severity="ask", path="", line=1, says=says)
        return
    yield from map(_remark, found)


def _outside(bench: Bench, subject: Subject, changes: "Sequence[Change]") -> Iterator[Remark]:
    fence = bench.config.verify.scope
    if fence == "off" or not subject.task.files or not changes:
        return
    from unstuck.verify.scope import outside_scope  # noqa: PLC0415  # as above

    yield from map(_remark, outside_scope(changes, subject.task.files, fence))


def _secrets(bench: Bench, changes: "Sequence[Change]") -> Iterator[Remark]:
    """Find what this machine keeps secret; what looks like a secret anywhere is the audit's."""
    for change in changes:
        if not change.new or not any(secret in change.new for secret in bench.redactor.secrets):
            continue
        before = set((change.old or "").splitlines())
        for number, line in enumerate(change.new.splitlines(), 1):
            if line not in before and any(secret in line for secret in bench.redactor.secrets):
                yield own("secret", change.path, number)
                break


def _claims(bench: Bench, subject: Subject, changes: "Sequence[Change]") -> Iterator[Remark]:
    """Hold what the agent says against what is there. Its prose is only told; its own result must be true."""
    if not subject.said:
        return
    result = statement(subject.said, subject.task.id).result
    named = (*result.created, *result.modified) if result is not None and result.status == "complete" else ()
    from unstuck.verify.scope import claimed_files, missing_files  # noqa: PLC0415  # as above

    if not named and not claimed_files(subject.said):
        return
    present = bench.workspace.files(subject.tree)
    for path in named:
        if path.removeprefix("./") not in present:
            yield own("unfinished-claim", path, says=f"The agent's result names {path}, but there is no such file.")
    gone = [change.path for change in changes if change.new is None]
    for finding in missing_files(subject.said, set(present), gone):
        yield Remark(rule=finding.rule, severity="warn", path=finding.path, line=1, says=finding.says)


def _remark(finding: "Finding") -> Remark:
    shown = one_line(finding.evidence, EVIDENCE_CHARS) if finding.rule != "secret" else ""
    says = f"{finding.says} ({shown})" if shown and shown not in finding.says else finding.says
    return Remark(rule=finding.rule, severity=finding.severity, path=finding.path, line=finding.line, says=says)
