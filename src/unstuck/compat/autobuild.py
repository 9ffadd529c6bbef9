"""State files in the shape of autobuild: those that it left, those that a run writes."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.agents.printed_json import PhaseResult
from unstuck.diagnosis.captured import failure_details, headline, phase_type
from unstuck.diagnosis.classifying import reported_result
from unstuck.git.git_command import Git
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.event import Inherited, PastAttempt, PastTask
from unstuck.model.failure import Failure
from unstuck.model.plan import Plan, Task, find_task_id, subject_parts
from unstuck.model.text import iso, one_line
from unstuck.model.verdict import CheckKind, Verdict
from unstuck.policy.schedule import blocked_tasks
from unstuck.reports.verdict_formats import check_object

FOLDER = ".autobuild"
COMPLETE = ("complete", "completed")
ATTEMPT = re.compile(r"attempt_(\d{1,3})(?:_error)?")
"""The key of an attempt's error, in either of its two forms."""
TEXT_CHARS = 2000
TIMESTAMP_CHARS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A plan with the work that was done before the run."""

    plan: Plan
    notes: tuple[str, ...] = ()
    inherited: Inherited | None = None
    """Failed attempts of the predecessor."""


def adopt(root: Path, git: Git, plan: Plan) -> Adopted:
    """Return the plan with the phases marked as done that the predecessor completed.

    A phase counts only if its commit is on the current branch. The folder of the predecessor is not changed.
    """
    folder = root / FOLDER
    if plan.format != "superplan" or not (folder / "phases").is_dir():
        return Adopted(plan=plan)
    plan_path = read_json_object(folder / "config.json").get("plan_path")
    if isinstance(plan_path, str) and os.path.realpath(root / plan_path) != os.path.realpath(root / plan.path):
        return Adopted(plan=plan, notes=(f"{FOLDER}/ belongs to another plan, {plan_path!r}; nothing of it is used.",))
    tasks = {task.id: task for task in plan.tasks}
    done: list[str] = []
    notes: list[str] = []
    tried: list[PastTask] = []
    for path in sorted((folder / "phases").glob("phase-*.json")):
        state = read_json_object(path)
        task = _task(tasks, state)
        if task is None or task.done:
            continue
        if state.get("status") not in COMPLETE:
            attempts = tuple(_failures(state))
            tried += [PastTask(id=task.id, attempts=attempts)] if attempts else []
            continue
        commit = (state.get("commit") or {}).get("commit_sha") if isinstance(state.get("commit"), dict) else None
        if isinstance(commit, str) and _is_on_branch(git, commit):
            done.append(task.id)
        else:
            notes.append(
                f"{FOLDER}/ says that phase {task.shown} is complete, but its commit is not on your branch; it is done again."
            )
    kept = tuple(replace(task, done=True) if task.id in done else task for task in plan.tasks)
    if done:
        named_done = ", ".join(tasks[name].shown for name in tasks if name in done)
        notes.insert(
            0, f"Adopted from {FOLDER}/: complete before this run, with a commit on your branch: {named_done}."
        )
    past = Inherited(source=str(folder), tasks=tuple(tried), commits=()) if tried else None
    return Adopted(plan=replace(plan, tasks=kept), notes=tuple(notes), inherited=past)


def _task(tasks: dict[str, Task], state: dict[str, Any]) -> Task | None:
    """Return the phase of a state file. Its id must be in the plan, and its name must match if it gives one."""
    name = find_task_id(tasks.values(), str(state.get("phase_id", "")))
    task = tasks.get(name) if name else None
    phase_name = state.get("phase_name")
    if task is None or not isinstance(phase_name, str):
        return None
    theirs, ours = phase_name.casefold().strip(), task.title.casefold().strip()
    return task if theirs.startswith(ours) or ours.startswith(theirs) else None


def _failures(state: dict[str, Any]) -> Iterator[PastAttempt]:
    """Yield the failure of each attempt. A phase that was only blocked has none."""
    error, times = state.get("error"), state.get("timestamps")
    errors: dict[int, Any] = {}
    for key, value in _items(error):
        if match := ATTEMPT.fullmatch(key):
            errors[int(match[1])] = value
    if not errors and isinstance(error, dict) and error.get("type") not in (None, "blocked"):
        errors = {1: error}
    failed_at = dict(_items(times)).get("failed")
    timestamp = failed_at[:TIMESTAMP_CHARS] if isinstance(failed_at, str) else ""
    for number, value in sorted(errors.items()):
        parts = [value.get("type"), value.get("message")] if isinstance(value, dict) else [value]
        message = ": ".join(part for part in parts if isinstance(part, str) and part)
        yield PastAttempt(session=number, timestamp=timestamp, approach="", success=False, error=message[:TEXT_CHARS])


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _is_on_branch(git: Git, commit: str) -> bool:
    whole = commit.isalnum() and git.succeeds(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"
    )
    return whole and git.succeeds("merge-base", "--is-ancestor", commit, "HEAD")


def read_json_object(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one if there is none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


PHASE_STATUS = {"stuck": "failed", "verifying": "running", "waiting": "running"}
"""Our statuses as autobuild names them. The others have the same name there."""
GATES: dict[CheckKind, str] = {"types": "typecheck"}
"""Our kinds of checks as autobuild names them, if the names differ."""
CLAIMS = {"done": "complete", "failed": "failed", "none": None}
VERDICTS = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
FINAL = "Failed after maximum retries"
QUOTE_CHARS = 200


def phase(state: RunState, name: str, waiting: Mapping[str, tuple[str, ...]] | None = None) -> dict[str, Any]:
    """Return the state file of a task.

    `waiting` is the result of `blocked_tasks(state)`, for callers that write many files.
    """
    task = state.tasks[name]
    task_ids = {name, *task.task.joins}
    causes = (blocked_tasks(state) if waiting is None else waiting).get(name, ()) if not task.attempts else ()
    last = task.tries[-1] if task.tries else None
    return {
        "phase_id": name,
        "phase_name": task.task.title,
        "status": "blocked" if causes else PHASE_STATUS.get(task.status, task.status),
        "attempt": len(task.tries),
        "max_attempts": state.started.options.max_attempts if state.started else None,
        "timestamps": _timestamps(task),
        "dependencies": {
            "depends_on": list(task.task.depends_on),
            "parallel_with": list(task.task.parallel_with),
            "blocks": [
                other for other, state_of in state.tasks.items() if not task_ids.isdisjoint(state_of.task.depends_on)
            ],
        },
        "lineage": {
            "fixes": task.task.fixes,
            "chain": list(state.lineage(name).chain),
            "fix_tasks": list(task.fixes),
            "waits_for": list(task.waits_for),
        },
        "execution": _execution(state, task, last),
        "quality_gates": _gates(last.verdict, last.failure) if last and last.verdict else None,
        "verification": _verification(last) if last and last.verdict else None,
        "commit": _commit(task),
        "plan_updates": {"tasks_checked": len(task.task.items), "dod_checked": True, "status_updated": True}
        if task.status == "complete"
        else None,
        "attempts": [_attempt(attempt) for attempt in task.attempts],
        "error": {"type": "blocked", "message": f"Blocked by failed phase {causes[0]}", "blocking_phase": causes[0]}
        if causes
        else error(state, task),
        "unstuck": {"run": state.started.run if state.started else None, "event": state.seq},
    }


def error(state: RunState, task: TaskState) -> dict[str, Any] | None:
    """Return the failure of each attempt in this epoch, with the final result."""
    errors: dict[str, Any] = {}
    before: Failure | None = None
    for number, attempt in enumerate(task.tries, 1):
        if attempt.failure is not None:
            errors[f"attempt_{number}"] = {
                "type": phase_type(attempt.failure),
                "message": headline(attempt.failure, before),
            }
            before = attempt.failure
    if errors and task.status == "complete":
        errors["resolved_on_retry"] = True
    if task.status == "stuck":
        most = state.started.options.max_attempts if state.started else None
        errors["final"] = (
            FINAL if most is not None and len(task.tries) >= most else one_line(task.question, QUOTE_CHARS)
        )
    return errors or None


def config(state: RunState) -> dict[str, Any]:
    """Return the state file of the run.

    It is written last, so that its event number covers all other files.
    """
    started = state.started
    assert started is not None
    statuses = [task.status for task in state.tasks.values()]
    done, failed = sum(status in ("complete", "skipped") for status in statuses), statuses.count("stuck")
    times = [task.last_at for task in state.tasks.values()]
    return {
        "version": "1.0.0",
        "run": started.run,
        "plan_path": started.plan,
        "commit_mode": started.options.commit,
        "started_at": iso(state.created),
        "last_updated": iso(max(times, default=0.0) or state.created),
        "agents": list(started.options.agents),
        "phases": {
            "total": len(statuses),
            "completed": done,
            "failed": failed,
            "pending": len(statuses) - done - failed,
        },
        "unstuck": {"run": started.run, "event": state.seq},
    }


def _timestamps(task: TaskState) -> dict[str, Any]:
    began = task.tries[0].started if task.tries else None
    ended = task.last_at if began is not None and task.status in ("complete", "stuck") else None
    times: dict[str, Any] = {"started": iso(began) if began is not None else None}
    if task.status == "stuck" and ended is not None:
        times["failed"] = iso(ended)
    else:
        times["completed"] = iso(ended) if ended is not None else None
    if began is not None and ended is not None:
        times["duration_seconds"] = round(ended - began, 3)
    return times | {"last_updated": iso(task.last_at) if task.last_at else None}


def _execution(state: RunState, task: TaskState, last: AttemptState | None) -> dict[str, Any] | None:
    if last is None:
        return None
    claim = reported_result(last.outcome) if last.outcome else None
    total = len(task.task.items) or 1
    done = min(max(claim.tasks_completed, 0), total) if isinstance(claim, PhaseResult) and last.failure else 0
    run = state.started.run if state.started else ""
    return {
        "subagent_id": f"{run}/{task.task.id}/{last.number}",
        "subagent_model": last.agent,
        "tasks_total": total,
        "tasks_completed": total if task.status == "complete" else done,
    }


def _gates(verdict: Verdict, failure: Failure | None) -> dict[str, Any]:
    """Return a check for each kind. Of several checks of a kind it is the first that fails."""
    gates: dict[str, Any] = {}
    for result in verdict.results:
        name = GATES.get(result.kind, result.kind)
        if name in gates and not gates[name]["passed"]:
            continue
        lines = [line for line in result.ended.tail.splitlines() if line.strip()]
        passed = result.status == "pass"
        gates[name] = {
            "passed": passed,
            "command": result.command,
            "output_summary": one_line(lines[-1], QUOTE_CHARS) if lines else "",
        }
        if result.kind == "test" and not passed and failure is not None:
            gates[name]["failures"] = list(failure.tests)
    return gates


def _verification(attempt: AttemptState) -> dict[str, Any]:
    verdict = attempt.verdict
    assert verdict is not None
    return {
        "subagent_claimed": CLAIMS[attempt.outcome.claim] if attempt.outcome else None,
        "fresh_verification": VERDICTS[verdict.status],
        "verified_at": iso(attempt.ended) if attempt.ended else None,
        "tree": verdict.tree,
        "checks": [check_object(result) for result in verdict.results],
        "findings": [asdict(remark) for remark in verdict.remarks],
    }


def _commit(task: TaskState) -> dict[str, Any] | None:
    if task.status != "complete":
        return None
    message, changes = task.task.subject, task.changes
    kind, scope = subject_parts(message)
    return {
        "message": message,
        "type": kind,
        "scope": scope,
        "files_created": list(changes.created) if changes else [],
        "files_modified": list(changes.modified) if changes else [],
        "files_deleted": list(changes.deleted) if changes else [],
        "committed": task.commit is not None,
        "commit_sha": task.commit,
    }


def _attempt(attempt: AttemptState) -> dict[str, Any]:
    failure = attempt.failure
    return {
        "n": attempt.number,
        "agent": attempt.agent,
        "sessions": attempt.sessions,
        "started": iso(attempt.started),
        "ended": iso(attempt.ended) if attempt.ended else None,
        "type": phase_type(failure) if failure else None,
        "kind": failure.kind if failure else None,
        "message": failure.summary if failure else None,
        "captured": failure_details(failure, attempt.verdict, attempt.outcome) if failure else None,
        "decision": attempt.decision.action.type if attempt.decision else None,
        "reason": attempt.decision.reason if attempt.decision else None,
        "snapshot": attempt.snapshot,
        "cost_usd": attempt.cost_usd,
    }
