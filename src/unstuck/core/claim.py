"""Read what an agent says of its work. A claim is a fact about the agent, never about the work."""

import re

from unstuck.core.attempt import Claim, Ended

FAILED = re.compile(r"^\s*Task\s+[A-Za-z]*\d+(?:\.\d+)*\s*:.*\bFAILED\b", re.MULTILINE)
APPROACH = re.compile(r"^\s*(?:APPROACH:|-?\s*Attempted fix:)\s*(\S.*)$", re.MULTILINE)
APPROACH_CHARS = 300


def claim(ended: Ended) -> Claim:
    """Say what the session claims: an explicit failure, or done by ending well, or nothing."""
    if FAILED.search(ended.tail):
        return "failed"
    return "done" if ended.ok else "none"


def approach(text: str) -> str:
    """Return the last approach that the agent named, as one bounded line."""
    found = APPROACH.findall(text)
    return found[-1].strip()[:APPROACH_CHARS] if found else ""
