"""Read a `tasks.md` plan, and tick its boxes by changing one byte each and nothing else.

A task is a line `- [ ] 1.2 [P] Title` at column 0. Its block is what follows, blank or indented, up to the next line
at column 0 that is not inside a code block, a here-document or a comment.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from unstuck.model.plan import Plan, Problem, Task, cleans_up
from unstuck.plans.blocks import KEY, Block, Located, Reading, almost_tasks, id_shape, name_tasks
from unstuck.plans.fields import code_spans, is_field, named_in, named_tasks, read_fields
from unstuck.plans.literal_text import Scanner
from unstuck.toolchain.command_roles import only_checks, role_of
from unstuck.toolchain.shell import Runnable, can_fail

FORMAT = "tasks.md"

LARGEST_GROUP = 5
_DAMAGED_SHARE = 10
_LOOKS_LIKE_ONE = re.compile(
    r"\n[ \t]*[-*+][ \t]+[*_]{0,3}([^\W\d_][\w _-]{1,24}?)[*_]{0,3}[ \t]*:[*_]{0,3}[ \t]*([^\n]{1,200})"
)
_REFERENCE = re.compile(r"(?:[\w.-]+/[\w.-]+)?#\d+|https?://\S+/(?:issues|pull)/\d+")
_KEY = re.compile(KEY)
_VERIFY = re.compile(r"^[^\w\n`]{0,8}verify\b[^\n`]{0,40}`[^\n]+", re.IGNORECASE | re.MULTILINE)
_OTHERS = re.compile(r"(?i:do|done when|requirements?)")
"""Fields that are read by nobody but the agent; their numbers are no tasks."""
_DAMAGED = re.compile("[\udc80-\udcff]")
"""How `decode` carries bytes that are not UTF-8."""


class Boxes(NamedTuple):
    """What a dialect finds in a text: all boxes, each under the name by which it is ticked, and those that are tasks."""

    every: Sequence[Block]
    tasks: Sequence[Block]
    title: str
    concerns: Iterable[Problem] = ()
    problems: Iterable[Problem] = ()
    parents: Mapping[str, tuple[str, ...]] = {}
    within: Mapping[str, tuple[str, ...]] = {}
    """These two as in `Located`."""


def read_tasks(text: str, found: Boxes) -> Iterable[Task]:
    """Make the values that stand for the tasks of a text, in no order but its own."""
    return (make_task(block, text[block.start : block.end]) for block in found.tasks)


class Dialect(NamedTuple):
    """How a Markdown plan of a kind is read."""

    format: str
    find: Callable[[str, Runnable | None, Mapping[str, str]], Boxes]
    """Without a test for commands no field is read: only the places are wanted."""
    tasks: Callable[[str, Boxes], Iterable[Task]] = read_tasks


def read_tasks_md(
    text: str, path: str, *, runnable: Runnable, known: Mapping[str, str] | None = None, dialect: Dialect | None = None
) -> Plan:
    """Read a whole plan; everything wrong with it is in its problems and concerns.

    `Task.commit` is None where the plan leaves the subject to us and "" where it asks for no commit.
    `runnable` says whether a word can begin a command: it decides which Verify texts without back-ticks are commands.
    `known` holds the ids of an earlier reading and their titles: a task without an id keeps the `t<n>` it had.
    """
    dialect = dialect or TASKS_MD
    if problems := tuple(not_text(text)):
        return Plan(path=path, format=dialect.format, tasks=(), problems=problems)
    shown = printable(text)
    found = dialect.find(shown, runnable, known or {})
    return Plan(
        path=path,
        format=dialect.format,
        title=found.title,
        tasks=tuple(dialect.tasks(shown, found)),
        concerns=tuple(sorted((*_damage(text), *found.concerns), key=lambda concern: concern.line or 0)),
        problems=tuple(sorted((*found.problems, *_unapproved(found.tasks)), key=lambda problem: problem.line or 0)),
    )


def locate(text: str, known: Mapping[str, str] | None = None, dialect: Dialect | None = None) -> Located:
    """Find every task of a plan."""
    readable = "" if any(not_text(text)) else printable(text)
    found = (dialect or TASKS_MD).find(readable, None, known or {})
    places = {block.id: block for block in reversed(found.every)}  # of two with one id, the first
    return Located(text, places, found.parents, found.within)


def find_tasks(text: str, runnable: Runnable | None, known: Mapping[str, str]) -> Boxes:
    """Find the tasks of a tasks.md."""
    reading = Reading(text)
    blocks = reading.blocks()
    name_tasks(blocks, known)
    read_all(reading.scanner, blocks, runnable)
    away = depend(blocks, away=lambda name: _KEY.fullmatch(name) is not None)
    told = chain(unverified(blocks, reading.flat), _overlooked(reading.flat, blocks), _outside(reading.scanner, blocks))
    problems, almost = almost_tasks(reading.scanner, blocks)
    remarks = chain(reading.concerns, almost, away, told, _unknown_originals(blocks))
    return Boxes(blocks, blocks, reading.title, remarks, [*reading.problems, *problems])


def read_all(scanner: Scanner, blocks: Iterable[Block], runnable: Runnable | None) -> None:
    """Read the fields of blocks, where they are wanted."""
    for block in blocks if runnable else ():
        read_fields(scanner, block, runnable or bool)


def depend(
    blocks: Sequence[Block],
    parents: Mapping[str, Sequence[str]] | None = None,
    *,
    away: Callable[[str], bool] = lambda _: True,
) -> list[Problem]:
    """Settle what tasks depend on, by their titles, too; on a task with subtasks means on all of them.

    `away`: whether a name that is no task of the plan may be something else, which is told and not waited for.
    """
    known, told = {block.id for block in blocks}, list[Problem]()
    for block in blocks:
        said = [name for name in named_in(block.title) if name in known]
        leaves = (leaf for name in (*block.depends, *said) for leaf in _leaves(name, parents or {}))
        names = [name for name in dict.fromkeys(leaves) if name != block.id or name in block.depends]
        gone = [name for name in names if name not in known and away(name)]
        block.depends = tuple(name for name in names if name not in gone)
        message = f"Task {block.id} depends on {', '.join(gone)}, which is no task of this plan: nothing waits for it."
        told += [block.problem(message, "Write it as a task, or see that it is done before.")] if gone else []
    return told


def _leaves(name: str, parents: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if name not in parents:
        yield name
    for below in parents.get(name, ()):
        yield from _leaves(below, parents)


def _ordered(text: str, found: Boxes) -> Iterator[Task]:
    """Make the tasks, with what they depend on and what they may run beside."""
    made, blocks = tuple(read_tasks(text, found)), found.tasks
    sections = [block.section for block in blocks]
    groups = grouped(made, sections, ["P" in task.markers and not task.only_checks for task in made])
    for task, block, first, group in zip(made, blocks, _dependencies(made, sections), groups, strict=True):
        yield replace(task, depends_on=tuple(dict.fromkeys((*first, *block.depends))), group=group)


TASKS_MD = Dialect(FORMAT, find_tasks, _ordered)


def make_task(block: Block, body: str, **more: Any) -> Task:
    """Make the value that stands for a task of the text."""
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
    """Decode so that encoding again gives the same bytes, whatever they are."""
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """Show undecodable bytes as U+FFFD, one for one, so that places stay the same."""
    return _DAMAGED.sub("\ufffd", text)


NOT_TEXT = "The file is not text"


def not_text(text: str) -> Iterator[Problem]:
    """Say why a text is none, if so."""
    nul = text.find("\0")
    if nul >= 0:
        hint = "Save it as UTF-8." if nul <= 1 else "Name a plan that is a text file."
        yield Problem(message=f"{NOT_TEXT}: it has NUL bytes.", line=text.count("\n", 0, nul) + 1, hint=hint)
    elif len(found := _DAMAGED.findall(text)) * _DAMAGED_SHARE > len(text):
        message = f"{NOT_TEXT}: {len(found)} of its bytes are not UTF-8."
        yield Problem(message=message, line=1, hint="Save it as UTF-8.")


def _damage(text: str) -> Iterator[Problem]:
    if found := _DAMAGED.search(text):
        yield Problem(
            message="Some bytes are not UTF-8; they are kept as they are and shown as \ufffd.",
            line=text.count("\n", 0, found.start()) + 1,
            hint="Save the file as UTF-8.",
        )


def _dependencies(tasks: Sequence[Task], sections: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Say what each task depends on: a checkpoint on every earlier task of its section, others on nothing.

    Only the tasks since the section's last checkpoint are named, and that checkpoint, which depends on those before
    it: it comes to the same, and a plan of many checkpoints stays linear.
    """
    waiting: dict[str, None] = {}
    before = 0
    for task, section in zip(tasks, sections, strict=True):
        waiting, before = waiting if section == before else {}, section
        yield tuple(earlier for earlier in waiting if earlier != task.id) if task.only_checks else ()
        if task.only_checks and not cleans_up(task):
            waiting = {}  # it stands for all before it; what cleans up runs even after a failure, so it does not
        waiting[task.id] = None


def grouped(tasks: Sequence[Task], places: Sequence[object], parallel: Sequence[bool]) -> list[str | None]:
    """Name the group of each task: adjacent ones of a place that may run side by side and share no file."""
    found: list[str | None] = [None] * len(tasks)
    group: list[int] = []
    for at, task in enumerate(tasks):
        if task.fixes is not None:
            continue  # a fix task runs alone, between those that it does not separate
        claimed = {file for member in group for file in tasks[member].files}
        fits = group and len(group) < LARGEST_GROUP and places[at] == places[group[-1]]
        if not (parallel[at] and fits and claimed.isdisjoint(task.files)):
            group = []
        if parallel[at]:
            group.append(at)
        if len(group) > 1:
            found[group[0]] = found[at] = f"P{tasks[group[0]].line}"
    return found


def _unapproved(blocks: Sequence[Block]) -> Iterator[Problem]:
    """Name the open tasks whose commands an agent proposed and no person has said yes to: none of them is run."""
    for block in blocks:
        if block.proposed and not block.ticked:
            message = f"The Verify of task {block.id} was {block.proposed}, and nobody has approved it."
            hint = "Look at it and say yes with `unstuck plan PLAN --repair`, or take the words in brackets out."
            yield block.problem(message, hint)


def unverified(blocks: Sequence[Block], flat: str = "") -> Iterator[Problem]:
    """Tell which tasks have a Verify without a command that could fail, or a command and no Verify, or are but a reference."""
    for block in blocks:
        if block.ticked or block.proposed or block.checks:
            continue  # what is proposed is a problem of its own
        named = [span for span in code_spans(flat[block.start : block.end]) if _is_checker(span)]
        if block.reason:
            hint = "Put a command that fails while the task is not done after **Verify**:, in back-ticks."
            yield block.problem(f"Task {block.id} has nothing to verify it: {block.reason}.", hint)
        elif named:
            message = f"Task {block.id} names `{named[0]}` and has no Verify, so it is not run."
            yield block.problem(
                message, "Write `- **Verify**: ` with it below the task, if it tells whether it is done."
            )
        if _REFERENCE.fullmatch(block.title.strip()):
            message = f"Task {block.id} only refers to {block.title.strip()}: nothing here says what is to be done."
            yield block.problem(message, "Write what it asks for behind the reference.")


def _is_checker(span: str) -> bool:
    """Whether a back-ticked part is a known check and nothing else; a lone word may be the name of anything."""
    return only_checks(span) and can_fail(span) and (" " in span or role_of(span) == "test")


def _overlooked(flat: str, blocks: Sequence[Block]) -> Iterator[Problem]:
    """Name fields that list tasks of the plan and are not read: a dependency that nobody keeps to is worse than none."""
    known, own = {block.id for block in blocks}, {id_shape(block.id) for block in blocks}
    for block in blocks:
        for found in _LOOKS_LIKE_ONE.finditer(flat, block.start, block.end):
            listed = () if is_field(flat, found.start()) or _OTHERS.fullmatch(found[1]) else named_tasks(found[2])
            if not known.isdisjoint(listed) and own.issuperset(map(id_shape, listed)):
                yield Problem(
                    message=f"Task {block.id}: the field {found[1]!r} names tasks and is not read.",
                    line=flat.count("\n", 0, found.start()) + 2,
                    hint=f"Write `- **Depends**: {', '.join(listed)}` if they must be done before.",
                )


def _outside(scanner: Scanner, blocks: Sequence[Block]) -> Iterator[Problem]:
    """Tell of a Verify that belongs to no task: it looks like a check, and is none."""
    ahead = deque(blocks)
    for found in _VERIFY.finditer(scanner.seen):
        while ahead and ahead[0].end <= found.start():
            ahead.popleft()
        if not ahead or found.start() < ahead[0].start:
            hint = "Write it below a task, two blanks further in, as `- **Verify**: ` with the command in back-ticks."
            line = scanner.number(found.start())
            yield Problem(message="This Verify belongs to no task and is not run.", line=line, hint=hint)


def _unknown_originals(blocks: Sequence[Block]) -> Iterator[Problem]:
    known = {None, *(block.id for block in blocks)}
    for block in blocks:
        if block.fixes not in known:
            message = f"Task {block.id} fixes task {block.fixes}, which is not in the plan."
            yield block.problem(message, "Correct the id after FIX.")
