"""The story of one task as one plain object: each attempt with what was seen, decided and done. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import AttemptState
from unstuck.model.action import Decision
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    Entry,
    Rebased,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.failure import KINDS, Failure
from unstuck.model.outcome import Outcome, ToolCall
from unstuck.model.text import one_line
from unstuck.model.verdict import Verdict
from unstuck.reports.event_lines import action_text, event_line
from unstuck.reports.questions import question, stuck_report
from unstuck.reports.summaries import lineage_text
from unstuck.reports.verdict_formats import check_object
from unstuck.web.overview import clean, event_object

BODY_CHARS, OUTPUT_CHARS = 8_000, 12_000
MOST_TOOLS, TOOL_CHARS = 200, 400


def task_story(
    state: RunState,
    entries: Sequence[Entry],
    name: str,
    tools: Mapping[int, Sequence[ToolCall]],
) -> dict[str, Any]:
    """Return what is known of a task; `tools` are its agents' calls by attempt."""
    task = state.tasks[name]
    own = [entry for entry in entries if _about(entry) == name]
    stuck = task.status == "stuck"
    story: dict[str, Any] = clean({
        "id": name,
        "seq": state.seq,
        "body": task.task.body[:BODY_CHARS],
        "checks": [check.command for check in task.task.checks],
        "files": list(task.task.files),
        "lineage": lineage_text(state, name),
        "hint": task.hint,
        "notes": list(task.notes),
        "question": question(task) if stuck else "",
        "detail": task.question if stuck else "",
        "report": stuck_report(task, lineage_text(state, name)) if stuck else "",
        "attempts": [
            _attempt(one, steps, tools.get(one.number, ())) for one, steps in _by_attempt(task.attempts, own)
        ],
        "events": [event_object(entry, state) for entry in own],
    }, OUTPUT_CHARS)  # fmt: skip
    return story


def _about(entry: Entry) -> str | None:
    request = getattr(entry.event, "request", None)
    return request.task if request is not None else getattr(entry.event, "task", None)


def _by_attempt(attempts: Iterable[AttemptState], entries: Iterable[Entry]) -> list[tuple[AttemptState, list[Entry]]]:
    """Give each attempt the facts from its start to the next one's."""
    parts: list[list[Entry]] = []
    for entry in entries:
        if isinstance(entry.event, AttemptStarted):
            parts.append([])
        if parts:
            parts[-1].append(entry)
    return list(zip(attempts, parts, strict=False))


def _attempt(attempt: AttemptState, entries: Iterable[Entry], tools: Sequence[ToolCall]) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "agent": attempt.agent,
        "slot": attempt.slot,
        "base": attempt.base,
        "began": attempt.started,
        "seconds": round(attempt.worked, 1),
        "cost": attempt.cost_usd,
        "sessions": attempt.sessions,
        "work": attempt.work is not None,
        "snapshot": attempt.snapshot,
        "shown_by": attempt.show_command,
        "failed": attempt.failure is not None,
        "steps": [_lean(step) for entry in entries if (step := _step(entry)) is not None],
        "calls": len(tools),
        "tools": [
            {"name": one.name, "input": one_line(one.input, TOOL_CHARS), "ok": one.ok, "exit": one.exit_code}
            for one in tools[-MOST_TOOLS:]
        ],
    }


def _step(entry: Entry) -> dict[str, Any] | None:
    """Return a fact of the line as a step of its attempt; None for what tells nothing by itself."""
    at = {"seq": entry.seq, "at": round(entry.at, 2), "text": event_line(entry.event).partition(": ")[2]}
    match entry.event:
        case SessionStarted(session=session):
            return {**at, "what": "session", "session": session}
        case SessionEnded(outcome=outcome):
            return {**at, "what": "ended", **_outcome(outcome)}
        case Verified(verdict=verdict):
            return {**at, "what": "verdict", **_verdict(verdict)}
        case Classified(failure=failure) if failure is not None:
            return {**at, "what": "failure", **_failure(failure)}
        case Decided(decision=decision):
            return {**at, "what": "decision", **_decision(decision)}
        case Acted(commit=commit, snapshot=snapshot):
            return {**at, "what": "acted", "commit": commit, "snapshot": snapshot}
        case Rebased():
            return {**at, "what": "rebased"}
        case _:
            return None


def _lean(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is empty: there are many steps, and a kept page should stay small."""
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    ended, usage = outcome.ended, outcome.usage
    return {
        "ending": ended.ending,
        "exit": ended.exit_code,
        "signal": ended.signal,
        "claim": outcome.claim,
        "end": outcome.end,
        "approach": outcome.approach,
        "seconds": round(ended.seconds, 1),
        "cost": outcome.cost_usd,
        "input": usage.input_tokens if usage else None,
        "output": usage.output_tokens if usage else None,
        "words": outcome.words,
        "session_id": outcome.session,
        "denied": list(outcome.denied),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": verdict.status,
        "reason": verdict.reason,
        "tree": verdict.tree,
        "turned_green": verdict.turned_green,
        "checks": [_lean({**check_object(one), "log": None, "output": one.ended.tail}) for one in verdict.results],
        "remarks": [asdict(one) for one in verdict.remarks],
        "files": list(verdict.files),
    }


def _failure(failure: Failure) -> dict[str, Any]:
    facts = KINDS[failure.kind]
    return {
        "kind": failure.kind.value,
        "means": facts.means,
        "blame": failure.blame,
        "charged": failure.charged,
        "summary": failure.summary,
        "error": failure.error,
        "detail": failure.detail,
        "tests": list(failure.tests),
        "rule": failure.rule,
    }


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "action": decision.action.type,
        "deed": action_text(decision.action),
        "reason": decision.reason,
        "rung": decision.rung,
    }
