"""Classify the errors that providers and agents report.

Only error fields and error lines are judged here, never what an agent says or shows.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Final

from unstuck.agents.printed_json import LONGEST_LINE, JsonEvent, event_of
from unstuck.agents.reset_times import reset_in_headers, reset_in_text
from unstuck.model.outcome import End, Fault

JUDGED_CHARS = 4_000
"""Only the beginning of an error is judged: the provider's own words stand there."""
MESSAGE_CHARS = 500
MAX_ERROR_LINES = 400
"""Only the last lines beside the event stream are searched for errors."""

STATUS_ENDS: Final[Mapping[int, End]] = {
    401: "auth_failed",
    402: "billing",
    403: "auth_failed",
    408: "network",
    413: "context_exhausted",
    429: "rate_limited",
}
"""The meaning of an HTTP status. Any 5xx is `overloaded`, any other 4xx is `bad_request`."""
DECISIVE_STATUSES: Final = (401, 403, 429)
"""These mean the same whatever the words are. Only an unpaid account is known from the words."""
LOGIN_STATUS = 401
CLIENT_ERROR, SERVER_ERROR = 400, 500


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """The words of an error and the end of the session that they mean."""

    end: End
    pattern: str
    unless: str = r"(?!)"
    """Words that cancel a match. The default never matches."""

    def matches(self, text: str) -> bool:
        return _compiled(self.pattern).search(text) is not None and _compiled(self.unless).search(text) is None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is needed: all of them together take too long at import."""
    return re.compile(pattern, re.MULTILINE)


ERROR_RULES: Final = (
    ErrorRule(
        end="refused",
        pattern=(
            r"(?i)content[_ ]?(?:policy|filter)\w*[_ ]?violation|\bcontent_filter\b|ContentPolicyViolation"
            r"|blocked by (?:our |the )?(?:content|safety)|\b(?:PROHIBITED_CONTENT|SAFETY)\b"
            r"|(?:unable to respond|flagged|violat\w+)\b.{0,60}\b(?:usage polic|acceptable use|safety)"
            r"|\bsafeguards (?:flagged|stopped)\b|^refusal$|cyber_policy"
        ),
    ),
    ErrorRule(
        end="context_exhausted",
        pattern=(
            "(?i)prompt (?:is )?(?:too long|as too long)"
            r"|context[_ ]?(?:length|window|size|limit)\w*.{0,40}(?:exceed|overflow|reached|full|too)"
            r"|(?:exceed\w*|overflow\w*|beyond|ran out of room in|larger than|over) (?:the "
            "|your )?(?:model'?s? )?(?:maximum )?context|maximum context length|context_length_exceeded"
            r"|context_window_exceeded|ContextWindow\w*Error|Context\w*Overflow\w*|too many (?:input )?tokens"
            "|input (?:is )?too long|input token count.{0,40}exceed|reduce the length of the messages"
            "|max_output_tokens|output token maximum|request (?:too large|exceeds the maximum size)"
            "|token limit (?:exceeded|reached)|Unable to continue: Context limit"
        ),
        unless=r"(?i)per[- ](?:minute|hour|day)|rate[ _-]?limit|\bTPM\b",
    ),
    ErrorRule(
        end="billing",
        pattern=(
            "(?i)billing_(?:error|hard_limit_reached|not_active)|credit balance"
            "|insufficient[_ ](?:credits?|balance|funds|quota)|insufficient_quota|out of credits?"
            "|credits? (?:have )?(?:exhausted|run out)|creditsExhausted|payment required"
            r"|check your plan and billing|billing details|quota exceeded\. check|requires more credits"
            "|subscription (?:has )?(?:expired|required|inactive)|account (?:is not active|deactivated|suspended)"
        ),
    ),
    ErrorRule(
        end="auth_failed",
        pattern=(
            "(?i)authentication[_ ](?:error|failed|required)|AuthenticationError|PermissionDeniedError"
            r"|Auth\w*Required|invalid[_ ](?:x-)?api[_ -]?key|incorrect api key"
            "|api[_ ]key (?:not valid|is invalid|expired|is missing|not found|required)|API_KEY_INVALID"
            r"|\b(?:UNAUTHENTICATED|PERMISSION_DENIED)\b|permission_error|unauthori[sz]ed|\bforbidden\b"
            "|token (?:has )?(?:expired|been revoked)|invalid_grant"
            "|(?:not|no longer|aren't) (?:logged|signed) in|logged out"
            r"|please (?:run|use) \W?/?\S*\s?(?:auth )?log ?in|please (?:log|sign) ?in|log ?in required"
            r"|run \W?\S+ (?:auth )?login|set an auth method"
            "|no auth(?:entication)? (?:method|type|information|credentials)|waiting for auth"
            r"|(?:set|missing|provide|specify|export|no|need|find)\b.{0,40}\b[A-Z]{3,12}_API_KEY\b"
            "|no (?:api key|credentials|provider configured|model provider)|enter your api key|do you trust"
            "|trust (?:the files in )?this (?:folder|workspace|directory)"
            r"|\btrusted (?:folder|workspace|directory)|goose configure"
        ),
    ),
    ErrorRule(
        end="rate_limited",
        pattern=(
            r"(?i)rate[_ -]?limit|RateLimit\w*|\bRESOURCE_EXHAUSTED\b|too many requests"
            "|(?:usage|session|hour|daily|weekly|monthly|message|plan|request|opus|sonnet|premium requests?"
            r"|5-hour)[ -]limit\b|(?:hit|reached|exceeded) your (?:\w+ ){0,2}(?:limit|quota)|usage_limit_reached"
            r"|\bquota\b|ThrottlingException|throttl|(?:tokens|requests) per (?:min|hour|day)"
            "|limit (?:will )?resets?"
        ),
    ),
    ErrorRule(
        end="max_turns",
        pattern=(
            r"(?i)(?:max(?:imum)?|limit)\b(?: number)?(?: of)?[ _-]?(?:session )?(?:turns?|iterations?|steps"
            "|actions|tool[ _]calls|rounds|wall[ _]time)|(?:turn|step|iteration|mistake) limit|LimitsExceeded"
            "|loop detected|LoopDetected|max_?iterations|mistake_limit"
        ),
    ),
    ErrorRule(
        end="budget",
        pattern="(?i)max[_ ]?budget|budget[_ ](?:exhausted|exceeded|limit)|cost limit|spending limit",
    ),
    ErrorRule(
        end="overloaded",
        pattern=(
            "(?i)overloaded|server[_ ]error|internal server error|InternalServerError|ServiceUnavailable"
            r"|service (?:is )?(?:temporarily )?unavailable|\bUNAVAILABLE\b|(?:over|at) capacity|high demand"
            "|bad gateway|gateway time-?out|^api_error$|server_is_busy|server is busy"
        ),
    ),
    ErrorRule(
        end="network",
        pattern=(
            "(?i)connection[_ ](?:failed|error|refused|reset|closed|aborted|timed out|terminated)"
            "|ConnectionError|ConnectError|Connect(?:ion)?Timeout"
            r"|(?-i:\b(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH"
            r"|EPIPE)\b)|fetch failed|socket hang up|network (?:error|is unreachable|request failed)"
            "|waiting for network|unable to connect|(?:could not|cannot|can't|failed to) (?:connect|resolve)"
            "|name resolution|getaddrinfo|error sending request|stream (?:disconnected|closed|ended|error)"
            r"|^reconnecting|(?:request|response|connection|model|API)\w* timed? ?out|Timeout(?:Error)?\b"
            "|^(?:TypeError: )?terminated$"
        ),
    ),
    ErrorRule(
        end="permission_denied",
        pattern=(
            "(?i)cannot be used with root/sudo|denied by (?:policy|user|permission)|requires? approval"
            "|permission (?:to use|denied and could not)|(?:approval|permission)s? (?:required|not granted)"
        ),
    ),
    ErrorRule(
        end="bad_request",
        pattern=(
            r"(?i)invalid[_ ]request|BadRequest\w*|bad request|INVALID_ARGUMENT|UnprocessableEntity"
            r"|model_not_found|\b(?:Model)?NotFoundError|not_found_error"
            r"|(?:model|deployment)\b.{0,80}\b(?:not (?:found|exist|supported|available)|does not exist)"
            r"|unknown model|UnsupportedParams|no conversation found|no rollout found|session (?:\S+ )?not found"
            "|unknown (?:option|argument|command)|unexpected argument|invalid (?:value|option|argument)"
        ),
    ),
)
"""The first rule that matches wins."""

STATED_STATUS = re.compile(
    r"(?i)^\W{0,3}(?:API Error:? ?\(?|Error:? )?([45]\d\d)\b"
    r"|\b(?:status(?:[ _]?code)?|HTTP(?:/[\d.]+)?|code|rejected|API Error|http"
    r"""|Last error)[\s"'=:(_]{1,4}([45]\d\d)\b"""
)
"""The HTTP status in the text of an error."""
PROGRAM_ERROR = re.compile(
    r"\A\W{0,3}(?:Uncaught )?(?:Error: )?(?:(?:[\w.]+\.)?(?:ImportError|ModuleNotFoundError|AttributeError"
    "|NameError|UnboundLocalError|SyntaxError|IndentationError|TabError|ReferenceError|FileNotFoundError"
    r"|NotADirectoryError|IsADirectoryError)\b|Cannot find (?:module|package)\b)"
)
"""The beginning of an error of the agent's own program.

It names modules and files, which may be called like anything: `cannot import name 'RateLimitError'`.
"""
_ERROR_LINE = r"(?:\w+: )?(?:fatal |api )?error\b[^:\n]{0,60}: ?(?P<error>.*)"
_TYPED_ERROR_LINE = (
    r"(?P<typed>(?:[\w.]+\.)?\w*(?:Error|Exception|Exceeded)\b[:( ].*)"
    r"|.*\bas it raised (?P<raised>\w+(?:Error|Exception): .*)|Attempt \d+ failed(?P<attempt>.*)"
    r"|Retrying (?:in|after) .*?: (?P<retry>.*)|\[(?P<api>API Error: .*)"
    r"|(?P<words>.*(?:log ?in\b|logged in|signed in|sign in\b|api key|auth method|authenticat|do you trust"
    "|trusted (?:directory|folder|workspace)|cannot be used with root|no rollout found|no conversation found"
    "|usage limit|credit balance).*)"
)


@cache
def error_line() -> re.Pattern[str]:
    """Return the pattern of a line with an error of the agent itself. Other characters may stand in front of it."""
    return re.compile(rf"(?:\W{{1,3}}\s?)?(?:{_ERROR_LINE}|{_TYPED_ERROR_LINE})", re.IGNORECASE)


def fault_from_error(
    message: str, *, status: object = None, name: str = "", headers: object = None, at: float | None = None
) -> Fault | None:
    """Judge an error by its HTTP status, its type's name and its words. Return None if it matches nothing."""
    text = _unpacked(message)[:JUDGED_CHARS]
    if PROGRAM_ERROR.search(text):
        return None
    code = status if isinstance(status, int) and not isinstance(status, bool) else _stated_status(text)
    named_text = f"{text}\n{_unpacked(name)}"[: 2 * JUDGED_CHARS]
    resets_at = reset_in_text(named_text, at) or reset_in_headers(headers, at)
    words = f"{name}\n{text}"
    end = _end_by_status(code, words, resets_at) or _end_by_words(words)
    if end is None and code is not None and CLIENT_ERROR <= code < SERVER_ERROR:
        end = "bad_request"
    if end == "billing" and resets_at is not None:
        end = "rate_limited"  # an unpaid account has no time at which it works again
    if end is None:
        return None
    return Fault(end=end, message=" ".join(message.split())[:MESSAGE_CHARS], resets_at=resets_at)


def _stated_status(text: str) -> int | None:
    match = STATED_STATUS.search(text)
    return int(match[1] or match[2]) if match else None


def _end_by_status(code: int | None, words: str, resets_at: float | None) -> End | None:
    if code is None:
        return None
    if code >= SERVER_ERROR:
        return "overloaded"
    end = _end_by_words(words)
    if code in DECISIVE_STATUSES:
        is_unpaid = code != LOGIN_STATUS and end == "billing" and resets_at is None
        return "billing" if is_unpaid else STATUS_ENDS[code]
    if end in ("context_exhausted", "billing", "auth_failed", "refused"):
        return end
    return STATUS_ENDS.get(code)


def _end_by_words(text: str) -> End | None:
    return next((rule.end for rule in ERROR_RULES if rule.matches(text)), None)


def newer_fault(old: Fault | None, new: Fault) -> Fault:
    """Return the newer fault. If only the older one of the same kind has a reset time, keep that time."""
    if old is not None and old.end == new.end and new.resets_at is None:
        return replace(new, resets_at=old.resets_at)
    return new


def _unpacked(message: str) -> str:
    """Return the words of an error. Of an error in JSON these are its strings and numbers."""
    start = message.find("{")
    if start < 0:
        return message
    try:
        value, end = json.JSONDecoder().raw_decode(message, start)
    except (ValueError, RecursionError):
        return message
    words = " ".join(f"{name}: {leaf}" for name, leaf in _leaves(value))
    return f"{message[:start]}{words}{message[end:]}"


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, name)
    elif value is not None:
        yield name, value


# --- errors in the output of an agent


def fault_in_event(event: JsonEvent, at: float | None = None) -> Fault | None:
    """Judge an error event. The error is a text, an object, or an object in an object."""
    inner = event.get("error", event)
    if not isinstance(inner, dict):
        return fault_from_error(str(inner), status=event.get("status_code"), at=at)
    nested = inner.get("data")
    details: JsonEvent = nested if isinstance(nested, dict) else inner
    message = details.get("message") or inner.get("message") or json.dumps(inner, ensure_ascii=False)
    body = details.get("responseBody") or ""
    codes = (details.get(key) for key in ("statusCode", "status_code", "status", "code"))
    status = next((code for code in codes if isinstance(code, int)), None)
    names = (inner.get(key) for key in ("name", "type", "code", "errorType"))
    name = " ".join(name for name in names if isinstance(name, str))
    return fault_from_error(
        str(message), status=status, name=f"{name}\n{body}", headers=details.get("responseHeaders"), at=at
    )


def last_error_in(lines: Iterable[str], pattern: re.Pattern[str], at: float | None = None) -> Fault | None:
    """Return the last error that the lines report. `pattern` matches a line with an error."""
    last: Fault | None = None
    kept = list(deque(lines, maxlen=MAX_ERROR_LINES))
    for line, next_line in pairwise([*kept, ""]):
        fault = _fault_in_line(line, next_line, pattern, at)
        last = newer_fault(last, fault) if fault is not None else last
    return last


def _fault_in_line(line: str, next_line: str, pattern: re.Pattern[str], at: float | None) -> Fault | None:
    event = event_of(line)
    if event is not None:
        is_error = event.get("status") == "error" or event.get("type") == "error" or "error" in event
        return fault_in_event(event, at) if is_error else None
    match = pattern.match(line[:LONGEST_LINE].lstrip())
    if match is None:
        return None
    words = next((group for group in match.groups() if group), "") or line
    for text in (words, line.strip(), f"{words} {next_line.strip()}"):
        if fault := fault_from_error(text, at=at):
            return fault
    return None


def last_fault(lines: Sequence[str], at: float) -> Fault | None:
    """Return the last error in the output of a command. Errors of its own program do not count."""
    lines = without_program_errors(lines)
    if fault := last_error_in(lines, error_line(), at):
        return fault
    faults = (fault_from_error(line, at=at) for line in reversed(lines))
    return next(filter(None, faults), None)


def without_program_errors(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines without the last error of the agent's own program and the traceback above it."""
    numbers = (number for number in reversed(range(len(lines))) if PROGRAM_ERROR.search(lines[number]))
    error = next(numbers, None)
    if error is None:
        return lines
    start = error
    while start and lines[start - 1][:1].isspace():
        start -= 1
    return (*lines[:start], *lines[error + 1 :])
