"""What the refs of a run are called in the remote that a fleet shares."""

from urllib.parse import quote


def tip_ref(run: str) -> str:
    """Name the run's branch as the remote has it; no task can be called so."""
    return f"refs/unstuck/{run}/@tip"


def work_ref(run: str, task: str, attempt: int) -> str:
    """Name the place of an attempt's work."""
    return f"refs/unstuck/{run}/{_part(task)}/{attempt}"


def worked(session: int) -> str:
    """Say how the commit of a session's work begins: by this it is told from what the session began with."""
    return f"work of session {session} "


def check_ref(run: str, task: str) -> str:
    """Name the place of a tree that is only to be verified."""
    return f"refs/unstuck/{run}/{_part(task)}/check"


def _part(name: str) -> str:
    """Write a task's name as a part of a ref: git takes neither `..` nor a dot or `.lock` at the wrong end."""
    text = quote(name, safe="").replace("..", "%2E%2E").replace("~", "%7E")
    text = "%2E" + text[1:] if text.startswith(".") else text
    return text[:-1] + "%2E" if text.endswith(".") else text.replace(".lock", "%2Elock")
