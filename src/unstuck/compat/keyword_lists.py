"""The failure classifiers of Auto-Claude and forgekeeper, word for word."""

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
"""Auto-Claude's indicators, word for word, a compatibility promise. They are parts of the lower-cased text.

The first type with an indicator in the text wins. CIRCULAR_FIX is missing, because it needs a history."""

OUR_KINDS: Mapping[str, Kind] = {
    "BROKEN_BUILD": Kind.BUILD_BROKEN,
    "VERIFICATION_FAILED": Kind.CHECK_FAILED,
    "CONTEXT_EXHAUSTED": Kind.CONTEXT_EXHAUSTED,
    "UNKNOWN": Kind.UNKNOWN,
}
NOT_READ_FROM_TEXT = frozenset(
    {Kind.CIRCULAR_FIX, Kind.UNVERIFIED}
    | {kind for kind, facts in KINDS.items() if facts.blame in {"provider", "supervisor"}}
)
"""Kinds that follow from a history, a limit or a stop by the supervisor. Their output does not decide."""

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
"""Forgekeeper's categories, word for word, a compatibility promise: base confidence, then patterns by field."""
UNKNOWN_CONFIDENCE = 0.3


def auto_claude_type(text: str) -> str:
    """Return Auto-Claude's type of an error text."""
    lower = text.lower()
    for kind, indicators in AUTO_CLAUDE.items():
        if any(indicator in lower for indicator in indicators):
            return kind
    return "UNKNOWN"


def reclassified_by_auto_claude(failure: Failure) -> Failure:
    """Return the failure with the kind that Auto-Claude reads from its output."""
    kind = auto_claude_type(failure.detail or failure.summary)
    if failure.kind in NOT_READ_FROM_TEXT or KINDS[failure.kind].type == kind:
        return failure
    return replace(failure, kind=OUR_KINDS[kind])


def forgekeeper_category(evidence: Evidence, *, code: str = "", message: str = "") -> tuple[str, float]:
    """Return forgekeeper's category and its confidence.

    The confidence is the base of the category times the share of its patterns that match.
    """
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
