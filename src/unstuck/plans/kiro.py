"""Read a Kiro plan: numbered tasks, at column 0 or nested, where a task with subtasks is done when they are.

- [ ] 2. Models
  - [x] 2.1 Interfaces
    - _Requirements: 1.2_
  - [ ]* 2.2 Unit tests (optional: Kiro leaves such tasks out, and so do we)
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from unstuck.plans import tasks_md
from unstuck.plans.blocks import Block, Scanner, read_head
from unstuck.plans.editor import Located, place
from unstuck.plans.fields import read_asked
from unstuck.plans.plan import Plan, Problem
from unstuck.tools import Runnable

FORMAT = "kiro"
_TASK = re.compile(r"^([ \t]*)- \[([ xX~-])\](\*?)[ \t]+(\d+(?:\.\d+)*)\.?(?=[ \t])([^\r\n]*)", re.MULTILINE)
_ENDS = re.compile(r"^(?:[^\s-]|-(?![ \t]))", re.MULTILINE)
_TITLE = re.compile(r"^# +([^\r\n]+)", re.MULTILINE)
_OPTIONAL = "OPTIONAL"


def looks_like(text: str) -> bool:
    """Tell whether the text is a plan as Kiro writes them, by what other plans do not have."""
    return "_Requirements:" in text and "**Verify**" not in text and re.search(r"(?m)^- \[.\] \d+\. ", text) is not None


def read(text: str, path: str, *, runnable: Runnable, known: Mapping[str, str] | None = None) -> Plan:  # noqa: ARG001  # ids are in the text
    """Read a whole plan."""
    if problems := tuple(tasks_md.not_text(text)):
        return Plan(path=path, format=FORMAT, tasks=(), problems=problems)
    text = tasks_md.printable(text)
    scanner = Scanner(text)
    blocks = list(_blocks(scanner))
    above = parents(blocks)
    own = [block for block in blocks if block.id not in above and _OPTIONAL not in block.markers]
    for block in own:
        block.asked = read_asked(scanner, block, runnable)
    title = _TITLE.search(text)
    return Plan(
        path=path,
        format=FORMAT,
        title=title[1].strip() if title else "",
        tasks=tuple(tasks_md.make_task(text, block) for block in own),
        concerns=tuple(_left_out(blocks)),
        problems=tuple(tasks_md.unapproved(own)),
    )


def locate(text: str, known: Mapping[str, str] | None = None) -> Located:  # noqa: ARG001  # ids are in the text
    """Find every task of a plan, those with subtasks included."""
    blocks = [] if any(tasks_md.not_text(text)) else list(_blocks(Scanner(tasks_md.printable(text))))
    return Located(text, place(blocks), parents(blocks))


def parents(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """Map every task with subtasks to those that must be done for it; fix tasks and optional ones are none of them.

    A task whose subtasks are all optional is none of these: nobody would do it for it.
    """
    names = {block.id for block in blocks}
    found: dict[str, list[str]] = {}
    for block in blocks:
        above = block.id.rpartition(".")[0]
        if above in names and block.fixes is None:
            found.setdefault(above, []).extend([] if _OPTIONAL in block.markers else [block.id])
    return {name: tuple(below) for name, below in found.items() if below}


def _blocks(scanner: Scanner) -> Iterator[Block]:
    """Find the tasks; what is code or a comment holds none."""
    flat = scanner.flat
    heads = list(_TASK.finditer(scanner.seen))
    for number, head in enumerate(heads):
        limit = heads[number + 1].start() if number + 1 < len(heads) else len(flat)
        ends = _ENDS.search(flat, head.end(), limit)
        last = head.start() + len(flat[head.start() : ends.start() if ends else limit].rstrip())
        block = Block(
            line=scanner.number(head.start()),
            start=head.start(),
            end=flat.find("\n", last) + 1 or len(flat),
            section=0,
            ticked=head[2] in "xX",
            box=head.start(2),
        )
        read_head(block, f"{head[4]} {head[5].strip()}")
        block.markers = (*block.markers, *([_OPTIONAL] if head[3] else []))
        yield block


def _left_out(blocks: Sequence[Block]) -> Iterator[Problem]:
    for block in blocks:
        if _OPTIONAL in block.markers and not block.ticked:
            yield Problem(
                message=f"Task {block.id} is optional and is left out.",
                line=block.line,
                hint="Remove the * behind its box to have it done.",
            )
