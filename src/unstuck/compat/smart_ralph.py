"""The files of a smart-ralph spec folder: `.ralph-state.json` with the state of a run, `.progress.md` for people."""

import contextlib
import json
import os
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import SETTLED, TaskState
from unstuck.model.event import Settings
from unstuck.model.failure import Kind
from unstuck.model.text import one_line
from unstuck.plans.plan_file import PlanFile
from unstuck.policy.history import landed_commit, reported_error
from unstuck.policy.plan_changes import FINAL, PASSED, PlanRequest, history_line, read_request, safe_line
from unstuck.policy.profiles import Limits
from unstuck.process.atomic_files import change_file

STATE, PROGRESS = ".ralph-state.json", ".progress.md"
NOT_JSON = "State file is not valid JSON"
NAME_CHARS = 100
RECOVERY = "fix-tasks"
"""The profile for `recoveryMode`."""
HASH_CHARS = 7
TITLE_CHARS, LEARNING_CHARS = 120, 240
LIMIT_FIELDS = {
    "maxTaskIterations": ("attempts", 1),
    "maxFixTasksPerOriginal": ("fixes", 0),
    "maxFixTaskDepth": ("fix_depth", 0),
    "maxGlobalIterations": ("executions", 1),
    "maxModificationsPerTask": ("modifications", 0),
    "maxModificationDepth": ("modification_depth", 0),
}
"""The limits that a state file may set: our name and the smallest value that makes sense."""
COMPLETED, FIXES, LEARNINGS = "## Completed Tasks", "## Fix Task History", "## Learnings"
_HEADING = re.compile(r"#{1,2}(?:[ \t]|\r?$)")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_REMARK = re.compile(r"[ \t]+(?!- [0-9a-f]{6})\S")
SECTIONS = {
    COMPLETED: re.compile(r"- \[[xX]\] (\S+)"),
    FIXES: re.compile(r"- Task (\S+):"),
    LEARNINGS: re.compile(r"(?!)"),
}
"""The sections in their order, with the pattern of a line that names a task."""


class NotAState(ValueError):
    """Raised for a state file that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFolder:
    """One spec folder. A person and other programs may edit its files at any time; their edits are kept."""

    path: Path
    report: Callable[[str], None]
    """Called with a message about a file that had to be set aside."""

    def write(self, state: RunState, limits: Limits) -> None:
        """Bring both files up to date."""
        for file, change in self._changes(state, limits, self._object).items():
            change_file(self.path / file, change, create=True)

    def redone(self, contents: Mapping[str, bytes], state: RunState, limits: Limits) -> dict[str, bytes]:
        """Return the given contents of the files brought up to date. A file that cannot be read is left out."""
        done: dict[str, bytes] = {}
        for file, change in self._changes(state, limits, parse).items():
            with contextlib.suppress(NotAState):
                done |= {file: change(contents[file])} if file in contents else {}
        return done

    def _changes(
        self, state: RunState, limits: Limits, read: Callable[[bytes], dict[str, Any] | None]
    ) -> dict[str, Callable[[bytes], bytes]]:
        name = one_line(os.fsencode(self.path.resolve().name).decode("utf-8", "backslashreplace"), NAME_CHARS)

        def state_file(before: bytes) -> bytes:
            content = read(before) or first_content(name, limits, len(state.tasks))
            after = merged(content, state)
            return before if after == content and before.strip() else _encoded(after)

        def progress_file(before: bytes) -> bytes:
            text = before.decode("utf-8", "surrogateescape")
            return updated(text, progress(state), name).encode("utf-8", "surrogateescape")

        return {STATE: state_file, PROGRESS: progress_file}

    def _object(self, content: bytes) -> dict[str, Any] | None:
        """Return the object of the state file, or None. A file that cannot be read is first copied."""
        if not content.strip():
            return None
        try:
            return parse(content)
        except NotAState as error:
            path = self.path / STATE
            self.report(f"{error} ({path}). A copy is kept as {set_aside(path)}; the run goes on with its own facts.")
            return None


def set_aside(path: Path) -> str:
    """Copy a file that cannot be read and return the name of the copy.

    It is not moved, because a missing file after a crash means that the tasks are done again.
    """
    aside = path.with_name(f"{path.name}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}")
    shutil.copyfile(path, aside)
    return aside.name


def spec_folder(plan_file: PlanFile, report: Callable[[str], None]) -> SpecFolder | None:
    """Return the spec folder of a plan, or None for a plan without one."""
    return SpecFolder(path=plan_file.path.parent, report=report) if plan_file.spec_folder else None


def asked_by(plan_file: PlanFile) -> Settings:
    """Return the settings in the state file of a plan, or none if it cannot be read."""
    try:
        return settings(parse((plan_file.path.parent / STATE).read_bytes()) if plan_file.spec_folder else {})
    except (OSError, NotAState):
        return Settings(limits={})


def parse(content: bytes) -> dict[str, Any]:
    """Return the object of a state file, or raise NotAState."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotAState(f"{NOT_JSON}: {error}") from error
    if not isinstance(value, dict):
        raise NotAState(f"{NOT_JSON}: it holds no object")
    return value


def _encoded(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):  # a lone half is no UTF-8
        text = json.dumps(content, indent=2)
    return f"{text}\n".encode()


def settings(content: Mapping[str, Any]) -> Settings:
    """Return the settings in a state file. A value that makes no sense is ignored."""
    limits = {
        ours: content[theirs]
        for theirs, (ours, least) in LIMIT_FIELDS.items()
        if type(content.get(theirs)) is int and content[theirs] >= least
    }
    return Settings(
        recovery=content.get("recoveryMode") is True,
        awaits_approval=content.get("awaitingApproval") is True,
        limits=limits,
    )


def first_content(name: str, limits: Limits, tasks: int) -> dict[str, Any]:
    """Return the object for a spec folder that has none yet."""
    return {
        "source": "spec",
        "name": name,
        "phase": "execution",
        "taskIndex": 0,
        "totalTasks": tasks,
        "taskIteration": 1,
        "maxTaskIterations": limits.attempts,
        "globalIteration": 1,
        "maxGlobalIterations": limits.run_executions(tasks),
        "recoveryMode": False,
        "maxFixTasksPerOriginal": limits.fixes,
        "maxFixTaskDepth": limits.fix_depth,
        "fixTaskMap": {},
    }


def merged(before: Mapping[str, Any], state: RunState) -> dict[str, Any]:
    """Return the object brought up to date. Unknown fields keep their value and place."""
    content = dict(before)
    tasks = list(state.tasks.values())
    index = next((at for at, task in enumerate(tasks) if task.status not in SETTLED), len(tasks))
    current = tasks[index] if index < len(tasks) else None
    content |= {"phase": "execution", "taskIndex": index, "totalTasks": len(tasks)}
    if "taskIteration" in before:
        content["taskIteration"] = max(1, len(current.attempts) - current.epoch_from if current else 1)
    if "globalIteration" in before:
        content["globalIteration"] = max(1, state.executions)
    if state.started is not None and state.started.options.profile == RECOVERY:
        content["recoveryMode"] = True
    if state.may_continue and before.get("awaitingApproval") is True:
        content["awaitingApproval"] = False
    fixes = _fix_map(before.get("fixTaskMap"), state)
    if fixes or "fixTaskMap" in before:
        content["fixTaskMap"] = fixes
    changes = _modification_map(before.get("modificationMap"), state)
    if changes or "modificationMap" in before:
        content["modificationMap"] = changes
    return content


def _modification_map(before: object, state: RunState) -> dict[str, Any]:
    entries = dict(before) if isinstance(before, dict) else {}
    for name, task in state.tasks.items():
        if task.modifications:
            entries[name] = {"count": len(task.modifications), "modifications": list(_modifications(task))}
    return entries


def _modifications(task: TaskState) -> Iterator[dict[str, Any]]:
    """Yield an entry for each task that the agent had inserted into the plan."""
    for change in task.modifications:
        for new_id in change.ids:
            yield {"id": new_id, "type": change.request, "reason": reason_of_change(task, change.attempt)}


def reason_of_change(task: TaskState, attempt: int) -> str:
    """Return why the agent asked for a change in one of its attempts."""
    outcome = next((tried.outcome for tried in task.attempts if tried.number == attempt), None)
    request = read_request(outcome.words, task.task.id) if outcome else None
    return request.reason if isinstance(request, PlanRequest) else ""


def _fix_map(before: object, state: RunState) -> dict[str, Any]:
    """Return the map brought up to date. Unknown tasks and fields stay."""
    entries = dict(before) if isinstance(before, dict) else {}
    for name, task in state.tasks.items():
        if not task.fixes:
            continue
        entry = entries.get(name)
        old = dict(entry) if isinstance(entry, dict) else {}
        listed = old.get("fixTaskIds")
        ids = [*(listed if isinstance(listed, list) else []), *task.fixes]
        unique = list(dict.fromkeys(fix_id for fix_id in ids if isinstance(fix_id, str)))
        last = task.last_error or old.get("lastError", "")
        entries[name] = {**old, "attempts": len(unique), "fixTaskIds": unique, "lastError": last}
    return entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The lines of the progress file, by task."""

    completed: Mapping[str, str]
    open: frozenset[str]
    """Tasks that are not done. A line that lists one as completed is removed."""
    fixes: Mapping[str, str]
    learnings: tuple[str, ...]


def progress(state: RunState) -> Progress:
    """Return the lines in the order of events, so that they do not depend on the number of writes."""
    latest = sorted(state.tasks.items(), key=lambda item: item[1].last_seq)
    worked = {name: task for name, task in latest if task.attempts}
    learnings = sorted((at, line) for task in worked.values() for at, line in _learnings(task))
    return Progress(
        completed={name: _completed(task, state) for name, task in worked.items() if task.status == "complete"},
        open=frozenset(name for name, task in worked.items() if task.status != "complete"),
        fixes={
            name: history_line(name, task.fixes, final)
            for name, task in worked.items()
            if task.fixes and (final := final_of(state, name))
        },
        learnings=tuple(line for _, line in learnings),
    )


def final_of(state: RunState, name: str) -> str:
    """Return PASS or the limit that stopped the repair of a task, or an empty string while it goes on."""
    task = state.tasks[name]
    if task.status == "complete":
        return PASSED
    if task.status == "stuck":
        return FINAL.get(task.climbed[-1], "") if task.climbed else ""
    ended = [final_of(state, fix) for fix in task.waits_for if fix in state.tasks]
    return next((final for final in ended if final not in ("", PASSED)), "")


def _completed(task: TaskState, state: RunState) -> str:
    commit = landed_commit(state, task.task.id)
    tail = f" - {commit[:HASH_CHARS]}" if commit else ""
    return f"- [x] {task.task.id} {safe_line(task.task.title, TITLE_CHARS)}{tail}"


def _learnings(task: TaskState) -> Iterator[tuple[float, str]]:
    """Yield the start and the learning of each failed attempt."""
    for attempt in task.attempts:
        if attempt.failure is not None and attempt.failure.kind is not Kind.INTERRUPTED:
            error = safe_line(reported_error(attempt, task.task.id)[0], LEARNING_CHARS)
            yield (
                attempt.started,
                f"- Task {task.task.id}, attempt {attempt.number} failed ({attempt.failure.kind}): {error}",
            )


def updated(text: str, wanted: Progress, spec: str) -> str:
    """Return the text of the progress file with the wanted lines. Missing sections are added."""
    mark = "\r" if "\r\n" in text else ""  # lines are split at LF, so a CR stays with its line
    unended = mark if text and not text.endswith("\n") else ""
    lines = f"{text}{unended}".split("\n") if text.strip() else [f"# Progress: {spec}", ""]
    start, end = _section(lines, LEARNINGS)
    by_subject: dict[str, list[str]] = defaultdict(list)
    for line in lines[max(start, 0) : end]:
        by_subject[_subject(line)].append(line.rstrip())
    new = {
        learning: learning
        for learning in wanted.learnings
        if not any(_is_line_with_remark(line, learning) for line in by_subject[_subject(learning)])
    }
    for heading, section_lines in ((COMPLETED, wanted.completed), (FIXES, wanted.fixes), (LEARNINGS, new)):
        removed = wanted.open if heading == COMPLETED else frozenset()
        ended_lines = {name: f"{line}{mark}" for name, line in section_lines.items()}
        lines = _put(lines, heading, ended_lines, removed, mark)
    return "\n".join(lines).removesuffix(unended)


def _subject(learning: str) -> str:
    """Return the task and the attempt of a learning."""
    return learning.rstrip().partition(" failed (")[0]


def _put(lines: list[str], heading: str, wanted: Mapping[str, str], removed: frozenset[str], mark: str) -> list[str]:
    """Return the lines with those of a section replaced by task. New lines go to its end."""
    start, end = _section(lines, heading)
    if start < 0:
        return _begun(lines, heading, wanted, mark) if wanted else lines
    left = dict(wanted)
    kept: list[str] = []
    for line in lines[start + 1 : end]:
        match = SECTIONS[heading].match(line)
        name = match[1] if match else ""
        if name in left:
            new = left.pop(name)
            kept.append(line if _is_line_with_remark(line, new.rstrip()) else new)
        elif name not in removed:
            kept.append(line)
    blank = len(kept)
    while blank and not kept[blank - 1].strip():
        blank -= 1
    apart = [mark] if left and blank == len(kept) and end < len(lines) else []
    return [*lines[: start + 1], *kept[:blank], *left.values(), *apart, *kept[blank:], *lines[end:]]


def _begun(lines: list[str], heading: str, wanted: Mapping[str, str], mark: str) -> list[str]:
    """Return the lines with a new section, in the order of `SECTIONS`."""
    later = list(SECTIONS)[list(SECTIONS).index(heading) + 1 :]
    at = next((place for other in later if (place := _section(lines, other)[0]) >= 0), len(lines))
    above = lines[:at]
    if at == len(lines):
        while above and not above[-1].strip():
            above.pop()
    apart = [mark] if above and above[-1].strip() else []
    return [*above, *apart, f"{heading}{mark}", *wanted.values(), mark if at < len(lines) else "", *lines[at:]]


def _is_line_with_remark(line: str, wanted: str) -> bool:
    """Return whether a line is the wanted one, with or without a remark of the user behind it."""
    return line.rstrip() == wanted or (line.startswith(wanted) and _REMARK.match(line, len(wanted)) is not None)


def _section(lines: Sequence[str], heading: str) -> tuple[int, int]:
    """Return the first line of a section and the line behind it. The first is -1 if there is no section."""
    start = -1
    for at in _headings(lines):
        if start >= 0:
            return start, at
        if lines[at].rstrip("#: \t\r").casefold() == heading.casefold():
            start = at
    return start, len(lines)


def _headings(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines of headings outside of fenced code. A fence that is never closed counts as text."""
    closers: dict[str, list[int]] = defaultdict(list)
    for at in range(len(lines) - 1, -1, -1):
        if match := _FENCE.fullmatch(lines[at].rstrip()):
            closers[match[1]].append(at)
    inside = -1
    for at, line in enumerate(lines):
        if at <= inside:
            continue
        if match := _FENCE.match(line):
            ends = closers[match[1]]  # the next fence is the last item
            while ends and ends[-1] <= at:
                ends.pop()
            inside = ends[-1] if ends else inside
        elif _HEADING.match(line):
            yield at
