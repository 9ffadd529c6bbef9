"""One line of text for each event of the journal."""

from collections.abc import Mapping
from typing import Final, Literal

from unstuck.agents.claims import states_success
from unstuck.model.action import (
    Accept,
    Action,
    Amend,
    Append,
    Continue,
    Escalate,
    Fix,
    Halt,
    Retry,
    Rollback,
    Switch,
    Wait,
)
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    BroughtHome,
    Classified,
    Decided,
    Event,
    Inherited,
    Noted,
    Operated,
    PlanChanged,
    Rebased,
    RunEnded,
    RunResumed,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.outcome import Claim, End, Ending
from unstuck.model.text import counted, one_line, waits
from unstuck.model.verdict import Verdict

ABOUT_CHARS = 200
LINE_CHARS = 300
COMMIT_CHARS = 12
MAX_REMARKS = 3

ENDINGS: Final[Mapping[Ending, str]] = {
    "exited": "the agent ended with exit code {ended.exit_code}",
    "signalled": "the agent was killed by signal {ended.signal}",
    "first_output": "the agent printed nothing at all and was ended",
    "silence": "the agent was silent for too long and was ended",
    "wall_clock": "the agent took too long and was ended",
    "stopped": "the session was stopped",
    "not_started": "the agent could not be started: {ended.tail}",
    "supervisor_died": "the supervisor died in the middle of the session",
    "worker_gone": "the worker died or left in the middle of the session",
}
"""The end of a session's process."""

ENDS: Final[Mapping[End | Literal[""], str]] = {
    "asks": "and asks something",
    "permission_denied": "was not allowed what it needs",
    "tool_hang": "killed while a tool ran",
    "no_work": "without a word",
}
"""The end of a session by its output, if the name of the end is no sentence."""

CLAIMS: Final[Mapping[Claim, str]] = {
    "done": ", says it is done",
    "failed": ", says it failed",
    "none": "",
}

ENDS_SHOWN_AS_CLAIM: Final = ("", "done_claimed", "failed_claimed")
CUT_OFF_ENDS: Final = ("killed", "tool_hang")
"""Ends that only mean that the output breaks off. They are left out if the supervisor ended the session."""


def event_line(event: Event) -> str:
    """Return the event as one line of plain text, without its time."""
    text = _event_text(event)
    task = getattr(event, "task", None)
    return one_line(f"{task}: {text}" if task else text, LINE_CHARS)


def _event_text(event: Event) -> str:
    match event:
        case RunStarted():
            about = one_line(event.about, ABOUT_CHARS)
            tasks = counted(len(event.tasks), "task")
            return f"run {event.run} of {about} started at {event.base[:COMMIT_CHARS]}, {tasks}"
        case RunResumed():
            return "run resumed with fresh budgets for what was stuck" if event.epoch else "run resumed"
        case RunEnded():
            return f"run ended: {event.reason}"
        case PlanChanged():
            return f"the plan changed; open again: {', '.join(event.reopened) or 'nothing'}"
        case Operated():
            return _request(event)
        case Inherited():
            attempts = sum(len(task.attempts) for task in event.tasks)
            return f"{counted(attempts, 'earlier attempt')} of a predecessor found in {event.source}"
        case AttemptStarted():
            return f"attempt {event.attempt} with {event.agent}"
        case SessionStarted():
            return f"session {event.session} started"
        case SessionEnded():
            return _session_ended(event)
        case Rebased():
            return f"other work landed first; merged onto {event.base[:COMMIT_CHARS]}, to be checked again"
        case Verified():
            return _verdict(event.verdict)
        case Classified():
            failure = event.failure
            return f"{failure.kind}: {failure.summary}" if failure else "nothing stands in the way of landing"
        case Decided():
            return f"decided to {action_text(event.decision.action)} [{event.decision.rung}]"
        case Acted():
            return _acted(event)
        case Noted() | BroughtHome():
            return event.text


def _request(event: Operated) -> str:
    request = event.request
    text = " ".join(filter(None, (request.verb, request.task)))
    text += f" ({request.text!r})" if request.text else ""
    return f"asked to {text}: {f'refused, {event.refused}' if event.refused else 'done'}"


def _session_ended(event: SessionEnded) -> str:
    outcome, ended = event.outcome, event.outcome.ended
    if ended.ok and not ended.seconds and ended.tail:
        return ended.tail  # no agent was called, and the tail is the reason
    was_ended_by_supervisor = ended.ending not in ("exited", "signalled")
    is_known = outcome.end in ENDS_SHOWN_AS_CLAIM or (was_ended_by_supervisor and outcome.end in CUT_OFF_ENDS)
    end = "" if is_known else f", {ENDS.get(outcome.end, outcome.end)}"
    return f"{ENDINGS[ended.ending].format(ended=ended)}{end}{_claim(event)} ({ended.seconds:.1f} s)"


def _claim(event: SessionEnded) -> str:
    outcome = event.outcome
    is_silent = outcome.claim == "done" and not states_success(outcome)
    if is_silent and not outcome.words.strip():
        return ", without a word"
    return "" if is_silent or outcome.end == "asks" else CLAIMS[outcome.claim]


def _verdict(verdict: Verdict) -> str:
    if verdict.status == "inconclusive":
        return f"not verified: {verdict.reason}"
    refusals = [str(remark) for remark in verdict.remarks if remark.severity == "reject"]
    if refusals:
        return f"refused: {'; '.join(refusals[:MAX_REMARKS])}"
    red = [result.command for result in verdict.results if result.status == "fail"]
    if red:
        return f"fails: {'; '.join(red)}"
    total = len(verdict.results)
    excused = sum(bool(result.excused_because) for result in verdict.results)
    idle = sum(bool(result.not_meaningful_because) for result in verdict.results)
    text = f"{total - excused - idle} of {total} checks pass"
    text += f", {excused} {'is' if excused == 1 else 'are'} red and excused" if excused else ""
    text += f", {idle} {'says' if idle == 1 else 'say'} nothing" if idle else ""
    return text


def action_text(action: Action) -> str:
    """Return what an action does, as in "decided to …"."""
    match action:
        case Accept():
            return f"land it ({action.because})" if action.because else "land it"
        case Retry():
            return "try again in the same tree"
        case Continue():
            return "go on in a new session"
        case Rollback():
            return "roll back and try again"
        case Switch():
            return f"roll back and give it to {action.agent}"
        case Fix():
            return f"repair it with a task {action.id} of its own"
        case Amend() | Append():
            return f"write {', '.join(action.ids)} into the plan, as the agent asks ({action.request})"
        case Wait():
            return "wait"
        case Escalate():
            return "ask a person"
        case Halt():
            return "halt the run and ask a person"


def _acted(event: Acted) -> str:
    kept = f"; its work is kept at {event.snapshot}" if event.snapshot else ""
    match event.action:
        case Accept():
            return f"landed as {event.commit[:COMMIT_CHARS]}" if event.commit else "done; there was nothing to commit"
        case Escalate() | Halt():
            question = event.action.question.rstrip(".") if kept else event.action.question
            return f"stuck: {question}{kept}"
        case Fix():
            return f"task {event.action.id} is in the plan: {event.action.error}{kept}"
        case Amend() | Append():
            return f"in the plan now: {', '.join(event.action.ids)}{kept}"
        case Wait(until=until, what=what):
            return f"{waits(what, until)}{kept}"
        case _:
            return f"{event.action.type}{kept}"
