"""Read an agent's last words: does it say that it is done, that it changed something, or that it failed? Pure."""

import re

DONE = re.compile(
    r"(?i)\b(?:done|completed?|finished|implemented|fixed|resolved|works now|is ready|all (?:the )?(?:tests|checks) pass\w*"
    r"|TASK_COMPLETE)\b"
)
CHANGED = re.compile(
    r"(?i)\b(?:I|I['\u2019]ve|I have|we|we have) (?:\w+ ){0,2}(?:added|implemented|fixed|created|updated|wrote|written|changed"
    r"|refactored|removed|renamed|edited|modified|replaced|moved)\b"
)
HONEST = re.compile(
    r"(?i)\b(?:tests?|checks?|builds?|it|which|that) (?:still |now )?(?:fails?|is red|are red)\b|\bstill (?:fail\w*|red|broken)\b"
    r"|\b(?:could not|couldn['\u2019]t|cannot|can['\u2019]t|unable to|not able to|did not manage to)\b"
    r"|\bnot (?:yet )?(?:done|complete|finished|fixed|working|implemented)\b|\b(?:give|gave|giving) up\b|\bblocked\b|\bI stop here\b"
)
LONGEST = 20_000


def says_done(message: str) -> bool:
    return DONE.search(message[-LONGEST:]) is not None and not admits(message)


def says_changed(message: str) -> bool:
    return CHANGED.search(message[-LONGEST:]) is not None and not admits(message)


def admits(message: str) -> bool:
    """Whether it says that something is not right: an honest stop is not refused."""
    return HONEST.search(message[-LONGEST:]) is not None
