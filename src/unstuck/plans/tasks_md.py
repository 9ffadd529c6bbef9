"""Read a `tasks.md` plan, and tick its boxes by changing one byte each and nothing else.

A task is a line `- [ ] 1.2 [P] Title` at column 0. Its block is what follows, blank or indented, up to the next line
at column 0 that is not inside a code block, a here-document or a comment.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

from unstuck.plans.blocks import AnyBlock, Reading, name_tasks
from unstuck.plans.editor import Located
from unstuck.plans.fields import read_asked
from unstuck.plans.layout import Asked
from unstuck.plans.order import dependencies, groups
from unstuck.plans.places import Places, place
from unstuck.plans.plan import Plan, Problem
from unstuck.plans.task_list import Read, TaskList
from unstuck.tools import Runnable

FORMAT = "tasks.md"

_SHOWN = 5
_DAMAGED_SHARE = 10
_DAMAGED = re.compile("[\udc80-\udcff]")
"""How `decode` carries bytes that are not UTF-8."""


def read(text: str, path: str, *, runnable: Runnable, known: Mapping[str, str] | None = None) -> Plan:
    """Read a whole plan; everything wrong with it is in its problems and concerns.

    `Task.commit` is None where the plan leaves the subject to us and "" where it asks for no commit.
    `runnable` says whether a word can begin a command: it decides which Verify texts without back-ticks are commands.
    `known` holds the ids of an earlier reading and their titles: a task without an id keeps the `t<n>` it had.
    """
    return read_located(text, path, runnable=runnable, known=known)[0]


def read_located(
    text: str, path: str, *, runnable: Runnable, known: Mapping[str, str] | None = None
) -> tuple[Plan, Places]:
    """Read a whole plan, and say where each task stands."""
    problems = list(not_text(text))
    if problems:
        return Plan(path=path, format=FORMAT, tasks=(), problems=tuple(problems)), Places({})
    concerns = list(_damage(text)) if _is_damaged(text) else []
    text = printable(text)
    reading = Reading(text)
    blocks = reading.blocks()
    names = name_tasks(blocks, known or {})
    asked = cache(partial(read_asked, reading.flat, runnable=runnable))
    tasks = TaskList(Read(text, blocks, names, asked, dependencies(blocks, names), groups(blocks, asked)))
    concerns += [*reading.concerns, *_unverified(blocks, names, asked), *_unknown_originals(blocks, names)]
    plan = Plan(
        path=path,
        format=FORMAT,
        title=reading.title,
        tasks=tasks,
        concerns=tuple(sorted(concerns, key=lambda concern: concern.line or 0)),
        problems=tuple(sorted(reading.problems, key=lambda problem: problem.line or 0)),
    )
    return plan, place(blocks, names)


def tick(content: bytes, changes: Mapping[str, bool], known: Mapping[str, str] | None = None) -> bytes:
    """Tick (True) or un-tick (False) tasks by id: one byte changes per task, and no other.

    A task that is not there is passed over. Damaged encoding anywhere in the file survives.
    """
    return locate(content, known).tick(changes).content


def locate(content: bytes, known: Mapping[str, str] | None = None) -> Located:
    """Find every task of a plan."""
    text = decode(content)
    blocks = [] if any(not_text(text)) else list(Reading(printable(text)).blocks())
    return Located(content, text, place(blocks, name_tasks(blocks, known or {})))


def decode(content: bytes) -> str:
    """Decode so that encoding again gives the same bytes, whatever they are."""
    return content.decode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """Show undecodable bytes as U+FFFD, one for one, so that places stay the same."""
    return _DAMAGED.sub("\ufffd", text) if _is_damaged(text) else text


def not_text(text: str) -> Iterator[Problem]:
    """Say why a text is none, if so."""
    nul = text.find("\0")
    if nul >= 0:
        hint = "Save it as UTF-8." if nul <= 1 else "Name a plan that is a text file."
        yield Problem(message="The file is not text: it has NUL bytes.", line=text.count("\n", 0, nul) + 1, hint=hint)
    elif _is_damaged(text) and len(found := _DAMAGED.findall(text)) * _DAMAGED_SHARE > len(text):
        message = f"The file is not text: {len(found)} of its bytes are not UTF-8."
        yield Problem(message=message, line=1, hint="Save it as UTF-8.")


def _is_damaged(text: str) -> bool:
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _damage(text: str) -> Iterator[Problem]:
    if found := _DAMAGED.search(text):
        yield Problem(
            message="Some bytes are not UTF-8; they are kept as they are and shown as \ufffd.",
            line=text.count("\n", 0, found.start()) + 1,
            hint="Save the file as UTF-8.",
        )


def _unverified(
    blocks: Sequence[AnyBlock], names: Sequence[str], read: Callable[[AnyBlock], Asked]
) -> Iterator[Problem]:
    """Tell which tasks have no check that could fail; those without a Verify field in one sentence."""
    hint = "Put a command that fails while the task is not done after **Verify**:, in back-ticks."
    silent: dict[str, int] = {}
    for block, name in zip(blocks, names, strict=True):
        if block.is_verified or block.ticked:
            continue
        asked = read(block)
        if asked.reason and not asked.checks:
            yield Problem(message=f"Task {name} has nothing to verify it: {asked.reason}.", line=block.line, hint=hint)
        elif not asked.checks:
            silent[name] = block.line
    if not silent:
        return
    first, line = next(iter(silent.items()))
    message = f"Task {first} has nothing to verify it: it has no **Verify**."
    if len(silent) > 1:
        shown = ", ".join(list(silent)[:_SHOWN])
        more = f" and {len(silent) - _SHOWN} more" if len(silent) > _SHOWN else ""
        message = f"{len(silent)} tasks have nothing to verify them, no **Verify**: {shown}{more}."
    yield Problem(message=message, line=line, hint=hint)


def _unknown_originals(blocks: Sequence[AnyBlock], names: Sequence[str]) -> Iterator[Problem]:
    fixes = [(block, name) for block, name in zip(blocks, names, strict=True) if block.fixes is not None]
    known = set(names) if fixes else set()
    for block, name in fixes:
        if block.fixes not in known:
            yield Problem(
                message=f"Task {name} fixes task {block.fixes}, which is not in the plan.",
                line=block.line,
                hint="Correct the id after FIX.",
            )
