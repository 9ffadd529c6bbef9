"""Ends that nobody recorded: what the agents would print, made from the fields and words that providers use."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from unstuck.agents.manifests import agent_catalog
from unstuck.agents.output_formats import output_formats
from unstuck.agents.output_streams import read_stream
from unstuck.agents.printed_json import gist
from unstuck.agents.provider_errors import fault_from_error

J = json.dumps
START = J({"type": "system", "subtype": "init", "session_id": "s"})
THREAD = J({"type": "thread.started", "thread_id": "t"})
TURN = J({"type": "turn.started"})
FLAGGED = "API Error: Opus 5.5's safeguards flagged this message (https://www.anthropic.com/legal/aup). This sometimes happens with safe, normal conversations. Claude Code can't respond to this message with Opus 5.5."
GEMINI = J({"type": "init", "session_id": "g"})


def own_error(text: str, err: str | None = None, status: int | None = None, **more: Any) -> str:
    """Return a message of Claude Code's own, as it tells of an error."""
    told: dict[str, Any] = {
        "type": "assistant", "message": {"model": "<synthetic>", "content": [{"type": "text", "text": text}]},
        "session_id": "s", "parent_tool_use_id": None,
    }  # fmt: skip
    error = {"error": err, "is_api_error_message": True, "api_error_status": status} if err else {}
    return J(told | error | more)


def result(**more: Any) -> str:
    return J({"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "result": "x", **more})


def error(message: str) -> str:
    return J({"type": "error", "message": message})


def turn_failed(message: str) -> str:
    return J({"type": "turn.failed", "error": {"message": message}})


def gemini_error(message: str, kind: str = "unknown") -> str:
    return J(
        {
            "type": "result",
            "status": "error",
            "error": {"type": kind, "message": message},
            "stats": {"input_tokens": 0, "output_tokens": 0},
        }
    )


CASES = [
    (
        "claude",
        "403",
        "auth_failed",
        1,
        [
            START,
            own_error(
                "Your account does not have access to Claude Code. Please run /login.", "authentication_failed", 403
            ),
            result(is_error=True, api_error_status=403, terminal_reason="api_error", result="x"),
        ],
        [],
    ),
    (
        "claude",
        "402",
        "billing",
        1,
        [
            START,
            own_error("Credit balance is too low", "billing_error", 400),
            result(is_error=True, api_error_status=400, result="Credit balance is too low"),
        ],
        [],
    ),
    (
        "claude",
        "404",
        "bad_request",
        1,
        [
            START,
            own_error(
                "There's an issue with the selected model (x). It may not exist or you may not have access to it.",
                "model_not_found",
                404,
            ),
            result(is_error=True, api_error_status=404, result="There's an issue with the selected model"),
        ],
        [],
    ),
    (
        "claude",
        "500",
        "overloaded",
        1,
        [
            START,
            own_error("API Error: 500 Internal server error", "server_error", 500),
            result(is_error=True, api_error_status=500, result="API Error: 500"),
        ],
        [],
    ),
    (
        "claude",
        "maxtokens",
        "context_exhausted",
        1,
        [
            START,
            own_error(
                "API Error: Claude's response exceeded the 32000 output token maximum.", "max_output_tokens", None
            ),
            result(
                is_error=True,
                api_error="max_output_tokens",
                api_error_status=None,
                terminal_reason="api_error",
                result="API Error: Claude's response exceeded the 32000 output token maximum.",
            ),
        ],
        [],
    ),
    (
        "claude",
        "budget",
        "budget",
        1,
        [START, result(subtype="error_max_budget_usd", is_error=True, terminal_reason="budget_exhausted", result=None)],
        [],
    ),
    (
        "claude",
        "conn",
        "network",
        1,
        [
            START,
            own_error("API Error: Unable to connect to API (ECONNREFUSED)", "unknown", None),
            result(
                is_error=True,
                api_error="connection_failed",
                api_error_status=None,
                terminal_reason="api_error",
                result="API Error: Connection error.",
            ),
        ],
        [],
    ),
    (
        "claude",
        "hang",
        "network",
        1,
        [
            START,
            own_error("Request timed out", "unknown", None),
            result(is_error=True, terminal_reason="api_error", result="Request timed out"),
        ],
        [],
    ),
    ("claude", "refusal", "refused", 0, [START, result(safety_stops=1, result="I can't help with that")], []),
    (
        "claude",
        "refusal twice",
        "refused",
        1,
        [
            START,
            own_error(FLAGGED, "invalid_request"),
            result(is_error=True, terminal_reason="api_error", result=FLAGGED),
        ],
        [],
    ),
    (
        "claude",
        "root",
        "permission_denied",
        1,
        [],
        ["--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"],
    ),
    (
        "claude",
        "resume_unknown",
        "bad_request",
        1,
        [
            J(
                {
                    "type": "result",
                    "subtype": "error_during_execution",
                    "is_error": True,
                    "errors": ["No conversation found with session ID: x"],
                    "session_id": "n",
                }
            )
        ],
        [],
    ),
    ("claude", "resume_unknown2", "bad_request", 1, [], ["No conversation found with session ID: abc"]),
    ("claude", "login", "auth_failed", 1, ["Invalid API key · Please run /login"], []),
    (
        "claude",
        "login0",
        "auth_failed",
        1,
        [
            START,
            own_error("Not logged in · Please run /login", "authentication_failed", None),
            result(is_error=True, result="Not logged in · Please run /login"),
        ],
        [],
    ),
    (
        "claude",
        "limit",
        "rate_limited",
        1,
        [
            START,
            own_error(
                "You've hit your limit · resets 8pm (America/New_York)",
                "rate_limit",
                429,
                timestamp="2026-11-15T18:00:00Z",
            ),
            result(is_error=True, api_error_status=429, result="You've hit your limit · resets 8pm (America/New_York)"),
        ],
        [],
    ),
    (
        "claude",
        "oldlimit",
        "rate_limited",
        1,
        [
            START,
            own_error("Claude AI usage limit reached|1794790800", "rate_limit", 429),
            result(is_error=True, result="Claude AI usage limit reached|1794790800"),
        ],
        [],
    ),
    (
        "claude",
        "weekly",
        "rate_limited",
        1,
        [
            START,
            own_error(
                "Weekly limit reached ∙ resets Nov 20 at 5pm", "rate_limit", 429, timestamp="2026-11-15T18:00:00Z"
            ),
            result(is_error=True, result="Weekly limit reached ∙ resets Nov 20 at 5pm"),
        ],
        [],
    ),
    (
        "claude",
        "hook",
        "done_claimed",
        0,
        [
            START,
            J(
                {
                    "type": "assistant",
                    "message": {
                        "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}}]
                    },
                }
            ),
            J({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": "a"}]}}),
            result(result="", terminal_reason="hook_stopped"),
        ],
        [],
    ),
    ("claude", "emptyok", "no_work", 0, [], []),
    ("claude", "noresult", "crashed", 0, [START], []),
    ("claude", "garbage", "unreadable", 0, ["hello", "world"], []),
    (
        "claude",
        "longtool_KILL",
        "tool_hang",
        -9,
        [
            START,
            J(
                {
                    "type": "assistant",
                    "message": {
                        "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "sleep 97"}}]
                    },
                }
            ),
        ],
        [],
    ),
    (
        "claude",
        "retrykilled",
        "rate_limited",
        -9,
        [START, J({"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"})],
        [],
    ),
    (
        "claude",
        "retryprogresskilled",
        "killed",
        -9,
        [
            START,
            J({"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}),
            J({"type": "assistant", "message": {"content": [{"type": "text", "text": "now"}]}}),
        ],
        [],
    ),
    (
        "codex",
        "401",
        "auth_failed",
        1,
        [
            THREAD,
            TURN,
            error("unexpected status 401 Unauthorized: Invalid API key, url: http://127.0.0.1/v1"),
            turn_failed("unexpected status 401 Unauthorized: Invalid API key, url: http"),
        ],
        [],
    ),
    (
        "codex",
        "500",
        "overloaded",
        1,
        [THREAD, TURN, turn_failed("We're currently experiencing high demand, which may cause temporary errors.")],
        [],
    ),
    (
        "codex",
        "ctx400",
        "context_exhausted",
        1,
        [
            THREAD,
            TURN,
            turn_failed(
                '{"error": {"message": "prompt is too long: 208310 tokens > 200000 maximum", "type": "invalid_request_error", "code": "context_length_exceeded"}}'
            ),
        ],
        [],
    ),
    (
        "codex",
        "drop",
        "network",
        1,
        [
            THREAD,
            TURN,
            error("Reconnecting... 1/5"),
            error("stream disconnected before completion: stream closed before response.completed"),
            turn_failed("stream disconnected before completion"),
        ],
        [],
    ),
    ("codex", "connref", "network", -9, [THREAD, TURN, error("Reconnecting... waiting for network")], []),
    (
        "codex",
        "usage",
        "rate_limited",
        1,
        [
            THREAD,
            TURN,
            turn_failed(
                "You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 2 days 3 hours 5 minutes."
            ),
        ],
        [],
    ),
    (
        "codex",
        "usage2",
        "rate_limited",
        1,
        [
            THREAD,
            TURN,
            turn_failed(
                "You've hit your usage limit. To get more access now, send a request to your admin or try again at Nov 20th, 2026 3:02 PM."
            ),
        ],
        [],
    ),
    ("codex", "int", "killed", 1, [THREAD, TURN], ["Reading additional input from stdin..."]),
    ("codex", "norollout", "bad_request", 1, [], ["Error: no rollout found for thread id 123"]),
    (
        "codex",
        "notgit",
        "auth_failed",
        1,
        [],
        ["Not inside a trusted directory and --skip-git-repo-check was not specified."],
    ),
    ("codex", "login", "auth_failed", 1, [], ["Error: Not logged in. Run `codex login`"]),
    (
        "codex",
        "fail_timeout",
        "done_claimed",
        0,
        [
            THREAD,
            TURN,
            J({"type": "item.started", "item": {"id": "i", "type": "command_execution", "command": "sleep 97"}}),
            J({"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "I stop"}}),
            J({"type": "turn.completed", "usage": {}}),
        ],
        [],
    ),
    ("codex", "panic", "crashed", 101, [THREAD, TURN], ["thread 'main' panicked at src/x.rs"]),
    (
        "codex",
        "badmodel",
        "bad_request",
        1,
        [THREAD, TURN, turn_failed('{"detail":"The model gpt-9 does not exist"}')],
        [],
    ),
    (
        "gemini",
        "401",
        "auth_failed",
        145,
        [
            GEMINI,
            gemini_error(
                '[API Error: {"error":{"code":401,"message":"invalid x-api-key","status":"authentication_error"}}]'
            ),
        ],
        [],
    ),
    ("gemini", "529", "overloaded", 17, [GEMINI, gemini_error("[API Error: Overloaded]")], []),
    ("gemini", "500", "overloaded", 244, [GEMINI, gemini_error("[API Error: Internal error]")], []),
    (
        "gemini",
        "maxturns",
        "max_turns",
        53,
        [GEMINI, J({"type": "message", "role": "assistant", "content": "hm"})],
        [
            "Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json."
        ],
    ),
    (
        "gemini",
        "maxturns2",
        "max_turns",
        53,
        [GEMINI, gemini_error("Reached max session turns for this session.", "FatalTurnLimitedError")],
        [],
    ),
    (
        "gemini",
        "quota",
        "rate_limited",
        173,
        [
            GEMINI,
            gemini_error(
                "[API Error: You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.]"
            ),
        ],
        [],
    ),
    (
        "gemini",
        "noauth",
        "auth_failed",
        41,
        [],
        [
            "Please set an Auth method in your /home/dev/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY"
        ],
    ),
    (
        "gemini",
        "loop",
        "done_claimed",
        0,
        [
            GEMINI,
            J({"type": "message", "role": "assistant", "content": "hm"}),
            J({"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}),
            J({"type": "result", "status": "success", "stats": {}}),
        ],
        [],
    ),
    (
        "gemini",
        "badkey",
        "auth_failed",
        144,
        [
            GEMINI,
            gemini_error(
                '[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]'
            ),
        ],
        [],
    ),
    (
        "opencode",
        "401",
        "auth_failed",
        1,
        [
            J(
                {
                    "type": "error",
                    "sessionID": "s",
                    "error": {
                        "name": "APIError",
                        "data": {"message": "invalid x-api-key", "statusCode": 401, "isRetryable": False},
                    },
                }
            )
        ],
        [],
    ),
    (
        "opencode",
        "500",
        "overloaded",
        1,
        [
            J(
                {
                    "type": "error",
                    "sessionID": "s",
                    "error": {"name": "APIError", "data": {"message": "boom", "statusCode": 500}},
                }
            )
        ],
        [],
    ),
    ("opencode", "model", "bad_request", 1, [], ["Error: Model not found: fake/xx"]),
    (
        "opencode",
        "unknownerr",
        "network",
        1,
        [
            J(
                {
                    "type": "error",
                    "sessionID": "s",
                    "error": {
                        "name": "UnknownError",
                        "data": {"message": "Unable to connect. Is the computer able to access the url?"},
                    },
                }
            )
        ],
        [],
    ),
    (
        "qwen",
        "401",
        "auth_failed",
        1,
        [
            START,
            own_error("[API Error: 401 invalid x-api-key]"),
            J(
                {
                    "type": "result",
                    "subtype": "error_during_execution",
                    "is_error": True,
                    "error": {"message": "[API Error: 401 invalid x-api-key]"},
                }
            ),
        ],
        [],
    ),
    (
        "qwen",
        "529",
        "overloaded",
        1,
        [
            START,
            J(
                {
                    "type": "result",
                    "subtype": "error_during_execution",
                    "is_error": True,
                    "error": {"message": "[API Error: 529 Overloaded]"},
                }
            ),
        ],
        [],
    ),
    (
        "qwen",
        "turns",
        "max_turns",
        53,
        [
            START,
            J(
                {
                    "type": "result",
                    "subtype": "error_max_turns",
                    "is_error": True,
                    "error": {"message": "Reached max session turns"},
                }
            ),
        ],
        [],
    ),
    (
        "goose",
        "401",
        "auth_failed",
        0,
        [
            J(
                {
                    "type": "message",
                    "message": {
                        "role": "assistant",
                        "content": [
                            {
                                "type": "text",
                                "text": "Ran into this error: Authentication failed: Authentication failed. Status: 401 Unauthorized. Response: invalid x-api-key.\n\nPlease retry if you think this is a transient or recoverable error.",
                            }
                        ],
                    },
                }
            ),
            J({"type": "complete", "total_tokens": None}),
        ],
        [],
    ),
    (
        "goose",
        "529",
        "overloaded",
        0,
        [
            J(
                {
                    "type": "message",
                    "message": {
                        "role": "assistant",
                        "content": [
                            {
                                "type": "text",
                                "text": "Ran into this error: Server error: Server error (529): Overloaded.\n\nPlease retry if you think this is a transient or recoverable error.",
                            }
                        ],
                    },
                }
            ),
            J({"type": "complete", "total_tokens": None}),
        ],
        [],
    ),
    (
        "goose",
        "conn",
        "network",
        0,
        [
            J(
                {
                    "type": "message",
                    "message": {
                        "role": "assistant",
                        "content": [
                            {
                                "type": "text",
                                "text": "Ran into this error: Request failed: Could not connect to http://127.0.0.1.\n\nPlease retry",
                            }
                        ],
                    },
                }
            ),
            J({"type": "complete"}),
        ],
        [],
    ),
    (
        "goose",
        "turns",
        "max_turns",
        0,
        [
            J(
                {
                    "type": "message",
                    "message": {
                        "role": "assistant",
                        "content": [
                            {
                                "type": "text",
                                "text": "I've reached the maximum number of actions START can do without user input. Would you like me to continue?",
                            }
                        ],
                    },
                }
            ),
            J({"type": "complete"}),
        ],
        [],
    ),
    (
        "copilot",
        "401",
        "auth_failed",
        1,
        [
            J(
                {
                    "type": "session.error",
                    "data": {"errorType": "authentication", "message": "Authentication failed", "statusCode": 401},
                }
            ),
            J({"type": "result", "exitCode": 1, "sessionId": "c"}),
        ],
        [],
    ),
    ("copilot", "nologin", "auth_failed", 1, [], ["Error: No authentication information found."]),
    (
        "kimi",
        "401",
        "auth_failed",
        1,
        [J({"role": "meta", "type": "system.version"})],
        ["error: failed to run prompt: provider.auth_error: 401 invalid x-api-key"],
    ),
    (
        "kimi",
        "529",
        "overloaded",
        1,
        [
            J(
                {
                    "role": "meta",
                    "type": "turn.step.retrying",
                    "error_name": "APIStatusError",
                    "error_message": "529 Overloaded",
                    "status_code": 529,
                }
            )
        ],
        ["error: failed to run prompt: provider.api_error: 529 Overloaded"],
    ),
    ("kimi", "toolerr", "done_claimed", 0, [J({"role": "assistant", "content": "ok"})], ["Error: 401 Unauthorized"]),
    (
        "pi",
        "401",
        "auth_failed",
        0,
        [
            J(
                {
                    "type": "message_end",
                    "message": {
                        "role": "assistant",
                        "content": [],
                        "stopReason": "error",
                        "errorMessage": "401 invalid x-api-key",
                    },
                }
            ),
            J({"type": "agent_end"}),
        ],
        [],
    ),
    (
        "pi",
        "conn",
        "network",
        0,
        [
            J(
                {
                    "type": "message_end",
                    "message": {
                        "role": "assistant",
                        "content": [],
                        "stopReason": "error",
                        "errorMessage": "Connection error.",
                    },
                }
            ),
            J({"type": "agent_end"}),
        ],
        [],
    ),
    (
        "cline",
        "401",
        "auth_failed",
        1,
        [J({"type": "run_result", "finishReason": "error", "text": "invalid x-api-key"})],
        [J({"type": "error", "message": "invalid x-api-key"})],
    ),
    ("cline", "529", "overloaded", 1, [J({"type": "run_result", "finishReason": "error", "text": "Overloaded"})], []),
    ("continue", "401", "auth_failed", 1, [], ['{"status":"error","message":"401 invalid x-api-key"}']),
    ("continue", "529", "overloaded", 1, [], ['{"status":"error","message":"529 Overloaded"}']),
    ("continue", "conn", "network", 1, [], ['{"status":"error","message":"Connection error."}']),
    (
        "aider",
        "401",
        "auth_failed",
        0,
        [
            "Aider v0",
            "https://aider.chat/HISTORY.html#release-notes",
            "litellm.AuthenticationError: AuthenticationError: OpenAIException - invalid x-api-key",
            "The API provider is not able to authenticate you. Check your API key.",
        ],
        [],
    ),
    (
        "aider",
        "529",
        "overloaded",
        0,
        [
            "https://aider.chat/HISTORY.html",
            "litellm.InternalServerError: InternalServerError: OpenAIException - Overloaded",
            "The API provider's servers are down or overloaded.",
            "Retrying in 0.2 seconds...",
        ],
        [],
    ),
    (
        "aider",
        "conn",
        "network",
        0,
        [
            "https://aider.chat/HISTORY.html",
            "litellm.APIConnectionError: OpenAIException - Connection error.",
            "Retrying in 32 seconds...",
        ],
        [],
    ),
    (
        "mini",
        "401",
        "auth_failed",
        1,
        ["System:"],
        [
            "Traceback (most recent call last):",
            '  File "x.py"',
            "litellm.exceptions.AuthenticationError: litellm.AuthenticationError: AuthenticationError: OpenAIException - invalid x-api-key",
        ],
    ),
    (
        "mini",
        "529",
        "overloaded",
        -9,
        ["System:"],
        [
            "Retrying <unknown> in 4 seconds as it raised InternalServerError: litellm.InternalServerError: InternalServerError: OpenAIException - Overloaded."
        ],
    ),
    (
        "mini",
        "limits",
        "max_turns",
        0,
        [
            "mini-swe-agent (step 1, $0.10):",
            "hello",
            "```",
            "ls",
            "```",
            "",
            "Tool:",
            "<returncode>",
            "0",
            "<output>",
            "x",
            "",
            "Exit:",
            "LimitsExceeded",
        ],
        [],
    ),
]


@pytest.mark.parametrize(
    ("agent", "end", "code", "stdout", "stderr"),
    [pytest.param(agent, end, code, out, err, id=f"{agent}-{name}") for agent, name, end, code, out, err in CASES],
)
def test_a_session_ends_for_the_reason_that_its_errors_name(
    agent: str, end: str, code: int, stdout: list[str], stderr: list[str]
) -> None:
    known = agent_catalog()[agent]
    assert read_stream(output_formats()[known.output], stdout, stderr, code=code, meanings=known.exit_codes).end == end


AT = datetime(2026, 11, 15, 18, 0, tzinfo=UTC).timestamp()
RESETS = {
    "You've hit your limit · resets 8pm (America/New_York)": "2026-11-16T01:00:00+00:00",
    "5-hour limit reached ∙ resets 7pm UTC": "2026-11-15T19:00:00+00:00",
    "Weekly limit reached ∙ resets Nov 20 at 5pm (UTC)": "2026-11-20T17:00:00+00:00",
    "You've reached your weekly limit. It resets Monday at 9am PT.": "2026-11-16T17:00:00+00:00",
    "Claude AI usage limit reached|1794790800": "2026-11-16T01:00:00+00:00",
    "You've hit your usage limit. Upgrade, or try again in 2 days 3 hours 5 minutes.": "2026-11-17T21:05:00+00:00",
    "You've hit your usage limit, try again at Nov 20th, 2026 3:02 PM UTC.": "2026-11-20T15:02:00+00:00",
    "429 RESOURCE_EXHAUSTED. Please retry in 34.5s.": "2026-11-15T18:00:34.500000+00:00",
    '429 {"error": {"details": [{"retryDelay": "34s"}]}}': "2026-11-15T18:00:34+00:00",
    "Quota exhausted. Your quota will reset after 7h27m1s.": "2026-11-16T01:27:01+00:00",
    "usage_limit_reached resets_at: 1794790800": "2026-11-16T01:00:00+00:00",
    "429 rate limited; resets_in_seconds: 90": "2026-11-15T18:01:30+00:00",
    "Rate limit reached. Try again in about 2 minutes": "2026-11-15T18:02:00+00:00",
    "Rate limit reached, resets at 2026-11-15T21:00:00Z": "2026-11-15T21:00:00+00:00",
    "Rate limit reached, resets tomorrow at midnight UTC": "2026-11-16T00:00:00+00:00",
}


@pytest.mark.parametrize(("words", "expected"), RESETS.items(), ids=RESETS)
def test_the_end_of_a_limit_is_read_from_the_words_of_its_error(words: str, expected: str) -> None:
    found = fault_from_error(words, at=AT)
    assert found is not None
    assert (found.end, found.resets_at) == ("rate_limited", datetime.fromisoformat(expected).timestamp())


def test_the_end_of_a_limit_is_read_from_headers() -> None:
    found = fault_from_error("too many requests", status=429, headers={"Retry-After": "120"}, at=AT)
    assert found is not None
    assert found.resets_at == AT + 120


def test_what_an_agent_shows_is_never_taken_for_an_error() -> None:
    shown = "HTTP 429 rate_limit_error: usage limit reached, resets 8pm. 401 Unauthorized. prompt is too long"
    lines = [
        START,
        J(
            {
                "type": "assistant",
                "message": {
                    "content": [{"type": "tool_use", "id": "1", "name": "Read", "input": {"file_path": "a.py"}}]
                },
            }
        ),
        J({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": shown}]}}),
        J({"type": "assistant", "message": {"content": [{"type": "text", "text": shown}]}}),
        result(result=shown),
    ]
    found = read_stream(output_formats()["claude"], lines, [], code=0)
    assert (found.end, found.resets_at) == ("done_claimed", None)
    killed = read_stream(output_formats()["claude"], lines[:-1], [], code=-9)
    assert (killed.end, killed.resets_at) == ("killed", None)


def test_a_warning_about_a_limit_is_no_limit_and_a_refusal_names_its_end() -> None:
    def limit(status: str) -> str:
        return J(
            {
                "type": "rate_limit_event",
                "rate_limit_info": {"status": status, "resetsAt": 1794790800, "rateLimitType": "five_hour"},
            }
        )

    assert (
        read_stream(output_formats()["claude"], [START, limit("allowed_warning"), result()], [], code=0).end
        == "done_claimed"
    )
    refused = read_stream(
        output_formats()["claude"],
        [
            START,
            limit("rejected"),
            own_error("You've hit your limit", "rate_limit", 429),
            result(is_error=True, api_error_status=429),
        ],
        [],
        code=1,
    )
    assert (refused.end, refused.resets_at) == ("rate_limited", 1794790800.0)


def test_an_event_written_into_the_middle_of_another_one_is_found() -> None:
    torn = '{"type":"assistant","message":{"content":[{"type":"text","text":"par' + J(
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1794790800}},
        separators=(",", ":"),
    )
    assert read_stream(output_formats()["claude"], [START, torn], [], code=1).resets_at == 1794790800.0


def test_a_claim_of_failure_needs_its_marker() -> None:
    said = [
        START,
        J(
            {
                "type": "assistant",
                "message": {"content": [{"type": "text", "text": "Task 1.1: add it FAILED\n- Error: no"}]},
            }
        ),
        result(),
    ]
    assert read_stream(output_formats()["claude"], said, [], code=0).end == "failed_claimed"
    prose = [
        START,
        J({"type": "assistant", "message": {"content": [{"type": "text", "text": "It failed, I give up."}]}}),
        result(),
    ]
    assert read_stream(output_formats()["claude"], prose, [], code=0).end == "done_claimed"


def test_several_results_end_with_the_last_one() -> None:
    assert (
        read_stream(
            output_formats()["claude"], [START, result(is_error=True, api_error_status=500), result()], [], code=0
        ).end
        == "done_claimed"
    )


def test_a_person_sees_words_and_commands_instead_of_events() -> None:
    torn = J({"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"command": "make test"}}]}})[
        :-5
    ]
    assert gist(torn) == "make test"
    assert gist("plain words") == "plain words"
    assert gist('{"type":"turn.started"}') == ""


LIMITED = "Error: 429 rate limit, try again in 5 minutes"


@pytest.mark.parametrize(
    ("agent", "stdout", "stderr", "end"),
    [
        pytest.param("claude", [f'{{"type":"x","timestamp":{"9" * 400}}}'], [LIMITED], "rate_limited", id="huge time"),
        pytest.param("claude", ['{"type":"x","timestamp":1e999}'], [LIMITED], "rate_limited", id="endless time"),
        pytest.param("claude", ['{"type":"x","timestamp":-1e15}'], [LIMITED], "rate_limited", id="time before all years"),
        pytest.param("claude", [START, result(total_cost_usd=10**400)], [], "crashed", id="huge cost"),
        pytest.param("aider", ["Tokens: . sent, 1.2.3k received."], [], "crashed", id="counts that are no numbers"),
        pytest.param("claude", [START], [f"{' ' * 100_000}{LIMITED}"], "rate_limited", id="a line of spaces"),
        pytest.param("aider", [f"Tokens: 5k sent, {'1' * 100_000}"], [], "crashed", id="a line of digits"),
    ],
)  # fmt: skip
def test_no_output_stops_the_reader(agent: str, stdout: list[str], stderr: list[str], end: str) -> None:
    assert read_stream(output_formats()[agent_catalog()[agent].output], stdout, stderr, code=1).end == end


def test_a_limit_that_never_ends_has_no_end() -> None:
    told = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": float("inf")}}
    found = read_stream(output_formats()["claude"], [START, J(told)], [], code=1)
    assert (found.end, found.resets_at) == ("rate_limited", None)
