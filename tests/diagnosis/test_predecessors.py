"""What the four predecessors were tested for, as far as the rulings agree; in our own words.

What does not hold, and why:
- The kind of a limit (session or weekly) and of an authentication failure (missing, invalid, expired) is not told
  apart: the way on is the same, and the reset time says how long it takes.
- `Permission denied` alone is the file system's (forgekeeper), not an authentication failure (X-07).
- Confidence is the strongest rule's weight, not diluted by the number of rules that could have matched (X-08).
- A bare `429` or `not found` somewhere in a line proves nothing (X-09).
"""

import pytest

from unstuck.diagnosis.rulebook import diagnose
from unstuck.model.failure import Kind


@pytest.mark.parametrize(
    ("text", "resets"),
    [
        ("Limit reached · resets 5pm (Europe/Berlin)", "5pm (Europe/Berlin)"),
        ("Limit reached • resets 10:30am", "10:30am"),
        ("Limit reached · resets Jan 3 at 9am (UTC)", "Jan 3 at 9am (UTC)"),
        ("Working on it…\nLimit reached · resets 23:00\n  at run (agent.js:10)", "23:00"),
        ("You have exceeded your limit for today", ""),
        ("usage limit reached", ""),
        ("Error: too many requests", ""),
    ],
)
def test_a_limit_is_seen_with_its_reset(text: str, resets: str) -> None:
    found = diagnose(text, exit_code=1)
    assert found is not None
    assert (found.kind, found.resets) == (Kind.RATE_LIMITED, resets)


@pytest.mark.parametrize(
    "text", ["The limit of this road is 60 mph", "Processed 4290 rows", "Set the limits in the settings", "done"]
)
def test_other_limits_are_none(text: str) -> None:
    found = diagnose(text, exit_code=1)
    assert found is None or found.kind is not Kind.RATE_LIMITED


@pytest.mark.parametrize(
    "text",
    [
        "Error: authentication required", "Login required", "Error: Unauthorized", "Please log in to go on", "Invalid credentials given",
        "Auth failed", "Authentication error", "Your session expired", "HTTP 401 Unauthorized", "Credentials are missing",
        "Credentials expired", '{"error": "unauthorized", "message": "Please authenticate"}', "NOT AUTHENTICATED", "invalid token",
    ],
)  # fmt: skip
def test_words_of_a_missing_login_are_an_authentication_failure(text: str) -> None:
    found = diagnose(text, exit_code=1)
    assert found is not None
    assert found.kind is Kind.AUTH_FAILED


@pytest.mark.parametrize("text", ["usage limit reached", "permission denied: ./run.sh", "Task completed"])
def test_other_refusals_are_no_authentication_failure(text: str) -> None:
    found = diagnose(text, exit_code=1)
    assert found is None or found.kind is not Kind.AUTH_FAILED


@pytest.mark.parametrize(
    ("message", "stderr", "exit_code", "category"),
    [
        pytest.param(
            "bash error (exit 127): jq: command not found",
            "bash: jq: command not found",
            127,
            "command_not_found",
            id="127",
        ),
        pytest.param("permission denied EACCES", "Permission denied", 1, "permission_denied", id="EACCES"),
        pytest.param("operation not permitted EPERM", "", 1, "permission_denied", id="EPERM"),
        pytest.param("ENOENT: no such file or directory, open 'a.txt'", "", 1, "file_not_found", id="ENOENT"),
        pytest.param("Operation timed out ETIMEDOUT", "", 1, "timeout", id="ETIMEDOUT"),
        pytest.param("connect ECONNREFUSED 127.0.0.1:5432", "", 1, "network_error", id="ECONNREFUSED"),
        pytest.param("getaddrinfo ENOTFOUND example.invalid", "", 1, "network_error", id="ENOTFOUND"),
        pytest.param("read ECONNRESET", "", 1, "network_error", id="ECONNRESET"),
        pytest.param("DNS lookup failed", "", 1, "network_error", id="dns"),
        pytest.param("ENOSPC: no space left on device, write", "", 1, "disk_full", id="ENOSPC"),
        pytest.param("Unknown tool: fetch_page", "", 1, "tool_not_found", id="unknown-tool"),
        pytest.param("Tool not in allowlist: rm", "", 1, "tool_not_found", id="allowlist"),
        pytest.param("Missing required parameter: path", "", 1, "invalid_arguments", id="missing-parameter"),
        pytest.param("limit should be number, got string", "", 1, "invalid_arguments", id="wrong-type"),
        pytest.param(
            "", "bash: -c: line 1: syntax error near unexpected token `('", 2, "syntax_error", id="shell-syntax"
        ),
        pytest.param("429 Too Many Requests", "", 1, "rate_limited", id="429"),
    ],
)
def test_a_tool_call_falls_into_forgekeepers_category(message: str, stderr: str, exit_code: int, category: str) -> None:
    found = diagnose(message, stderr=stderr, exit_code=exit_code)
    assert found is not None
    assert found.facts.category == category
    assert found.confidence >= 0.5


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Error: Cannot find module './utils' from 'src/index.js'", "BROKEN_BUILD"),
        ("AssertionError: Expected 200 but got 404", "VERIFICATION_FAILED"),
        ("Error: Maximum context length (128k tokens) exceeded", "CONTEXT_EXHAUSTED"),
        ("Error: Connection refused to database server", "UNKNOWN"),
        ("Verification failed: expected 200 got 500", "VERIFICATION_FAILED"),
        ("SyntaxError: invalid syntax", "BROKEN_BUILD"),
    ],
)
def test_auto_claudes_examples_have_their_type(text: str, word: str) -> None:
    found = diagnose(text)
    assert found is not None
    assert found.facts.type == word
