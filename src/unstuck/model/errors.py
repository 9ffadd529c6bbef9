"""Define the exceptions of unstuck. Failures of agents are values, not exceptions."""

import errno

FULL = (errno.ENOSPC, errno.EDQUOT)
NO_ROOM = (*FULL, errno.EROFS)
"""The machine refuses to write: not a fault of the program."""


class UnstuckError(Exception):
    """An error that ends a command, with a hint about what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadUsage(UnstuckError):
    """The call, the plan or the configuration is wrong. Nothing was started."""

    exit_code = 64


class InvalidPlan(BadUsage):
    """The plan has problems. All of them are listed."""


class Unavailable(UnstuckError):
    """Something required is missing: git, an agent, a repository with a commit."""

    exit_code = 69


class Owned(Unavailable):
    """Another supervisor owns this repository's run."""


class OwnershipLost(UnstuckError):
    """Another supervisor took the run over. This one must not write any more."""


class JournalDamaged(UnstuckError):
    """The journal cannot be read. It was set aside under the name in the message."""


class CannotWrite(UnstuckError):
    """The disk is full or `.unstuck/` is read-only. Earlier records are intact."""


class GitFailed(UnstuckError):
    """A git command of unstuck failed."""


class CheckpointGone(UnstuckError):
    """A recorded commit or ref no longer exists."""


class RunConflict(UnstuckError):
    """The user's branch and the run's branch cannot be merged without a person."""

    exit_code = 3


def unwritable(path: object, error: OSError) -> CannotWrite:
    """Return the error for a file that cannot be written."""
    mend = "Make room" if error.errno in FULL else "Make it writable"
    return CannotWrite(
        f"{path} cannot be written: {error.strerror}.",
        hint=f"{mend}, then `unstuck resume`: everything recorded so far stands.",
    )


def with_extra(extra: str) -> str:
    """Return how to install an extra, for each installer."""
    each = " or ".join(
        f"`{command} '.[{extra}]'`" for command in ("pipx install --force", "uv tool install --force", "pip install")
    )
    return f"In the folder of unstuck, with what installed it: {each}."


class Interrupted(Exception):
    """The run was stopped in the middle of a stage. The stage is done again on resume."""
