"""Classify an attempt: what prevents its tree from landing.

The checks decide about the tree, not the end of the session and not the claim of the agent: a green tree of a crashed
session can land, a red tree of a finished one cannot. The same evidence always gives the same failure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from unstuck.agents.claims import NO_MARKER, blocking_question, failure_report
from unstuck.agents.printed_json import PhaseResult, UnreadableResult, read_result
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import KIND_OF_SESSION_END, KIND_OF_SIGNAL, Evidence, signal_of
from unstuck.diagnosis.output.reading import Reading
from unstuck.diagnosis.output.tool_output import error_of, read_output
from unstuck.diagnosis.signature import signature
from unstuck.model.changes import Touch
from unstuck.model.failure import KINDS, Failure, Kind
from unstuck.model.outcome import ENDED_BY_US, Ended, Ending, Outcome
from unstuck.model.text import one_line, shown
from unstuck.model.verdict import CheckKind, CheckResult, Remark, Verdict
from unstuck.toolchain.shell import parts
from unstuck.toolchain.toolchains import checking_form

DETAIL_CHARS = 4000
SUMMARY_CHARS = 300
COMMAND_CHARS = 80
MESSAGE_CHARS = 200

KIND_OF_ENDING: Mapping[Ending, Kind] = {
    "not_started": Kind.AGENT_MISSING,
    "supervisor_died": Kind.INTERRUPTED,
    "worker_gone": Kind.INTERRUPTED,
    "stopped": Kind.INTERRUPTED,
    "first_output": Kind.HANG,
    "silence": Kind.HANG,
    "wall_clock": Kind.TIMEOUT,
    "signalled": Kind.KILLED,
}

KIND_OF_CHECK: Mapping[CheckKind, Kind] = {
    "verify": Kind.CHECK_FAILED,
    "test": Kind.TEST_FAILED,
    "lint": Kind.LINT_FAILED,
    "types": Kind.TYPES_FAILED,
    "format": Kind.FORMAT_FAILED,
    "build": Kind.BUILD_BROKEN,
}
KIND_OF_AUDIT_RULE: Mapping[str, Kind] = {
    "undoes": Kind.CHECK_FAILED,
    "scope": Kind.CLAIM_REFUTED,
    "secret": Kind.CLAIM_REFUTED,
    "unfinished-claim": Kind.CLAIM_REFUTED,
    "not-red": Kind.CHECK_FAILED,
}
"""Kinds of rejected changes. Every other rule means that the checks were tampered with."""
CHECK_ERROR_TYPES = frozenset({"test_failure", "lint_error", "typecheck_error", "format_error"})
"""Autobuild's names of failed checks."""
LIMIT_ENDINGS: tuple[Ending, ...] = ("first_output", "silence", "wall_clock")

PROVIDER_KINDS = frozenset({
    Kind.RATE_LIMITED, Kind.QUOTA_EXHAUSTED, Kind.PROVIDER_OVERLOADED, Kind.AUTH_FAILED, Kind.BILLING,
    Kind.CONTEXT_EXHAUSTED,
})  # fmt: skip
"""Kinds that the output of an agent may prove about its own end. The checks judge the rest of it."""
FAULT_ENDS = frozenset({"context_exhausted", "rate_limited", "overloaded", "auth_failed", "billing", "network"})
"""Ends of a session that say nothing about the work. They count unless the work is proven right."""
NEUTRAL_ENDS = frozenset({"", "done_claimed", "failed_claimed"})
"""Ends that say nothing against the agent before the checks ran."""
BROKEN_OFF_ENDS = frozenset({"killed", "tool_hang"})
"""Ends in which the output breaks off. The exit code shows the cause."""
SUPERVISOR_ENDINGS: tuple[Ending, ...] = ("not_started", *ENDED_BY_US)
RESOURCE_KINDS = frozenset({Kind.RESOURCE_BUSY, Kind.OUT_OF_MEMORY, Kind.DISK_FULL})
"""Reasons why a machine cannot start a program that is installed."""
CHECK_OUTPUT_KINDS = frozenset({
    Kind.CHECK_FAILED, Kind.TEST_FAILED, Kind.TEST_TIMEOUT, Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.FORMAT_FAILED,
    Kind.BUILD_BROKEN, Kind.SYNTAX_ERROR, Kind.MODULE_MISSING, Kind.IMPORT_CYCLE, Kind.DEPENDENCY_MISSING,
    Kind.DEPENDENCY_CONFLICT, Kind.PACKAGE_NOT_FOUND, Kind.COMMAND_NOT_FOUND, Kind.PERMISSION_DENIED,
    Kind.ENVIRONMENT_MISSING, Kind.DISK_FULL, Kind.OUT_OF_MEMORY, Kind.PORT_IN_USE, Kind.RESOURCE_BUSY,
    Kind.NETWORK_ERROR,
})  # fmt: skip
"""Kinds that the output of a failed check may prove. Other words in it are the project's own."""


LOCAL_ADDRESS = re.compile(r"(?i)\blocalhost\b|\b127\.\d+\.\d+\.\d+|\b0\.0\.0\.0\b|\[?::1\]?")
REFUSED = re.compile(r"(?i)\brefused\b|ECONNREFUSED")
"""Searched in the whole output, because the last line of a trace may say only "fetch failed"."""
CLIENT_COMMAND = re.compile(
    r"(?:curl|wget|https?|nc|ncat|telnet|psql|pg_isready|mysql|mysqladmin|redis-cli|mongosh|grpcurl|grep|jq|head|tail|test|\[|sleep)\s"
)
"""A part of a check that asks a server or reads its answer. No work of the agent makes that server answer."""
SCRIPT = re.compile(r"\.(?:sh|bash|py|rb|pl|php|[mc]?[jt]s)$")


def evidence_of(outcome: Outcome, verdict: Verdict) -> Evidence | None:
    """Return the evidence to diagnose before `classify`: the end of the agent, or the first failed check."""
    ended = outcome.ended
    if verdict.status == "pass" or ended.ending in ENDED_BY_US:
        return None
    if not ended.ok and not outcome.end:
        return Evidence(stdout=ended.tail, exit_code=ended.exit_code or 1)
    result = _red(verdict)
    if result is None or result.ended.ending in LIMIT_ENDINGS:
        return None
    if outcome.end not in NEUTRAL_ENDS and not _continued_after_denial(outcome, verdict):
        return None
    return Evidence(
        stdout=result.ended.tail,
        exit_code=result.ended.exit_code,
        command=result.command,
        check=None if result.kind == "verify" else result.kind,
    )


def classify(outcome: Outcome, verdict: Verdict, diagnosis: Diagnosis | None = None) -> Failure | None:
    """Return what prevents this tree from landing, or None. `diagnosis` is that of the evidence."""
    ended = outcome.ended
    diagnosis = None if diagnosis is not None and diagnosis.is_guess else diagnosis
    if verdict.status == "pass":
        if outcome.claimed or verdict.turned_green:
            return None
        if outcome.end in FAULT_ENDS and ended.ending not in SUPERVISOR_ENDINGS:
            return _end_failure(outcome)
        if KIND_OF_ENDING.get(ended.ending) is Kind.INTERRUPTED:
            return _failure(Kind.INTERRUPTED, _printed(outcome))
        return _with_result(outcome, _failure(Kind.NO_CLAIM, _printed(outcome), error=_last_words(outcome)))
    if (
        outcome.end not in NEUTRAL_ENDS
        and ended.ending not in SUPERVISOR_ENDINGS
        and not _continued_after_denial(outcome, verdict)
    ):
        return _end_failure(outcome)
    if diagnosis is not None and not ended.ok and not outcome.end and diagnosis.kind in PROVIDER_KINDS:
        return _failure(diagnosis.kind, ended.tail, because=diagnosis.message, diagnosis=diagnosis)
    rejected = _rejected(verdict)
    if rejected is not None and rejected.kind is Kind.TAMPERED:
        return rejected
    if ended.ending == "not_started" and diagnosis is not None and diagnosis.kind in RESOURCE_KINDS:
        return _failure(diagnosis.kind, ended.tail, because=diagnosis.message, diagnosis=diagnosis)
    if ended.ending in KIND_OF_ENDING and not outcome.claimed:
        kind, how = _break_off(ended)
        return _failure(kind, _printed(outcome), because=how, error=_last_words(outcome))
    if verdict.status == "inconclusive":
        return _failure(Kind.UNVERIFIED, "", because=verdict.reason)
    if not ended.ok and not outcome.claimed:
        how = f"it ended with exit code {ended.exit_code}"
        return _failure(Kind.AGENT_CRASHED, _printed(outcome), because=how, error=_last_words(outcome))
    result = _red(verdict)
    if outcome.claim == "failed" and (result is None or not _names_a_check(outcome)):
        return _failure(Kind.AGENT_FAILED, _printed(outcome), error=_own_words(outcome))
    if result is None:
        return rejected
    return flaky(result) if result.flaky else _with_result(outcome, red(result, diagnosis))


def _continued_after_denial(outcome: Outcome, verdict: Verdict) -> bool:
    """Return whether an agent worked on after a denied call and says that it is done."""
    return outcome.end == "permission_denied" and outcome.claim == "done" and bool(verdict.files)


def _end_failure(outcome: Outcome) -> Failure:
    """Return the failure that the typed end reason of the agent means."""
    kind, how = Kind.INTERRUPTED if outcome.lost else KIND_OF_SESSION_END[outcome.end], ""
    if outcome.end in BROKEN_OFF_ENDS:
        kind, how = _break_off(outcome.ended)
    is_fault = outcome.end in FAULT_ENDS or outcome.lost
    error = (
        one_line(outcome.message, MESSAGE_CHARS)
        if is_fault
        else blocking_question(outcome.message) or _last_words(outcome)
    )
    return replace(_failure(kind, _printed(outcome), because=how, error=error), resets_at=outcome.resets_at)


def _break_off(ended: Ended) -> tuple[Kind, str]:
    """Return what broke a session off, and its signal. A crash is not a kill."""
    kind = KIND_OF_ENDING.get(ended.ending, Kind.KILLED)
    if kind is not Kind.KILLED:
        return kind, ""
    signal = signal_of(-ended.signal if ended.signal else ended.exit_code)
    crashed = KIND_OF_SIGNAL.get(signal) is Kind.PROGRAM_CRASHED
    return Kind.AGENT_CRASHED if crashed else kind, f"SIG{signal}" if signal else ""


def _printed(outcome: Outcome) -> str:
    """Return the agent's message, or its output without event records, which repeat the brief."""
    if not outcome.end:
        return outcome.ended.tail
    return outcome.message or "\n".join(line for line in outcome.ended.tail.splitlines() if not EVENT.search(line))


EVENT = re.compile(r'^\{.*\}$|":.*\}$')
"""A line of an event record, or the end of one that is cut."""


def reported_result(outcome: Outcome) -> PhaseResult | UnreadableResult | None:
    """Return the result that the agent reported in autobuild's form, where it did."""
    return read_result(outcome.words)


def _with_result(outcome: Outcome, failure: Failure) -> Failure:
    """Return a failure as the agent's own result explains it, or unchanged without a result."""
    result = reported_result(outcome)
    if result is None or not failure.charged or outcome.claim == "failed":
        return failure
    because = _clause(failure)
    kind = Kind.CLAIM_REFUTED
    if isinstance(result, UnreadableResult):
        kind, because = Kind.RESULT_UNREADABLE, f"{one_line(result.reason, MESSAGE_CHARS)}; {because}"
    elif result.unfinished:
        done = f"{result.tasks_completed} of {result.tasks_total} tasks completed"
        kind, because = Kind.TASK_INCOMPLETE, f"{done}; {because}"
    elif failure.kind is Kind.NO_CLAIM:
        return failure
    means = KINDS[kind].means
    return replace(failure, kind=kind, summary=f"{means[0].upper()}{means[1:]}: {because}")


def _names_a_check(outcome: Outcome) -> bool:
    """Return whether an agent that gave up reports a failed check, which then says more than the agent."""
    result = reported_result(outcome)
    return isinstance(result, PhaseResult) and result.error_type in CHECK_ERROR_TYPES


def _own_words(outcome: Outcome) -> str:
    """Return the error that an agent reports: in its result, in a block, or in its last words."""
    result, report = reported_result(outcome), failure_report(outcome.words)
    error = "" if report.error == NO_MARKER else report.error
    if isinstance(result, PhaseResult):
        error = result.error_message
    return one_line(error, MESSAGE_CHARS) or _last_words(outcome)


def _last_words(outcome: Outcome) -> str:
    """Return the error line of an agent that died, or else its last line."""
    return one_line(error_of(Reading(), outcome.words), MESSAGE_CHARS)


def _clause(failure: Failure) -> str:
    """Return a summary as part of another sentence."""
    return f"{failure.summary[0].lower()}{failure.summary[1:]}"


def conflict(files: tuple[str, ...], touches: tuple[Touch, ...] = ()) -> Failure:
    """Return the failure of work that cannot be merged with what landed meanwhile."""
    sides = [f"{touch.file} ({touch.task or 'a commit of yours'}: {_touched(touch)})" for touch in touches]
    failure = _failure(Kind.MERGE_CONFLICT, "\n".join(sides or files), because=", ".join(files[:3]))
    return replace(failure, touches=touches)


def combined_failure(failure: Failure, other: str) -> Failure:
    """Return the failure of work that is green alone and red together with another task."""
    how = f"Green alone, red together with {other}: {_clause(failure)}"
    error = f"red together with {other}: {failure.error}" if failure.error else ""
    return replace(failure, summary=how, together=other, error=error)


def _touched(touch: Touch) -> str:
    return f"lines {touch.first}-{touch.last}" if touch.how == "modified" else touch.how


def setup_failure(command: str, ended: Ended) -> Failure:
    """Return the failure of a fresh worktree whose set-up failed."""
    return _failure(Kind.SETUP_FAILED, ended.tail, because=f"`{command}`", error=error_of(Reading(), ended.tail))


def sandbox_failed(problem: str, way_on: str) -> Failure:
    """Return the failure of a sandbox that does not start, which is no fault of the agent in it."""
    summary = f"The sandbox of the session does not start: {problem.rstrip('.')}. {way_on}"
    error = f"the sandbox does not start: {problem.rstrip('.')}"
    return Failure(kind=Kind.SETUP_FAILED, summary=summary, detail=summary, error=error)


def call_failure(diagnosis: Diagnosis) -> Failure:
    """Return the failure of an attempt that is known only by the output of its last call."""
    whole = f"{diagnosis.evidence.stdout}\n{diagnosis.evidence.stderr}".strip()
    return replace(
        _failure(diagnosis.kind, whole, because=diagnosis.message, diagnosis=diagnosis), signature=diagnosis.signature
    )


def red(result: CheckResult, diagnosis: Diagnosis | None = None) -> Failure:
    """Return the failure that a failed check shows."""
    command, text = f"`{one_line(result.command, COMMAND_CHARS)}`", result.ended.tail
    if result.ended.ending in LIMIT_ENDINGS:
        return _failure(Kind.CHECK_TIMEOUT, text, because=command)
    if result.ended.ok and result.repaired:
        return _failure(KIND_OF_CHECK[result.kind], f"{repairs(result)}.", because=repairs(result))
    kind = KIND_OF_CHECK[result.kind]
    if result.external_service_down:
        kind = Kind.NETWORK_ERROR
    elif diagnosis is not None and diagnosis.kind in CHECK_OUTPUT_KINDS and not _is_missing_work(diagnosis, result):
        kind = diagnosis.kind
    error = error_of(read_output(text, formatter=result.kind == "format"), text)
    error = one_line(error, MESSAGE_CHARS)
    how = f"{command} (exit code {result.ended.exit_code})"
    failure = _failure(kind, text, because=f"{error}, from {how}" if error else how, diagnosis=diagnosis)
    return replace(failure, error=f"{error}, from {command}" if error else "")


def repairs(result: CheckResult) -> str:
    """Return the message about a check that repairs files, with what to do about it."""
    files = f"{', '.join(result.repaired[:5])}{' and more' if len(result.repaired) > 5 else ''}"  # noqa: PLR2004  # enough to see which
    form = checking_form(result.command)
    option = f" or ask it to look only ({form})" if form else ""
    command = one_line(result.command, COMMAND_CHARS)
    return (
        f"`{command}` passes only because it changes {files}, and the tree that would land is without that. "
        f"Run it and keep what it writes,{option or ' or use its checking form'}"
    )


def flaky(result: CheckResult) -> Failure:
    """Return the failure of a check that fails in another way every time."""
    how = f"`{one_line(result.command, COMMAND_CHARS)}` failed {result.runs} times, never twice in the same tests"
    return _failure(Kind.FLAKY, result.ended.tail, because=how)


def _rejected(verdict: Verdict) -> Failure | None:
    """Return the failure of a rejected change, tampering first, or None."""
    remarks = [remark for remark in verdict.remarks if remark.severity == "reject"]
    if not remarks:
        return None
    kinds = [KIND_OF_AUDIT_RULE.get(remark.rule, Kind.TAMPERED) for remark in remarks]
    kind = Kind.TAMPERED if Kind.TAMPERED in kinds else kinds[0]
    decisive = [remark for remark, remark_kind in zip(remarks, kinds, strict=True) if remark_kind is kind]
    return Failure(
        kind=kind,
        summary=_listed(decisive),
        detail="\n".join(map(str, decisive))[:DETAIL_CHARS],
        signature=signature("\n".join(sorted({f"{remark.rule} {remark.path}" for remark in decisive})), kind),
    )


def _listed(remarks: Sequence[Remark]) -> str:
    more = f" And {len(remarks) - 1} more." if len(remarks) > 1 else ""
    return one_line(f"{remarks[0]}{more}", SUMMARY_CHARS)


def _is_missing_work(diagnosis: Diagnosis, result: CheckResult) -> bool:
    """Return whether the work must provide what a check misses: its script, or a server on this machine."""
    calls = parts(result.command)
    scripts = {word for call in calls for word in call.split()[1:] if SCRIPT.search(word)}
    only_clients = all(map(CLIENT_COMMAND.match, calls))
    local_address = LOCAL_ADDRESS.search(diagnosis.message) or REFUSED.search(result.ended.tail)
    is_refused = diagnosis.kind is Kind.NETWORK_ERROR and local_address is not None
    return not scripts.isdisjoint(dict(diagnosis.names).values()) or (is_refused and not only_clients)


def _red(verdict: Verdict) -> CheckResult | None:
    return next((result for result in verdict.results if result.status == "fail"), None)


def _failure(
    kind: Kind, detail: str, *, because: str = "", error: str = "", diagnosis: Diagnosis | None = None
) -> Failure:
    means = KINDS[kind].means
    summary = ": ".join(part for part in (means, because, error) if part)
    return Failure(
        kind=kind,
        summary=summary[0].upper() + summary[1:],
        detail=shown(detail)[-DETAIL_CHARS:],
        signature=signature(detail, kind, diagnosis.tests if diagnosis else ()) if detail else "",
        tests=diagnosis.tests if diagnosis else (),
        rule=diagnosis.rule if diagnosis and diagnosis.kind is kind else "",
        names=tuple(value for _, value in diagnosis.names) if diagnosis and diagnosis.kind is kind else (),
        error=error,
    )
