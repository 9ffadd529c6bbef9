"""Work out what the text's order means: what a checkpoint waits for, and which tasks may run side by side."""

from collections.abc import Iterator, Sequence

from unstuck.adapters.plans.blocks import Block

LARGEST_GROUP = 5


def dependencies(blocks: Sequence[Block], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield what each task depends on: a checkpoint on every earlier task of its section, others on nothing.

    Only the tasks since the section's last checkpoint are named, and that checkpoint, which depends on those before
    it: it comes to the same, and a plan of many checkpoints stays linear.
    """
    waiting: dict[str, None] = {}
    section = 0
    for block, name in zip(blocks, names, strict=True):
        if block.section != section:
            waiting, section = {}, block.section
        if block.is_checkpoint:
            yield tuple(earlier for earlier in waiting if earlier != name)
            waiting = {name: None}
        else:
            yield ()
            waiting[name] = None


def groups(blocks: Sequence[Block], files: Sequence[tuple[str, ...]]) -> list[str | None]:
    """Name the group of each task: adjacent [P] tasks of a section that are no checkpoints and share no file."""
    found: list[str | None] = [None] * len(blocks)
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
            and claimed.isdisjoint(files[at])
        )
        if not together:
            members, claimed = [], set()
        if parallel:
            members.append(at)
            claimed.update(files[at])
            if len(members) > 1:
                found[members[0]] = found[at] = f"P{blocks[members[0]].line}"
    return found
