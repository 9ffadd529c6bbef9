"""Edge: Look at the change itself: what it does to the checks, where it goes, what it gives away, and what was said of it."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module

from unstuck.agents import statement
from unstuck.journal import Remark, Severity
from unstuck.line import Bench
from unstuck.orders import Subject
from unstuck.plans import Task
from unstuck.tell import one_line
from unstuck.verify.change import EVIDENCE_CHARS, Change, Line, added_lines, found, is_declared, part_of, removed_lines

UNREADABLE = "The change could not be audited, so a person should look at it: {}"
_PATH = re.compile(r"(?<![\w./@:-])(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/(])")
_NO_PATH = re.compile(r"v?\d+(?:\.\w+)*|(?:e\.g|i\.e|etc)\b.*|.*\.(?:com|org|net|io)")
_CLAIMS = re.compile(
    r"\b(?:created|creates|added|adds|wrote|written|updated|modified|changed|edited|implemented|fixed|new file)\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"(?:^|/)(?:__init__\.py|[\w.-]*lock(?:\.\w+)?|go\.sum|\.unstuck/.*)$")
"""Files that tools write by themselves when another file changes."""


def load_ahead() -> None:
    """Load what an audit needs, which takes a tenth of a second: for whoever waits while the agents work."""
    import_module("unstuck.verify.audit")


def look_at(bench: Bench, subject: Subject, changes: Sequence[Change], red: Sequence[str] = ()) -> tuple[Remark, ...]:
    """Give everything that can be said about a change without running anything; `red`: tests that fail on the base."""
    fence = bench.config.verify.scope
    audited = _audited(subject, changes, red)
    remarks = [
        *audited,
        *(outside_scope(changes, subject.task.files, fence) if fence != "off" else ()),
        *(_unspoken(changes, subject.task, {one.path for one in audited}) if fence != "off" else ()),
        *_secrets(bench, changes),
        *_claims(bench, subject, changes),
    ]
    return tuple(dict.fromkeys(remarks))


def changed_tests(changes: Iterable[Change], roles: Sequence[str] = ("test",)) -> list[Change]:
    """Return the changes to files that play one of these parts."""
    return [change for change in changes if part_of(change.path) in roles]


def names_path(task: Task, path: str) -> bool:
    """Whether the task itself names the path, so that changing it is what it asks for."""
    return is_declared(path, task.files)


def _audited(subject: Subject, changes: Sequence[Change], red: Sequence[str]) -> tuple[Remark, ...]:
    if not changes:
        return ()
    from unstuck.verify.audit import audit  # noqa: PLC0415  # heavy: loaded when there is a change to judge

    try:
        return audit(changes, subject.task.files, red)
    except (ValueError, RecursionError, MemoryError, LookupError, TypeError, AttributeError) as error:
        # Nobody lands what nobody could read: a fault of ours becomes a question, not the end of the run.
        return (found("check-changed", says=UNREADABLE.format(one_line(repr(error), EVIDENCE_CHARS)), severity="ask"),)


def outside_scope(
    changes: Sequence[Change], declared: Sequence[str], severity: Severity = "warn"
) -> tuple[Remark, ...]:
    """Find files that were touched although the task does not name them; a task that names none has no fence."""
    return tuple(
        found("scope", change.path, says=f"{change.path} is not among the task's Files.", severity=severity)
        for change in changes
        if declared and not is_declared(change.path, declared) and not _FOLLOWS.search(change.path)
    )


def _unspoken(changes: Sequence[Change], task: Task, told: Collection[str]) -> Iterator[Remark]:
    """Tell once of what the checks are run by, where a task without Files does not speak of it and the reader found nothing."""
    text = f"{task.title}\n{task.body}".lower()
    for change in changed_tests(changes, ("settings", "commands", "support")) if not task.files else ():
        from unstuck.verify.audit import is_harmless  # noqa: PLC0415  # heavy: loaded when there is a change to judge

        name = change.path.rpartition("/")[2].lower()
        if change.old is not None and change.path not in told and name not in text and not is_harmless(change):
            now = next(iter((*added_lines(change), *removed_lines(change))), Line(1, ""))
            says = f"{change.path} was {'changed' if change.new is not None else 'deleted'}, and the task does not name it."
            yield found("scope", change.path, now.number, says, now.text.strip(), "warn")


def _secrets(bench: Bench, changes: Sequence[Change]) -> Iterator[Remark]:
    """Find what this machine keeps secret; what looks like a secret anywhere is the audit's."""
    for change in changes:
        if not change.new or not any(secret in change.new for secret in bench.redactor.secrets):
            continue
        before = set((change.old or "").splitlines())
        for number, line in enumerate(change.new.splitlines(), 1):
            if line not in before and any(secret in line for secret in bench.redactor.secrets):
                yield found("secret", change.path, number, "A secret of this machine stands in the change.")
                break


def _claims(bench: Bench, subject: Subject, changes: Sequence[Change]) -> Iterator[Remark]:
    """Hold what the agent says against what is there. Its prose is only told; its own result must be true."""
    result = statement(subject.said, subject.task.id).result if subject.said else None
    named = (*result.created, *result.modified) if result is not None and result.status == "complete" else ()
    if not named and not claimed_files(subject.said):
        return
    present = bench.workspace.files(subject.tree)
    for path in named:
        if path.removeprefix("./") not in present:
            yield found("unfinished-claim", path, says=f"The agent's result names {path}, but there is no such file.")
    gone = [change.path for change in changes if change.new is None]
    for path in missing_files(subject.said, present, gone):
        yield found(
            "claimed-file-missing", path, says=f"The agent says it worked on {path}, but there is no such file."
        )


def claimed_files(said: str) -> tuple[str, ...]:
    """Give the paths that a text claims to have made or changed, in the order of the text."""
    lines = (line for line in said.splitlines() if _CLAIMS.search(line))
    paths = (match.group().removeprefix("./") for line in lines for match in _PATH.finditer(line))
    return tuple(dict.fromkeys(path for path in paths if not _NO_PATH.fullmatch(path)))


def missing_files(said: str, present: Collection[str], gone: Collection[str] = ()) -> tuple[str, ...]:
    """Give the claimed files that the tree does not hold; `gone` are those that the change deleted."""
    there = {*present, *gone}
    names = {path.rpartition("/")[2] for path in there}
    return tuple(path for path in claimed_files(said) if path not in there and path.rpartition("/")[2] not in names)
