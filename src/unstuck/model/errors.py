"""What *we* can raise. The agent's failures are values; these are ours, each with a way on."""

import errno

FULL = (errno.ENOSPC, errno.EDQUOT)
NO_ROOM = (*FULL, errno.EROFS)
"""What a machine has against a write: no fault of ours, wherever we meet it."""


class UnstuckError(Exception):
    """Something we cannot go on with: what happened, and what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadUsage(UnstuckError):
    """The call, the plan or the configuration is wrong; nothing was started."""

    exit_code = 64


class InvalidPlan(BadUsage):
    """The plan has problems; all of them are listed."""


class Unavailable(UnstuckError):
    """Something required is missing: git, an agent, a repository with a commit."""

    exit_code = 69


class Owned(Unavailable):
    """Another supervisor owns this repository's run."""


class OwnershipLost(UnstuckError):
    """Our claim on the run was taken over; we must not write any more."""


class JournalDamaged(UnstuckError):
    """The journal cannot be read; it was set aside under the name in the message."""


class CannotWrite(UnstuckError):
    """The disk is full or `.unstuck/` is read-only; what was recorded before stands."""


class GitFailed(UnstuckError):
    """A git command of ours failed."""


class CheckpointGone(UnstuckError):
    """A commit or ref that we recorded no longer exists."""


class RunConflict(UnstuckError):
    """The user's branch and the run's branch cannot be merged without a person."""

    exit_code = 3


def unwritable(path: object, error: OSError) -> CannotWrite:
    """Say which file cannot be written, and what to do; a command without a run names itself as the way on."""
    mend = "Make room" if error.errno in FULL else "Make it writable"
    return CannotWrite(
        f"{path} cannot be written: {error.strerror}.",
        hint=f"{mend}, then `unstuck resume`: everything recorded so far stands.",
    )


def with_extra(extra: str) -> str:
    """Say how an extra comes into an unstuck that was installed from its folder, by whatever did that."""
    each = " or ".join(
        f"`{command} '.[{extra}]'`" for command in ("pipx install --force", "uv tool install --force", "pip install")
    )
    return f"In the folder of unstuck, with what installed it: {each}."
