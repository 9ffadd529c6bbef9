"""Verify work by hand, and write verdicts down."""

from pathlib import Path

from unstuck.api.looking import look
from unstuck.compose import refuse_inside_an_agent
from unstuck.errors import BadUsage, CannotWrite
from unstuck.git import find
from unstuck.journal import Verdict
from unstuck.process import put
from unstuck.verify import Verification, Verified, sarif_text
from unstuck.verify import junit as junit_text


def verification(cwd: Path, *, cache: bool = True) -> Verification:
    """Open a verification by hand; a session of a run is refused, as its supervisor verifies it anyway."""
    refuse_inside_an_agent()
    return Verification(cwd, cache=cache)


def verify(opened: Verification, cwd: Path, name: str | None = None) -> Verified:
    """Verify the last work on a task of the latest run, or a commit; without a name, HEAD."""
    if name is not None and (find(cwd).ours / "journal.db").exists():
        state = look(cwd).state
        if name in state.tasks:
            return opened.of_task(state, name)
    return opened.of_commit(name or "HEAD")


def write_findings(verdict: Verdict, name: str, *, sarif: Path | None, junit: Path | None) -> None:
    """Write a verdict in the forms that other tools read."""
    try:
        if sarif is not None:
            put(sarif.absolute(), sarif_text(verdict.remarks))
        if junit is not None:
            put(junit.absolute(), junit_text("unstuck verify", [(name, verdict)]))
    except CannotWrite as error:
        raise BadUsage(error.message, hint="Name another file.") from error
