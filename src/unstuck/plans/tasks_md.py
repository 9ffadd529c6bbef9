"""Read `tasks.md` plans.

A task is a line `- [ ] 1.2 [P] Title` at column 0. Its block has all lines up to the next line at column 0
that is not inside a code block, a here-document or a comment.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from unstuck.model.plan import Plan, Problem, Task, cleans_up
from unstuck.plans.blocks import KEY, Block, Located, Reading, almost_tasks, id_shape, name_tasks
from unstuck.plans.fields import code_spans, dependencies_in_title, is_field, named_tasks, read_fields
from unstuck.plans.literal_text import Scanner
from unstuck.toolchain.command_roles import only_checks, role_of
from unstuck.toolchain.shell import Runnable, can_fail

FORMAT = "tasks.md"

LARGEST_GROUP = 5
_DAMAGED_SHARE = 10
_ANY_FIELD = re.compile(
    r"\n[ \t]*[-*+][ \t]+[*_]{0,3}([^\W\d_][\w _-]{1,24}?)[*_]{0,3}[ \t]*:[*_]{0,3}[ \t]*([^\n]{1,200})"
)
_REFERENCE = re.compile(r"(?:[\w.-]+/[\w.-]+)?#\d+|https?://\S+/(?:issues|pull)/\d+")
_KEY = re.compile(KEY)
_VERIFY = re.compile(r"^[^\w\n`]{0,8}verify\b[^\n`]{0,40}`[^\n]+", re.IGNORECASE | re.MULTILINE)
_FIELDS_FOR_AGENTS = re.compile(r"(?i:do|done when|requirements?)")
"""Fields that only the agent reads. Their numbers are no tasks."""
_DAMAGED = re.compile("[\udc80-\udcff]")
"""The characters that `decode` makes of bytes that are not UTF-8."""


class Boxes(NamedTuple):
    """The boxes in the text of a plan."""

    every: Sequence[Block]
    """All boxes that can be ticked. The id of each is the name by which it is ticked."""
    tasks: Sequence[Block]
    """The boxes that are tasks."""
    title: str
    concerns: Iterable[Problem] = ()
    problems: Iterable[Problem] = ()
    parents: Mapping[str, tuple[str, ...]] = {}
    within: Mapping[str, tuple[str, ...]] = {}
    """`parents` and `within` are those of `Located`."""


def read_tasks(text: str, boxes: Boxes) -> Iterable[Task]:
    """Return the tasks of a text without dependencies on other sections."""
    return (make_task(block, text[block.start : block.end]) for block in boxes.tasks)


class Dialect(NamedTuple):
    """The functions that read one kind of Markdown plan."""

    format: str
    find: Callable[[str, Runnable | None, Mapping[str, str]], Boxes]
    """Finds the boxes. Without a test for commands it reads no fields."""
    tasks: Callable[[str, Boxes], Iterable[Task]] = read_tasks


def read_tasks_md(
    text: str, path: str, *, runnable: Runnable, titles: Mapping[str, str] | None = None, dialect: Dialect | None = None
) -> Plan:
    """Read a whole plan. Everything wrong with it is in its problems and concerns.

    `Task.commit` is None if the plan names no subject, and "" if it asks for no commit.
    `runnable` tells whether a word is the name of a program, so that Verify texts without back-ticks can be commands.
    `titles` holds the titles of an earlier reading by their ids, so that tasks without ids keep their `t<n>`.
    """
    dialect = dialect or TASKS_MD
    if problems := tuple(not_text(text)):
        return Plan(path=path, format=dialect.format, tasks=(), problems=problems)
    readable = printable(text)
    boxes = dialect.find(readable, runnable, titles or {})
    return Plan(
        path=path,
        format=dialect.format,
        title=boxes.title,
        tasks=tuple(dialect.tasks(readable, boxes)),
        concerns=tuple(sorted((*_damage(text), *boxes.concerns), key=lambda concern: concern.line or 0)),
        problems=tuple(sorted((*boxes.problems, *_unapproved(boxes.tasks)), key=lambda problem: problem.line or 0)),
    )


def locate(text: str, titles: Mapping[str, str] | None = None, dialect: Dialect | None = None) -> Located:
    """Return the text with the block of each task. Of two tasks with one id the first counts."""
    readable = "" if any(not_text(text)) else printable(text)
    boxes = (dialect or TASKS_MD).find(readable, None, titles or {})
    places = {block.id: block for block in reversed(boxes.every)}
    return Located(text, places, boxes.parents, boxes.within)


def find_tasks(text: str, runnable: Runnable | None, titles: Mapping[str, str]) -> Boxes:
    """Return the tasks of a tasks.md."""
    reading = Reading(text)
    blocks = reading.blocks()
    name_tasks(blocks, titles)
    read_all_fields(reading.scanner, blocks, runnable)
    problems, almost = almost_tasks(reading.scanner, blocks)
    concerns = chain(
        reading.concerns,
        almost,
        resolve_dependencies(blocks, may_be_elsewhere=lambda name: _KEY.fullmatch(name) is not None),
        unverified(blocks, reading.flat),
        _unread_fields(reading.flat, blocks),
        _verify_outside_tasks(reading.scanner, blocks),
        _unknown_originals(blocks),
    )
    return Boxes(blocks, blocks, reading.title, concerns, [*reading.problems, *problems])


def read_all_fields(scanner: Scanner, blocks: Iterable[Block], runnable: Runnable | None) -> None:
    """Read the fields of all blocks. Without a test for commands nothing is read."""
    if runnable is not None:
        for block in blocks:
            read_fields(scanner, block, runnable)


def resolve_dependencies(
    blocks: Sequence[Block],
    parents: Mapping[str, Sequence[str]] | None = None,
    *,
    may_be_elsewhere: Callable[[str], bool] = lambda _: True,
) -> list[Problem]:
    """Set the dependencies of all tasks from their fields and titles, and return concerns.

    A dependency on a task with subtasks becomes one on each of them. `may_be_elsewhere` tells whether a name that is no
    task of the plan may be a task of another plan. Such a dependency is removed with a concern.
    """
    ids, concerns = {block.id for block in blocks}, list[Problem]()
    for block in blocks:
        in_title = [name for name in dependencies_in_title(block.title) if name in ids]
        leaves = (leaf for name in (*block.depends, *in_title) for leaf in _leaves(name, parents or {}))
        names = [name for name in dict.fromkeys(leaves) if name != block.id or name in block.depends]
        missing = [name for name in names if name not in ids and may_be_elsewhere(name)]
        block.depends = tuple(name for name in names if name not in missing)
        if missing:
            message = (
                f"Task {block.id} depends on {', '.join(missing)}, which is no task of this plan: nothing waits for it."
            )
            concerns.append(block.problem(message, "Write it as a task, or see that it is done before."))
    return concerns


def _leaves(name: str, parents: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if name not in parents:
        yield name
    for below in parents.get(name, ()):
        yield from _leaves(below, parents)


def _tasks_in_order(text: str, boxes: Boxes) -> Iterator[Task]:
    """Yield the tasks with their dependencies and groups."""
    tasks, blocks = tuple(read_tasks(text, boxes)), boxes.tasks
    sections = [block.section for block in blocks]
    groups = parallel_groups(tasks, sections, ["P" in task.markers and not task.only_checks for task in tasks])
    checked = _checked_by(tasks, sections)
    for task, block, earlier, group in zip(tasks, blocks, checked, groups, strict=True):
        yield replace(task, depends_on=tuple(dict.fromkeys((*earlier, *block.depends))), group=group)


TASKS_MD = Dialect(FORMAT, find_tasks, _tasks_in_order)


def make_task(block: Block, body: str, **more: Any) -> Task:
    """Return the task of a block."""
    return Task(
        id=block.id,
        title=block.title,
        line=block.line,
        body=body,
        checks=block.checks,
        files=block.files,
        markers=block.markers,
        fixes=block.fixes,
        commit=block.commit,
        agent=block.agent,
        depends_on=block.depends,
        done=block.ticked,
        **more,
    )


def decode(content: bytes) -> str:
    """Return the text of any bytes. `encode` gives the same bytes back."""
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """Return the text with U+FFFD for each undecodable byte. All offsets stay the same."""
    return _DAMAGED.sub("\ufffd", text)


NOT_TEXT = "The file is not text"


def not_text(text: str) -> Iterator[Problem]:
    """Yield a problem if the file is no text."""
    nul = text.find("\0")
    if nul >= 0:
        hint = "Save it as UTF-8." if nul <= 1 else "Name a plan that is a text file."
        yield Problem(message=f"{NOT_TEXT}: it has NUL bytes.", line=text.count("\n", 0, nul) + 1, hint=hint)
    elif (damaged := len(_DAMAGED.findall(text))) * _DAMAGED_SHARE > len(text):
        message = f"{NOT_TEXT}: {damaged} of its bytes are not UTF-8."
        yield Problem(message=message, line=1, hint="Save it as UTF-8.")


def _damage(text: str) -> Iterator[Problem]:
    if damaged := _DAMAGED.search(text):
        yield Problem(
            message="Some bytes are not UTF-8; they are kept as they are and shown as \ufffd.",
            line=text.count("\n", 0, damaged.start()) + 1,
            hint="Save the file as UTF-8.",
        )


def _checked_by(tasks: Sequence[Task], sections: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Yield for each task the ids that it checks: a checkpoint checks the earlier tasks of its section.

    A checkpoint names the last checkpoint instead of the tasks before it, so that large plans stay linear.
    """
    waiting: dict[str, None] = {}
    before = 0
    for task, section in zip(tasks, sections, strict=True):
        waiting, before = waiting if section == before else {}, section
        yield tuple(earlier for earlier in waiting if earlier != task.id) if task.only_checks else ()
        if task.only_checks and not cleans_up(task):
            waiting = {}  # depending on it is enough. A task that cleans up runs even after a failure, so it is not
        waiting[task.id] = None


def parallel_groups(tasks: Sequence[Task], places: Sequence[object], parallel: Sequence[bool]) -> list[str | None]:
    """Return the name of each task's group. A group has adjacent parallel tasks of one place that share no file."""
    names: list[str | None] = [None] * len(tasks)
    group: list[int] = []
    for at, task in enumerate(tasks):
        if task.fixes is not None:
            continue  # a fix task runs alone and does not divide the group around it
        claimed = {file for member in group for file in tasks[member].files}
        fits = group and len(group) < LARGEST_GROUP and places[at] == places[group[-1]]
        if not (parallel[at] and fits and claimed.isdisjoint(task.files)):
            group = []
        if parallel[at]:
            group.append(at)
        if len(group) > 1:
            names[group[0]] = names[at] = f"P{tasks[group[0]].line}"
    return names


def _unapproved(blocks: Sequence[Block]) -> Iterator[Problem]:
    """Yield a problem for each open task whose commands the user has not approved."""
    for block in blocks:
        if block.proposed and not block.ticked:
            message = f"The Verify of task {block.id} was {block.proposed}, and nobody has approved it."
            hint = "Look at it and say yes with `unstuck plan PLAN --repair`, or take the words in brackets out."
            yield block.problem(message, hint)


def unverified(blocks: Sequence[Block], flat: str = "") -> Iterator[Problem]:
    """Yield a concern for each open task that has no check or whose text is only a reference."""
    for block in blocks:
        if block.ticked or block.proposed or block.checks:
            continue  # a proposed command is a problem of its own
        commands = [span for span in code_spans(flat[block.start : block.end]) if _is_check(span)]
        if block.reason:
            hint = "Put a command that fails while the task is not done after **Verify**:, in back-ticks."
            yield block.problem(f"Task {block.id} has nothing to verify it: {block.reason}.", hint)
        elif commands:
            message = f"Task {block.id} names `{commands[0]}` and has no Verify, so it is not run."
            yield block.problem(
                message, "Write `- **Verify**: ` with it below the task, if it tells whether it is done."
            )
        if _REFERENCE.fullmatch(block.title.strip()):
            message = f"Task {block.id} only refers to {block.title.strip()}: nothing here says what is to be done."
            yield block.problem(message, "Write what it asks for behind the reference.")


def _is_check(span: str) -> bool:
    """Return whether a back-ticked part is a known check. A single word counts only if it runs tests."""
    return only_checks(span) and can_fail(span) and (" " in span or role_of(span) == "test")


def _unread_fields(flat: str, blocks: Sequence[Block]) -> Iterator[Problem]:
    """Yield a concern for each unknown field that lists tasks of the plan: it may be meant as a dependency."""
    ids, shapes = {block.id for block in blocks}, {id_shape(block.id) for block in blocks}
    for block in blocks:
        for field in _ANY_FIELD.finditer(flat, block.start, block.end):
            if is_field(flat, field.start()) or _FIELDS_FOR_AGENTS.fullmatch(field[1]):
                continue
            names = named_tasks(field[2])
            if not ids.isdisjoint(names) and shapes.issuperset(map(id_shape, names)):
                yield Problem(
                    message=f"Task {block.id}: the field {field[1]!r} names tasks and is not read.",
                    line=flat.count("\n", 0, field.start()) + 2,
                    hint=f"Write `- **Depends**: {', '.join(names)}` if they must be done before.",
                )


def _verify_outside_tasks(scanner: Scanner, blocks: Sequence[Block]) -> Iterator[Problem]:
    """Yield a concern for each Verify that belongs to no task."""
    ahead = deque(blocks)
    for match in _VERIFY.finditer(scanner.seen):
        while ahead and ahead[0].end <= match.start():
            ahead.popleft()
        if not ahead or match.start() < ahead[0].start:
            hint = "Write it below a task, two blanks further in, as `- **Verify**: ` with the command in back-ticks."
            line = scanner.number(match.start())
            yield Problem(message="This Verify belongs to no task and is not run.", line=line, hint=hint)


def _unknown_originals(blocks: Sequence[Block]) -> Iterator[Problem]:
    """Yield a concern for each fix task of a task that is not in the plan."""
    ids = {block.id for block in blocks}
    for block in blocks:
        if block.fixes is not None and block.fixes not in ids:
            message = f"Task {block.id} fixes task {block.fixes}, which is not in the plan."
            yield block.problem(message, "Correct the id after FIX.")
