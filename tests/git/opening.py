"""A workspace on a scratch repository, put together as a run does."""

from pathlib import Path

from unstuck.git.repository import RepositoryChanges, find_repository, slots_folder
from unstuck.git.shared_objects import SharedObjects
from unstuck.git.slots import PlaceFiles
from unstuck.git.workspace import GitWorkspace, place_no_files


def workspace(
    root: Path,
    place: PlaceFiles = place_no_files,
    *,
    run: str = "r1",
    left_out: tuple[str, ...] = (),
    sign: bool = False,
) -> GitWorkspace:
    repository = find_repository(root)
    repository.exclude_unstuck_folder()
    made = GitWorkspace(
        run=run,
        identity=repository.identity(),
        slots=slots_folder(repository),
        shared=SharedObjects(repository),
        repository_changes=RepositoryChanges(repository, left_out),
        sign=sign,
        left_out=left_out,
        place=place,
    )
    made.open_branch(repository.head)
    return made
