"""The predecessors' own classifiers, word for word: for who needs their answers, and as the mark that ours must beat."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from unstuck.diagnosis.evidence import Evidence
from unstuck.model.failure import KINDS, Failure, Kind

AUTO_CLAUDE: Mapping[str, Sequence[str]] = {
    "BROKEN_BUILD": (
        "syntax error", "compilation error", "module not found", "import error", "cannot find module",
        "unexpected token", "indentation error", "parse error",
    ),
    "VERIFICATION_FAILED": ("verification failed", "expected", "assertion", "test failed", "status code"),
    "CONTEXT_EXHAUSTED": ("context", "token limit", "maximum length"),
}  # fmt: skip
"""In this order, as parts of the lower-cased text. CIRCULAR_FIX needs a history, which a text is not."""

STANDS_FOR: Mapping[str, Kind] = {
    "BROKEN_BUILD": Kind.BUILD_BROKEN,
    "VERIFICATION_FAILED": Kind.CHECK_FAILED,
    "CONTEXT_EXHAUSTED": Kind.CONTEXT_EXHAUSTED,
    "UNKNOWN": Kind.UNKNOWN,
}
NOT_READ_FROM_TEXT = frozenset(
    {Kind.CIRCULAR_FIX, Kind.UNVERIFIED}
    | {kind for kind, facts in KINDS.items() if facts.blame in {"provider", "supervisor"}}
)
"""What a history, a limit or our own stop says: no word list knows better."""

FORGEKEEPER: Sequence[tuple[str, float, Sequence[tuple[str, str]]]] = (
    ("command_not_found", 0.95, (("code", "127"), ("stderr", "command not found|not found"), ("stderr", "bash:.*not found"),
                                 ("stderr", "sh:.*not found"), ("message", "bash error.*not found"))),
    ("tool_not_found", 1.0, (("message", "Unknown tool"), ("message", "Tool not found"), ("message", "not in allowlist"))),
    ("permission_denied", 0.95, (("code", "EACCES"), ("code", "EPERM"), ("message", "permission denied"),
                                 ("stderr", "Permission denied"), ("stderr", "access denied"))),
    ("file_not_found", 0.9, (("code", "ENOENT"), ("message", "no such file"), ("stderr", "No such file or directory"))),
    ("timeout", 0.9, (("code", "ETIMEDOUT"), ("message", "timeout|timed out"), ("signal", "SIGTERM"), ("signal", "SIGKILL"))),
    ("invalid_arguments", 1.0, (("message", "Missing required parameter"), ("message", "should be.*got"),
                                ("message", "invalid.*argument"), ("message", "Failed to parse"))),
    ("syntax_error", 0.85, (("stderr", "syntax error"), ("stderr", "unexpected.*token"), ("stderr", "SyntaxError"))),
    ("network_error", 0.9, (("code", "ENOTFOUND"), ("code", "ECONNREFUSED"), ("code", "ECONNRESET"), ("message", "network.*error"),
                            ("message", "connection.*refused"), ("message", "DNS.*failed"))),
    ("disk_full", 1.0, (("code", "ENOSPC"), ("message", "no space left"), ("stderr", "disk full"))),
    ("rate_limited", 0.95, (("message", "rate limit"), ("message", "too many requests"), ("message", "429"))),
)  # fmt: skip
UNKNOWN_CONFIDENCE = 0.3


def auto_claude_type(text: str) -> str:
    """Return Auto-Claude's type of an error text."""
    lower = text.lower()
    for kind, indicators in AUTO_CLAUDE.items():
        if any(indicator in lower for indicator in indicators):
            return kind
    return "UNKNOWN"


def by_word_lists(failure: Failure) -> Failure:
    """Judge a failure as Auto-Claude would, by the words of its output alone."""
    said = auto_claude_type(failure.detail or failure.summary)
    if failure.kind in NOT_READ_FROM_TEXT or KINDS[failure.kind].type == said:
        return failure
    return replace(failure, kind=STANDS_FOR[said])


def forgekeeper_category(evidence: Evidence, *, code: str = "", message: str = "") -> tuple[str, float]:
    """Return forgekeeper's category and its confidence: the base times the share of the listed patterns that match."""
    fields = {
        "code": code or ("" if evidence.exit_code is None else str(evidence.exit_code)),
        "message": message or f"{evidence.stdout}\n{evidence.stderr}",
        "stderr": evidence.stderr,
        "signal": evidence.signal and f"SIG{evidence.signal.removeprefix('SIG')}",
    }
    best = ("unknown", UNKNOWN_CONFIDENCE)
    for category, base, patterns in FORGEKEEPER:
        matched = sum(_matches(where, pattern, fields[where]) for where, pattern in patterns)
        confidence = base * matched / len(patterns)
        if confidence > best[1] or (best[0] == "unknown" and matched and confidence == best[1]):
            best = (category, confidence)
    return best


def _matches(where: str, pattern: str, text: str) -> bool:
    if where in {"code", "signal"}:
        return text == pattern
    return re.search(pattern, text, re.IGNORECASE) is not None
