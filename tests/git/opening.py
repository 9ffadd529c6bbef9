"""A workspace on a scratch repository, put together as a run does."""

from pathlib import Path

from unstuck.git.repository import Meanwhile, find, slots_folder
from unstuck.git.shared_objects import Lender
from unstuck.git.slots import Place
from unstuck.git.workspace import GitWorkspace, place_nothing


def workspace(
    root: Path, place: Place = place_nothing, *, run: str = "r1", left_out: tuple[str, ...] = (), sign: bool = False
) -> GitWorkspace:
    repository = find(root)
    repository.exclude_ours()
    made = GitWorkspace(
        run=run,
        identity=repository.identity(),
        slots=slots_folder(repository),
        lender=Lender(repository),
        meanwhile=Meanwhile(repository, left_out),
        sign=sign,
        left_out=left_out,
        place=place,
    )
    made.open_branch(repository.head)
    return made
