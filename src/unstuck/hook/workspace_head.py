"""The root of a workspace and its current commit, read without starting git."""

import os


def root_of(cwd: str) -> str:
    """Return the top of the repository that holds a folder, or the folder itself."""
    folder = cwd
    while not os.path.exists(f"{folder}/.git"):  # noqa: PTH110  # pathlib is not loaded on the cheap way
        above = os.path.dirname(folder)  # noqa: PTH120  # as above
        if above == folder:
            return cwd
        folder = above
    return folder


def head_of(cwd: str) -> str:
    """Return the commit that is checked out.

    It is read from the files of git, because starting git would take longer than the whole hook.
    """
    folder = root_of(cwd)
    if not os.path.exists(f"{folder}/.git"):  # noqa: PTH110  # as above
        return ""
    try:
        git = f"{folder}/.git"
        if os.path.isfile(git):  # noqa: PTH113  # as above
            git = os.path.join(folder, _line(git).removeprefix("gitdir:").strip())  # noqa: PTH118  # as above
        head = _line(f"{git}/HEAD")
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        common = os.path.join(git, _line(f"{git}/commondir")) if os.path.exists(f"{git}/commondir") else git  # noqa: PTH110, PTH118  # as above
        if os.path.exists(f"{common}/{name}"):  # noqa: PTH110  # as above
            return _line(f"{common}/{name}")
        with open(f"{common}/packed-refs", encoding="utf-8") as file:  # noqa: PTH123  # as above
            return next((line.split()[0] for line in file if line.rstrip().endswith(f" {name}")), "unborn")
    except OSError:
        return "unborn"


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  # as above
        return file.readline().strip()


CONFIG_FILES = ("unstuck.toml", "pyproject.toml")
SETTINGS = (b"[hook", b"unstuck.hook", b"allowed_folders", b"[checks", b"unstuck.checks")


def has_hook_settings(root: str) -> bool:
    """Return whether the configuration of the repository has settings for the hook."""
    for name in CONFIG_FILES:
        try:
            with open(f"{root}/{name}", "rb") as file:  # noqa: PTH123  # as above
                text = file.read()
        except OSError:
            continue
        if any(setting in text for setting in SETTINGS):
            return True
    return False
