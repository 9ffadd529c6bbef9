"""Whether the work itself asks for what is missing: then its agent can do without it, and is told so. Pure."""

import re
from collections.abc import Iterable

from unstuck.diagnosis import Failure

_NAME = r"['\"`]?(?P<{}>[\w@.][\w@./+-]{{0,80}})"
MISSING = re.compile(
    "|".join((
        r"(?:no module named|cannot find (?:module|package)|could not (?:resolve|find)(?: module| package)?) "
        + _NAME.format("module"),
        r"command not found: " + _NAME.format("zsh"),
        _NAME.format("sh") + r"['\"`]?: (?:command )?not found",
        r"(?:environment variable|env var|variable) " + _NAME.format("variable"),
    )),
    re.IGNORECASE,
)  # fmt: skip
MOST_NAMES = 20


def missing_names(text: str) -> tuple[str, ...]:
    """Return what an output says is not there."""
    found = (match[match.lastgroup or 0] for match in MISSING.finditer(text))
    return tuple(dict.fromkeys(name.rstrip(".") for name in found))[:MOST_NAMES]


def asks_for_it(failure: Failure, texts: Iterable[tuple[str | None, str | None]]) -> bool:
    """Whether a missing thing is a file of the project, or is named in a text as it is now and not as it was before."""
    names = missing_names(failure.detail)
    if any("/" in name and not name.startswith(("@", "/")) for name in names):
        return True
    roots = {re.split(r"[./]", name.lstrip("@"))[0] for name in names} - {""}
    return any(
        name in (new or "") and name not in (old or "") for old, new in texts if new is not None for name in roots
    )
