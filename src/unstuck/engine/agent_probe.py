"""Find out whether an agent works at all, after a session that ended at once and left nothing."""

import re
from dataclasses import replace

from unstuck.agents.provider_errors import last_fault
from unstuck.diagnosis.classifying import FAULT_ENDS
from unstuck.engine.context import TaskRun
from unstuck.journal.stages import Stage
from unstuck.model.event import Classified, LineEvent, SessionEnded
from unstuck.model.failure import Failure, Kind
from unstuck.model.orders import SessionDone, SessionOrder
from unstuck.model.outcome import Outcome
from unstuck.model.text import one_line
from unstuck.policy.schedule import blocking_breaker

MAX_SECONDS = 15.0
"""A model that was asked anything takes longer to answer than this."""
SILENT_ENDS = frozenset({"", "crashed", "no_work", "unreadable", "bad_request"})
"""Ends in which the provider said nothing."""
PROBE_BRIEF = (
    "This only tries whether you can be started. Change nothing, run nothing, and answer with the one word: ready\n"
)
ERROR = re.compile(
    r"(?i)error|unknown|unrecogni[sz]ed|unexpected|invalid|not found|no such|cannot|can't|denied|failed|usage"
)
REFUSAL = re.compile(
    r"(?im)^\W{0,4}(?:usage: \S+ [\[<-]|(?:\S{1,40}: )?error: option\b|"
    r"(?:\S{1,40}: )?(?:error: )?(?:unknown|unrecogni[sz]ed|invalid|unexpected|missing) (?:option|flag|argument|(?:sub)?command)|"
    r"(?:\S{1,40}: )?(?:\w{1,20} )?(?:error|panic|fatal|traceback)\b ?[:(]|(?:you are )?not (?:logged in|authenticated)|please (?:log|sign) ?in|invalid api key|"
    r"(?:you(?:'ve| have) |(?:[\w-]{1,20} ){0,3}limit )(?:hit|reached|exceeded)|(?:error )?[45]\d\d [A-Z]|"
    r"(?:connection error|connection refused|fetch failed|request timed out|(?:the )?(?:model|server|service) is )\b)"
)
"""Last words of a program that does not work, whatever its exit code. A probe shows whether the task caused them."""
CRASH_SIGNALS = frozenset({4, 6, 7, 8, 11})
"""Signals with which a program ends by its own fault."""
LAST_LINES = 3
MAX_TEXT = 4_000
MAX_QUOTE = 300


def judge_empty_session(run: TaskRun, order: SessionOrder, done: SessionDone) -> LineEvent | None:
    """Return the event of a session that failed at once and left nothing, or None if it did work.

    An unknown option or a broken installation meets every task alike. It is found before a second task pays for it.
    """
    outcome = done.outcome
    refused = _refused_by_provider(outcome, run.now())
    if not (refused or _failed_at_once(outcome)):
        return None
    if run.workspace.write_tree(order.slot, order.base).id != (order.tree or run.workspace.tree_of(order.base)):
        return None
    if refused:
        return SessionEnded(task=run.task_id, outcome=refused)
    result = run.services.agent_health.check(
        run.task_id,
        order.agent,
        lambda reporter: _report_still_holds(run, reporter, order.agent),
        lambda: _probe(run, order, done),
    )
    run.workspace.prepare(order.slot, order.base, order.tree)
    if result.reported_elsewhere:
        ended = replace(outcome.ended, ending="stopped")
        return SessionEnded(task=run.task_id, outcome=replace(outcome, ended=ended, end="", claim="none"))
    if result.failure is None:
        return None
    run.record(SessionEnded(task=run.task_id, outcome=outcome))
    return Classified(task=run.task_id, failure=result.failure)


def _report_still_holds(run: TaskRun, reporter: str, agent: str) -> bool:
    """Return whether another task's report about the agent still stands: it is being handled, or a person was asked."""
    is_being_handled = run.state.tasks[reporter].stage is not Stage.REST
    return is_being_handled or blocking_breaker(run.state, run.task_id, agent, run.now()) is not None


def _probe(run: TaskRun, order: SessionOrder, done: SessionDone) -> Failure | None:
    """Run a session that only asks for one word, in the place where the agent failed."""
    run.note(f"{order.agent} ended at once and without work: it is asked for one word.")
    probe = replace(order, brief=PROBE_BRIEF, word="", resume="", lasting=False, probe=True, place=done.place)
    answer = run.dispatcher.run(probe, run.stop)
    for sentence in answer.notes:
        run.note(sentence, meanwhile=True)
    return _broken_agent(order.agent, done.outcome, answer)


def _refused_by_provider(outcome: Outcome, now: float) -> Outcome | None:
    """Return the outcome with the provider's fault that a command's last words name, or None."""
    if outcome.end or outcome.ended.ending != "exited":
        return None
    lines = [line for line in outcome.ended.tail.splitlines() if line.strip()][-LAST_LINES:]
    if outcome.ended.ok:  # what the agent says of its work is no error
        first_refusal = next((index for index, line in enumerate(lines) if REFUSAL.match(line)), len(lines))
        lines = lines[first_refusal:]
    fault = last_fault(lines, now)
    if fault is None or fault.end not in FAULT_ENDS:
        return None
    return replace(outcome, claim="none", end=fault.end, message=fault.message, resets_at=fault.resets_at)


def _failed_at_once(outcome: Outcome) -> bool:
    """Return whether a session failed at once, and nothing in it shows that it reached a model."""
    ended = outcome.ended
    if ended.seconds >= MAX_SECONDS or outcome.end not in SILENT_ENDS or outcome.lost:
        return False
    wrote_tokens = outcome.usage is not None and outcome.usage.output_tokens
    if outcome.cost_usd or outcome.failed or wrote_tokens:
        return False
    if outcome.end == "no_work" or (ended.ending == "signalled" and ended.signal in CRASH_SIGNALS):
        return True
    refused = REFUSAL.search((outcome.message or ended.tail)[-MAX_TEXT:]) is not None
    return ended.ending == "exited" and (refused or not ended.ok)


def _quoted_error(outcome: Outcome) -> str:
    """Return what the agent says about its end: the lines about an error, else the last ones."""
    lines = [line.strip() for line in (outcome.message or outcome.ended.tail).splitlines() if line.strip()]
    error_lines = [line for line in lines if ERROR.search(line)] or lines[-2:]
    return one_line(" ".join(error_lines[:2]), MAX_QUOTE)


def _broken_agent(agent: str, outcome: Outcome, answer: SessionDone) -> Failure | None:
    """Return the failure of an agent that could not even say one word, or None."""
    probed = answer.outcome
    if probed.ended.ending != "not_started" and not _failed_at_once(probed):
        return None
    quote = _quoted_error(outcome) or _quoted_error(probed) or "nothing"
    ended = outcome.ended
    how = f"exit code {ended.exit_code}" if ended.exit_code is not None else f"signal {ended.signal}"
    starts = (
        "its program starts (`--version` works)" if answer.version else "its program does not answer `--version` either"
    )
    return Failure(
        kind=Kind.AGENT_MISSING,
        summary=(
            f"The agent {one_line(agent, 80)} cannot work. It says: {quote.rstrip('.')}. "
            f"It ended at once with {how}, and so did a session that only asks for one word; {starts}."
        ),
        detail=ended.tail,
        error=quote.rstrip("."),
    )
