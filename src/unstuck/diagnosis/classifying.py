"""Say what stands in the way of landing, from evidence alone. Pure: same evidence, same failure.

What counts is what the checks say about the tree, never how the session ended or what the agent claims:
a green tree from a crashed session can land, a red one from a proud session cannot.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from unstuck.agents.claims import NO_MARKER, blocking_question, failure_report
from unstuck.agents.printed_json import PhaseResult, UnreadableResult, read_result
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.judging import BY_END, BY_SIGNAL, Diagnosis, signal_of
from unstuck.diagnosis.output.tool_output import Reading, error_of, read
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

BY_ENDING: Mapping[Ending, Kind] = {
    "not_started": Kind.AGENT_MISSING,
    "supervisor_died": Kind.INTERRUPTED,
    "worker_gone": Kind.INTERRUPTED,
    "stopped": Kind.INTERRUPTED,
    "first_output": Kind.HANG,
    "silence": Kind.HANG,
    "wall_clock": Kind.TIMEOUT,
    "signalled": Kind.KILLED,
}

BY_CHECK: Mapping[CheckKind, Kind] = {
    "verify": Kind.CHECK_FAILED,
    "test": Kind.TEST_FAILED,
    "lint": Kind.LINT_FAILED,
    "types": Kind.TYPES_FAILED,
    "format": Kind.FORMAT_FAILED,
    "build": Kind.BUILD_BROKEN,
}
BY_RULE: Mapping[str, Kind] = {
    "undoes": Kind.CHECK_FAILED,
    "scope": Kind.CLAIM_REFUTED,
    "secret": Kind.CLAIM_REFUTED,
    "unfinished-claim": Kind.CLAIM_REFUTED,
    "not-red": Kind.CHECK_FAILED,
}
"""What a rejected change is called; by every other rule the checks were tampered with."""
OF_GATES = frozenset({"test_failure", "lint_error", "typecheck_error", "format_error"})
"""Autobuild's words for a red check."""
LIMITS: tuple[Ending, ...] = ("first_output", "silence", "wall_clock")

OF_PROVIDERS = frozenset({
    Kind.RATE_LIMITED, Kind.QUOTA_EXHAUSTED, Kind.PROVIDER_OVERLOADED, Kind.AUTH_FAILED, Kind.BILLING,
    Kind.CONTEXT_EXHAUSTED,
})  # fmt: skip
"""What an agent's output may say about its own end; the rest of it is about its work, which the checks judge."""
FAULTS = frozenset({"context_exhausted", "rate_limited", "overloaded", "auth_failed", "billing", "network"})
"""Ends of a session that are nobody's work: they count whatever the checks say, unless the work is proven right."""
NOT_JUDGED = frozenset({"", "done_claimed", "failed_claimed"})
"""Ends that say nothing against the agent before the checks have spoken."""
CUT_OFF = frozenset({"killed", "tool_hang"})
"""Ends of which the output shows no more than that it breaks off; who did that, the process tells."""
OURS: tuple[Ending, ...] = ("not_started", *ENDED_BY_US)
SHORT = frozenset({Kind.RESOURCE_BUSY, Kind.OUT_OF_MEMORY, Kind.DISK_FULL})
"""What keeps a machine from starting a program that it has: nobody has to install anything."""
OF_CHECKS = frozenset({
    Kind.CHECK_FAILED, Kind.TEST_FAILED, Kind.TEST_TIMEOUT, Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.FORMAT_FAILED,
    Kind.BUILD_BROKEN, Kind.SYNTAX_ERROR, Kind.MODULE_MISSING, Kind.IMPORT_CYCLE, Kind.DEPENDENCY_MISSING,
    Kind.DEPENDENCY_CONFLICT, Kind.PACKAGE_NOT_FOUND, Kind.COMMAND_NOT_FOUND, Kind.PERMISSION_DENIED,
    Kind.ENVIRONMENT_MISSING, Kind.DISK_FULL, Kind.OUT_OF_MEMORY, Kind.PORT_IN_USE, Kind.RESOURCE_BUSY,
    Kind.NETWORK_ERROR,
})  # fmt: skip
"""What a red check's output may make of it. Other words in it are the project's own."""


AT_HOME = re.compile(r"(?i)\blocalhost\b|\b127\.\d+\.\d+\.\d+|\b0\.0\.0\.0\b|\[?::1\]?")
REFUSED = re.compile(r"(?i)\brefused\b|ECONNREFUSED")
"""What the last line of a trace need not say again: "fetch failed"."""
ONLY_ASKS = re.compile(
    r"(?:curl|wget|https?|nc|ncat|telnet|psql|pg_isready|mysql|mysqladmin|redis-cli|mongosh|grpcurl|grep|jq|head|tail|test|\[|sleep)\s"
)
"""A part of a check that asks a server, or looks at what it answered: nothing that an agent writes makes the server answer."""
SCRIPT = re.compile(r"\.(?:sh|bash|py|rb|pl|php|[mc]?[jt]s)$")


def evidence_of(outcome: Outcome, verdict: Verdict) -> Evidence | None:
    """Return what is worth a closer look before `classify`, if anything: the agent's end, or the first red check."""
    ended = outcome.ended
    if verdict.status == "pass" or ended.ending in ENDED_BY_US:
        return None
    if not ended.ok and not outcome.end:
        return Evidence(stdout=ended.tail, exit_code=ended.exit_code or 1)
    result = _red(verdict)
    if result is None or result.ended.ending in LIMITS:
        return None
    if outcome.end not in NOT_JUDGED and not _did_without(outcome, verdict):
        return None
    return Evidence(
        stdout=result.ended.tail,
        exit_code=result.ended.exit_code,
        command=result.command,
        check=None if result.kind == "verify" else result.kind,
    )


def classify(outcome: Outcome, verdict: Verdict, found: Diagnosis | None = None) -> Failure | None:
    """Return what stands in the way of landing this tree, or None. `found`: what a closer look at the evidence gave."""
    ended = outcome.ended
    found = None if found is not None and found.guessed else found
    if verdict.status == "pass":
        if outcome.claimed or verdict.turned_green:
            return None
        if outcome.end in FAULTS and ended.ending not in OURS:
            return _typed(outcome)
        if BY_ENDING.get(ended.ending) is Kind.INTERRUPTED:
            return _failure(Kind.INTERRUPTED, _printed(outcome))
        return _reported(outcome, _failure(Kind.NO_CLAIM, _printed(outcome), error=_last_words(outcome)))
    if outcome.end not in NOT_JUDGED and ended.ending not in OURS and not _did_without(outcome, verdict):
        return _typed(outcome)
    if found is not None and not ended.ok and not outcome.end and found.kind in OF_PROVIDERS:
        return _failure(found.kind, ended.tail, because=found.message, found=found)
    rejected = _rejected(verdict)
    if rejected is not None and rejected.kind is Kind.TAMPERED:
        return rejected
    if ended.ending == "not_started" and found is not None and found.kind in SHORT:
        return _failure(found.kind, ended.tail, because=found.message, found=found)
    if ended.ending in BY_ENDING and not outcome.claimed:
        kind, how = _cut_off(ended)
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
    return flaky(result) if result.flaky else _reported(outcome, red(result, found))


def _did_without(outcome: Outcome, verdict: Verdict) -> bool:
    """Whether an agent that was denied a call worked on and says that it is done: then its work is judged."""
    return outcome.end == "permission_denied" and outcome.claim == "done" and bool(verdict.files)


def _typed(outcome: Outcome) -> Failure:
    """Say what the agent's own end reason means."""
    kind, how = Kind.INTERRUPTED if outcome.lost else BY_END[outcome.end], ""
    if outcome.end in CUT_OFF:
        kind, how = _cut_off(outcome.ended)
    whole = outcome.end in FAULTS or outcome.lost
    said = (
        one_line(outcome.message, MESSAGE_CHARS)
        if whole
        else blocking_question(outcome.message) or _last_words(outcome)
    )
    return replace(_failure(kind, _printed(outcome), because=how, error=said), resets_at=outcome.resets_at)


def _cut_off(ended: Ended) -> tuple[Kind, str]:
    """Say what broke a session off, and its signal: a program that crashed was killed by nobody."""
    kind = BY_ENDING.get(ended.ending, Kind.KILLED)
    if kind is not Kind.KILLED:
        return kind, ""
    signal = signal_of(-ended.signal if ended.signal else ended.exit_code)
    crashed = BY_SIGNAL.get(signal) is Kind.PROGRAM_CRASHED
    return Kind.AGENT_CRASHED if crashed else kind, f"SIG{signal}" if signal else ""


def _printed(outcome: Outcome) -> str:
    """Return what the agent said, or what it printed; a record of events is for programs, and holds our own brief again."""
    if not outcome.end:
        return outcome.ended.tail
    return outcome.message or "\n".join(line for line in outcome.ended.tail.splitlines() if not EVENT.search(line))


EVENT = re.compile(r'^\{.*\}$|":.*\}$')
"""A line of such a record, or the end of one that is cut."""


def result_of(outcome: Outcome) -> PhaseResult | UnreadableResult | None:
    """Return the result that the agent reported in autobuild's form, where it did."""
    return read_result(outcome.words)


def _reported(outcome: Outcome, failure: Failure) -> Failure:
    """Judge work that does not hold by what the agent reported of it in so many words, where it reported anything."""
    said = result_of(outcome)
    if said is None or not failure.charged or outcome.claim == "failed":
        return failure
    because = _clause(failure)
    kind = Kind.CLAIM_REFUTED
    if isinstance(said, UnreadableResult):
        kind, because = Kind.RESULT_UNREADABLE, f"{one_line(said.reason, MESSAGE_CHARS)}; {because}"
    elif said.unfinished:
        done = f"{said.tasks_completed} of {said.tasks_total} tasks completed"
        kind, because = Kind.TASK_INCOMPLETE, f"{done}; {because}"
    elif failure.kind is Kind.NO_CLAIM:
        return failure
    means = KINDS[kind].means
    return replace(failure, kind=kind, summary=f"{means[0].upper()}{means[1:]}: {because}")


def _names_a_check(outcome: Outcome) -> bool:
    """Whether an agent that gave up says that a check fails: then the check itself tells more than the agent."""
    said = result_of(outcome)
    return isinstance(said, PhaseResult) and said.error_type in OF_GATES


def _own_words(outcome: Outcome) -> str:
    """Return the error that an agent reports of itself: in a result, in a block, or as the last thing that it says."""
    said, report = result_of(outcome), failure_report(outcome.words)
    told = said.error_message if isinstance(said, PhaseResult) else "" if report.error == NO_MARKER else report.error
    return one_line(told, MESSAGE_CHARS) or _last_words(outcome)


def _last_words(outcome: Outcome) -> str:
    """Return the error line of an agent that died, or else the last thing that it said."""
    return one_line(error_of(Reading(), outcome.words), MESSAGE_CHARS)


def _clause(failure: Failure) -> str:
    """Return a summary as part of another sentence."""
    return f"{failure.summary[0].lower()}{failure.summary[1:]}"


def conflict(files: tuple[str, ...], touches: tuple[Touch, ...] = ()) -> Failure:
    """Say that the work cannot be merged with what landed meanwhile, and who changed what."""
    sides = [f"{touch.file} ({touch.task or 'a commit of yours'}: {_touched(touch)})" for touch in touches]
    failure = _failure(Kind.MERGE_CONFLICT, "\n".join(sides or files), because=", ".join(files[:3]))
    return replace(failure, touches=touches)


def red_together(failure: Failure, other: str) -> Failure:
    """Say that the work is green alone and red with another task's, and whose that is."""
    how = f"Green alone, red together with {other}: {_clause(failure)}"
    error = f"red together with {other}: {failure.error}" if failure.error else ""
    return replace(failure, summary=how, together=other, error=error)


def _touched(touch: Touch) -> str:
    return f"lines {touch.first}-{touch.last}" if touch.how == "modified" else touch.how


def set_up_failed(command: str, ended: Ended) -> Failure:
    """Say that a fresh worktree could not be set up."""
    return _failure(Kind.SETUP_FAILED, ended.tail, because=f"`{command}`", error=error_of(Reading(), ended.tail))


def failed_call(found: Diagnosis) -> Failure:
    """Say how an attempt failed of which nothing is known but the output of its last call."""
    whole = f"{found.evidence.stdout}\n{found.evidence.stderr}".strip()
    return replace(_failure(found.kind, whole, because=found.message, found=found), signature=found.signature)


def red(result: CheckResult, found: Diagnosis | None = None) -> Failure:
    """Say what a red check says, and which it is."""
    command, text = f"`{one_line(result.command, COMMAND_CHARS)}`", result.ended.tail
    if result.ended.ending in LIMITS:
        return _failure(Kind.CHECK_TIMEOUT, text, because=command)
    if result.ended.ok and result.repaired:
        return _failure(BY_CHECK[result.kind], f"{repairs(result)}.", because=repairs(result))
    kind = BY_CHECK[result.kind]
    if result.external_service_down:
        kind = Kind.NETWORK_ERROR
    elif found is not None and found.kind in OF_CHECKS and not _of_the_work(found, result):
        kind = found.kind
    said = error_of(read(text, formatter=result.kind == "format"), text)
    said = one_line(said, MESSAGE_CHARS)
    how = f"{command} (exit code {result.ended.exit_code})"
    failure = _failure(kind, text, because=f"{said}, from {how}" if said else how, found=found)
    return replace(failure, error=f"{said}, from {command}" if said else "")


def repairs(result: CheckResult) -> str:
    """Say that a check changed what it should only look at, and what to do about it."""
    files = f"{', '.join(result.repaired[:5])}{' and more' if len(result.repaired) > 5 else ''}"  # noqa: PLR2004  # enough to see which
    form = checking_form(result.command)
    asked = f" or ask it to look only ({form})" if form else ""
    command = one_line(result.command, COMMAND_CHARS)
    return (
        f"`{command}` passes only because it changes {files}, and the tree that would land is without that. "
        f"Run it and keep what it writes,{asked or ' or use its checking form'}"
    )


def flaky(result: CheckResult) -> Failure:
    """Say that a check fails in another way every time: nobody's work is to blame."""
    how = f"`{one_line(result.command, COMMAND_CHARS)}` failed {result.runs} times, never twice in the same tests"
    return _failure(Kind.FLAKY, result.ended.tail, because=how)


def _rejected(verdict: Verdict) -> Failure | None:
    """Say what in the change itself is refused; what was done to the checks comes first."""
    remarks = [remark for remark in verdict.remarks if remark.severity == "reject"]
    if not remarks:
        return None
    kinds = [BY_RULE.get(remark.rule, Kind.TAMPERED) for remark in remarks]
    kind = Kind.TAMPERED if Kind.TAMPERED in kinds else kinds[0]
    decisive = [remark for remark, its in zip(remarks, kinds, strict=True) if its is kind]
    return Failure(
        kind=kind,
        summary=_listed(decisive),
        detail="\n".join(map(str, decisive))[:DETAIL_CHARS],
        signature=signature("\n".join(sorted({f"{remark.rule} {remark.path}" for remark in decisive})), kind),
    )


def _listed(remarks: Sequence[Remark]) -> str:
    more = f" And {len(remarks) - 1} more." if len(remarks) > 1 else ""
    return one_line(f"{remarks[0]}{more}", SUMMARY_CHARS)


def _of_the_work(found: Diagnosis, result: CheckResult) -> bool:
    """Whether what a check misses is the work's to bring: a script that it names itself, or a server on this machine that it starts."""
    calls = parts(result.command)
    scripts = {word for call in calls for word in call.split()[1:] if SCRIPT.search(word)}
    only_asks = all(map(ONLY_ASKS.match, calls))
    at_home = AT_HOME.search(found.message) or REFUSED.search(result.ended.tail)
    refused = found.kind is Kind.NETWORK_ERROR and at_home is not None
    return not scripts.isdisjoint(dict(found.names).values()) or (refused and not only_asks)


def _red(verdict: Verdict) -> CheckResult | None:
    return next((result for result in verdict.results if result.status == "fail"), None)


def _failure(kind: Kind, detail: str, *, because: str = "", error: str = "", found: Diagnosis | None = None) -> Failure:
    means = KINDS[kind].means
    summary = ": ".join(part for part in (means, because, error) if part)
    return Failure(
        kind=kind,
        summary=summary[0].upper() + summary[1:],
        detail=shown(detail)[-DETAIL_CHARS:],
        signature=signature(detail, kind, found.tests if found else ()) if detail else "",
        tests=found.tests if found else (),
        rule=found.rule if found and found.kind is kind else "",
        names=tuple(value for _, value in found.names) if found and found.kind is kind else (),
        error=error,
    )
