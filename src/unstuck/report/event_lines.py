"""Tell an event in one line: what happened, and why."""

from unstuck.agents.claims import states_success
from unstuck.model.action import Accept, Action, Amend, Append, Escalate, Fix, Halt, Wait
from unstuck.model.event import (
    Acted,
    Classified,
    Decided,
    Event,
    Inherited,
    Operated,
    PlanChanged,
    RunResumed,
    RunStarted,
    SessionEnded,
    Verified,
)
from unstuck.model.text import counted, one_line, waits
from unstuck.model.verdict import Verdict
from unstuck.shipped import shipped_toml

ABOUT_CHARS = 200

LINE_CHARS = 300


def sentence(event: Event) -> str:
    """Return the event as one line of plain text, without its time."""
    text = _sentence(event)
    task = getattr(event, "task", None)
    return one_line(f"{task}: {text}" if task else text, LINE_CHARS)


def _sentence(event: Event) -> str:
    match event:
        case RunStarted():
            return f"run {event.run} of {one_line(event.about, ABOUT_CHARS)} started at {event.base[:12]}, {counted(len(event.tasks), 'task')}"
        case RunResumed():
            return "run resumed with fresh budgets for what was stuck" if event.epoch else "run resumed"
        case PlanChanged():
            return f"the plan changed; open again: {', '.join(event.reopened) or 'nothing'}"
        case Operated():
            asked = " ".join(filter(None, (event.request.verb, event.request.task)))
            asked += f" ({event.request.text!r})" if event.request.text else ""
            return f"asked to {asked}: {f'refused, {event.refused}' if event.refused else 'done'}"
        case Inherited():
            attempts = sum(len(task.attempts) for task in event.tasks)
            return f"{counted(attempts, 'earlier attempt')} of a predecessor found in {event.source}"
        case SessionEnded():
            return _session_ended(event)
        case Verified():
            return _verdict(event.verdict)
        case Classified():
            return (
                f"{event.failure.kind}: {event.failure.summary}"
                if event.failure
                else "nothing stands in the way of landing"
            )
        case Decided():
            return f"decided to {action_text(event.decision.action)} [{event.decision.rung}]"
        case Acted():
            return _acted(event)
        case _:
            return str(shipped_toml("telling")["sentences"][event.type].format(event=event))


def _session_ended(event: SessionEnded) -> str:
    ended = event.outcome.ended
    if ended.ok and not ended.seconds and ended.tail:
        return ended.tail  # nobody was called, and that says why
    words = shipped_toml("telling")
    end, cut = event.outcome.end, ended.ending not in ("exited", "signalled")
    told = "" if end in TOLD_BY_CLAIM or (cut and end in CUT_OFF) else f", {words['ends'].get(end, end)}"
    said = event.outcome.claim
    unsaid = said == "done" and not states_success(event.outcome)
    claim = "" if end == "asks" or unsaid else words["claims"][said]
    claim = ", without a word" if unsaid and not event.outcome.words.strip() else claim
    return f"{words['endings'][ended.ending].format(ended=ended)}{told}{claim} ({ended.seconds:.1f} s)"


TOLD_BY_CLAIM = ("", "done_claimed", "failed_claimed")
CUT_OFF = ("killed", "tool_hang")
"""Ends that say no more than that the output breaks off: where we ended the session, that is known."""


def _verdict(verdict: Verdict) -> str:
    red = [result.command for result in verdict.results if result.status == "fail"]
    refused = [str(remark) for remark in verdict.remarks if remark.severity == "reject"]
    if verdict.status == "inconclusive":
        return f"not verified: {verdict.reason}"
    if refused:
        return f"refused: {'; '.join(refused[:3])}"
    if red:
        return f"fails: {'; '.join(red)}"
    results = verdict.results
    excused, idle = (
        sum(bool(one.excused_because) for one in results),
        sum(bool(one.not_meaningful_because) for one in results),
    )
    told = f"{len(results) - excused - idle} of {len(results)} checks pass"
    told += f", {excused} {'is' if excused == 1 else 'are'} red and excused" if excused else ""
    return f"{told}, {idle} {'says' if idle == 1 else 'say'} nothing" if idle else told


def action_text(action: Action) -> str:
    """Say what an action does, as in "decided to …"."""
    if isinstance(action, Accept) and action.because:
        return f"land it ({action.because})"
    ids = ", ".join(action.ids) if isinstance(action, Amend | Append) else ""
    return str(shipped_toml("telling")["actions"][action.type].format(action=action, ids=ids))


def _acted(event: Acted) -> str:
    kept = f"; its work is kept at {event.snapshot}" if event.snapshot else ""
    match event.action:
        case Accept():
            return f"landed as {event.commit[:12]}" if event.commit else "done; there was nothing to commit"
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
