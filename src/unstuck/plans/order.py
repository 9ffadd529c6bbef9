"""Work out what the text's order means: what a checkpoint waits for, and which tasks may run side by side."""

from collections.abc import Callable, Sequence

from unstuck.plans.blocks import AnyBlock
from unstuck.plans.layout import Asked
from unstuck.plans.plan import is_cleanup

LARGEST_GROUP = 5


def dependencies(blocks: Sequence[AnyBlock], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Say what each task depends on: a checkpoint on every earlier task of its section, others on nothing.

    Only the tasks since the section's last checkpoint are named, and that checkpoint, which depends on those before
    it: it comes to the same, and a plan of many checkpoints stays linear.
    """
    found: list[tuple[str, ...]] = [()] * len(blocks)
    if not any(block.is_checkpoint for block in blocks):
        return found
    waiting: dict[str, None] = {}
    section = 0
    for at, (block, name) in enumerate(zip(blocks, names, strict=True)):
        if block.section != section:
            waiting, section = {}, block.section
        if block.is_checkpoint:
            found[at] = tuple(earlier for earlier in waiting if earlier != name)
            # What cleans up runs even after a failure, so it does not stand for the steps before it.
            waiting = {**waiting, name: None} if is_cleanup(name, block.title) else {name: None}
        else:
            waiting[name] = None
    return found


def groups(blocks: Sequence[AnyBlock], read: Callable[[AnyBlock], Asked]) -> list[str | None]:
    """Name the group of each task: adjacent [P] tasks of a section that are no checkpoints and share no file."""
    found: list[str | None] = [None] * len(blocks)
    if not any(block.markers for block in blocks):
        return found
    members: list[int] = []
    claimed: set[str] = set()
    for at, block in enumerate(blocks):
        if block.fixes is not None:
            continue  # a fix task runs alone, between those that it does not separate
        parallel = "P" in block.markers and not block.is_checkpoint
        together = (
            parallel
            and members
            and len(members) < LARGEST_GROUP
            and block.section == blocks[members[-1]].section
            and claimed.isdisjoint(read(block).files)
        )
        if not together:
            members, claimed = [], set()
        if parallel:
            members.append(at)
            claimed.update(read(block).files)
            if len(members) > 1:
                found[members[0]] = found[at] = f"P{blocks[members[0]].line}"
    return found
