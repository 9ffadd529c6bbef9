"""Say in one line what is wrong: the first assertion or compiler message with its place, or else the last thing said."""

import re

from unstuck.diagnosis.cleaning import clean
from unstuck.diagnosis.readings.values import FailedTest, Finding, Reading
from unstuck.tell import one_line

ERROR_CHARS = 300
_OWN_WORDS = re.compile(
    r"^(?:E? +)?(?:\w+(?:\.\w+)*(?:Error|Exception)|Error|ERROR|error|fatal|(?:PHP )?Fatal error|panic)(?:\[\w+\])?:\s*\S"
    r"|.*\((?:\w+::)*\w+(?:Error|Exception)\)$|^Jest: .*threshold"
)
_NO_WORDS = re.compile(r"^[\W\d_]*$|^\s+at |^\s*(?:npm (?:ERR!|error)|make(?:\[\d+\])?: \*\*\*|error Command failed)")


def error_of(reading: Reading, text: str = "") -> str:
    """Return the error itself, for histories and questions; empty only where nothing was said at all."""
    spoken = [one for one in reading.failures if one.message] or list(reading.failures)
    worst = [one for one in reading.findings if one.severity == "error"]
    if any(one.name for one in spoken) or (spoken and not worst):
        return one_line(_of_test(spoken[0]), ERROR_CHARS)
    if found := worst or list(reading.findings):
        return one_line(_of_finding(found[0]), ERROR_CHARS)
    lines = [line for line in clean(text) if line.strip()]
    own = next((line for line in lines if _OWN_WORDS.match(line)), "")
    last = next((line for line in reversed(lines) if not _NO_WORDS.match(line)), lines[-1] if lines else "")
    return one_line((own or last).removeprefix("E "), ERROR_CHARS)


def _of_test(failed: FailedTest) -> str:
    where = f"{failed.file}:{failed.line}" if failed.file and failed.line else failed.file
    about = ", ".join(part for part in (failed.name, where) if part)
    return f"{failed.message} ({about})" if failed.message and about else failed.message or f"fails: {about}"


def _of_finding(found: Finding) -> str:
    where = f"{found.file}:{found.line}" if found.line else found.file
    return f"{where}: {found.message}{f' ({found.rule})' if found.rule else ''}"
