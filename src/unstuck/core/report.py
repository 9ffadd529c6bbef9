"""State to what people read: the files under `.unstuck/`, the summary of a run, the story of a stuck task. Values, not text."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from unstuck.core.attempt import Ending, Verdict
from unstuck.core.event import PastAttempt
from unstuck.core.plan import Plan, Task, check
from unstuck.core.schedule import blocked
from unstuck.core.state import RunState
from unstuck.core.task_state import AttemptState, TaskState

PHASE_STATUS = {"stuck": "failed", "verifying": "running", "waiting": "running"}
"""Our statuses as seed 004's files know them; the others have the same name there."""

ENDED_BUT_RIGHT: dict[Ending, str] = {
    "first_output": "the session hung, its work was right",
    "silence": "the session hung, its work was right",
    "wall_clock": "the session ran out of time, its work was right",
    "signalled": "the session was killed, its work was right",
    "stopped": "the session was stopped, its work was right",
    "supervisor_died": "the supervisor died, the work was right",
}

HISTORY_STATUS = {"complete": "completed", "pending": "pending", "stuck": "stuck", "skipped": "stuck"}
"""Our statuses as seed 000's files know them; whatever is under way is `failed` or `pending` there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One task in a summary."""

    id: str
    title: str
    status: str
    attempts: int
    commit: str | None
    cost_usd: float | None
    why: str
    fixes: str | None = None
    """The task that it repairs."""
    fix_tasks: tuple[str, ...] = ()
    """The tasks that repair it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run came to."""

    run: str
    exit_code: int | None
    reason: str
    home: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    seconds: float
    cost_usd: float | None = None

    def count(self, *statuses: str) -> int:
        return sum(row.status in statuses for row in self.rows)


def summary(state: RunState, now: float, *, live: bool) -> Summary:
    """Say where every task stands. Without a living supervisor, what was under way is interrupted."""
    waiting = blocked(state)
    return Summary(
        run=state.started.run if state.started else "",
        exit_code=state.ended.exit_code if state.ended else None,
        reason=state.ended.reason if state.ended else "",
        home=state.home.text if state.home else "",
        rows=tuple(_row(task, waiting.get(name, ()), state, live=live) for name, task in state.tasks.items()),
        notes=tuple(state.notes),
        seconds=now - state.began if state.began else 0.0,
        cost_usd=state.cost_usd or None,
    )


def problems(plan: Plan) -> str:
    """Return everything that makes the plan impossible to run, as one message; empty if nothing does."""
    found = check(plan)
    lines = [f"  {f'line {one.line}: ' if one.line else ''}{one.message} {one.hint}" for one in found]
    return (
        "\n".join([f"{plan.path} cannot be run, {len(found)} problem{'s'[: len(found) > 1]}:", *lines]) if found else ""
    )


def run_object(state: RunState, exit_code: int) -> dict[str, Any]:
    """Return what `run --json` prints."""
    rows = summary(state, 0.0, live=False).rows
    tasks = {
        row.id: {"status": row.status, "attempts": row.attempts, "commit": row.commit, "cost_usd": row.cost_usd}
        for row in rows
    }
    waiting = [task.wait_until for task in state.tasks.values() if task.status == "waiting" and task.wait_until]
    return {
        "schema": 1,
        "run": state.started.run if state.started else None,
        "exit": exit_code,
        "resume_at": _iso(min(waiting)) if waiting else None,
        "tasks": tasks,
    }


def phase(state: RunState, name: str) -> dict[str, Any]:
    """Return a task's state file, in seed 004's shape."""
    task = state.tasks[name]
    attempts = task.attempts[task.epoch_from :]
    last = attempts[-1] if attempts else None
    return {
        "phase_id": name,
        "phase_name": task.task.title,
        "status": PHASE_STATUS.get(task.status, task.status),
        "attempt": len(attempts),
        "max_attempts": state.started.options.max_attempts if state.started else None,
        "timestamps": {
            "started": _iso(attempts[0].started) if attempts else None,
            "completed": _iso(task.last_at) if task.status == "complete" and attempts else None,
            "last_updated": _iso(task.last_at) if task.last_at else None,
        },
        "dependencies": {"depends_on": list(task.task.depends_on)},
        "lineage": _lineage(state, name),
        "verification": _verification(last.verdict) if last and last.verdict else None,
        "commit": {"message": subject(task.task), "committed": task.commit is not None, "commit_sha": task.commit},
        "attempts": [_attempt(attempt) for attempt in task.attempts],
        "error": {"type": last.failure.kind, "message": last.failure.summary} if last and last.failure else None,
        "unstuck": {"run": state.started.run if state.started else None, "event": state.seq},
    }


def _lineage(state: RunState, name: str) -> dict[str, Any]:
    """Return the tasks that a task repairs, the root first, and those that repair it."""
    task = state.tasks[name]
    chain = state.lineage(name).chain
    return {
        "fixes": task.task.fixes,
        "chain": list(chain),
        "fix_tasks": list(task.fixes),
        "waits_for": list(task.waits_for),
    }


def lineage_text(state: RunState, name: str) -> str:
    """Say in a line what a task repairs and what repairs it; empty for a task that stands alone."""
    task, chain = state.tasks[name], state.lineage(name).chain
    parts = [f"Lineage: {' → '.join(chain)}" if len(chain) > 1 else ""]
    fixes = [f"{fix} ({state.tasks[fix].status})" for fix in task.fixes if fix in state.tasks]
    parts.append(f"Fix tasks: {', '.join(fixes)}" if fixes else "")
    return "; ".join(part for part in parts if part)


def attempt_history(state: RunState) -> dict[str, Any]:
    """Return the attempts of all tasks, in seed 000's shape."""
    past = state.inherited.tasks if state.inherited else ()
    unknown = [task for task in past if task.id not in state.tasks]
    subtasks = {
        task.id: {"attempts": [_inherited(one) for one in task.attempts], "status": "pending"} for task in unknown
    }
    subtasks |= {name: _history(task) for name, task in state.tasks.items() if task.attempts or task.inherited}
    stuck = [
        {
            "subtask_id": name,
            "reason": task.question,
            "escalated_at": _iso(task.last_at),
            "attempt_count": len(task.attempts),
        }
        for name, task in state.tasks.items()
        if task.status == "stuck"
    ]
    return {"subtasks": subtasks, "stuck_subtasks": stuck, "metadata": _metadata(state)}


def build_commits(state: RunState) -> dict[str, Any]:
    """Return the commits at which our checks were green, in seed 000's shape."""
    landed = [task for task in state.tasks.values() if task.commit is not None]
    past = state.inherited.commits if state.inherited else ()
    commits = [asdict(commit) for commit in past] + [
        {"hash": task.commit, "subtask_id": task.task.id, "timestamp": _iso(task.last_at)}
        for task in sorted(landed, key=lambda task: task.last_seq)
    ]
    return {
        "commits": commits,
        "last_good_commit": commits[-1]["hash"] if commits else None,
        "metadata": _metadata(state),
    }


def config(state: RunState) -> dict[str, Any]:
    """Return the run's own facts; written last, so that its event number covers all other files."""
    started = state.started
    assert started is not None
    return {
        "version": "1.0.0",
        "run": started.run,
        "plan_path": started.plan,
        "commit_mode": started.options.commit,
        "started_at": _iso(state.began),
        "agents": list(started.options.agents),
        "unstuck": {"run": started.run, "event": state.seq},
    }


def subject(task: Task) -> str:
    return task.commit or task.title


def _row(task: TaskState, causes: tuple[str, ...], state: RunState, *, live: bool) -> Row:
    status: str = task.status
    why = task.question
    new = [name for name in state.blocked_by(task) if name in task.waits_for] if status == "pending" else []
    if causes or new:
        status, why = "blocked", f"waits for {', '.join(causes or new)}"
    elif not live and status in ("running", "verifying", "waiting"):
        status = "interrupted"
    elif status == "complete":
        why = _how_it_landed(task)
    return Row(
        id=task.task.id,
        title=task.task.title,
        status=status,
        attempts=len(task.attempts),
        commit=task.commit,
        cost_usd=task.cost_usd,
        why=why,
        fixes=task.task.fixes,
        fix_tasks=task.fixes,
    )


def _how_it_landed(task: TaskState) -> str:
    """Say what a landed task was recovered from, if anything."""
    if not task.attempts:
        return "done before the run"
    failed = dict.fromkeys(attempt.failure.kind.value for attempt in task.attempts if attempt.failure is not None)
    ending = task.current.outcome.ended.ending if task.current.outcome else "exited"
    by = f" by {', '.join(task.fixes)}" if task.fixes else ""
    parts = [f"recovered from {', '.join(failed)}{by}" if failed else "", ENDED_BUT_RIGHT.get(ending, "")]
    return "; ".join(part for part in parts if part)


def _history(task: TaskState) -> dict[str, Any]:
    failed = bool(task.attempts) and task.attempts[-1].failure is not None
    return {
        "attempts": [
            *(_inherited(past) for past in task.inherited),
            *(_old_attempt(attempt, task) for attempt in task.attempts if attempt.ended is not None),
        ],
        "status": HISTORY_STATUS.get(task.status, "failed" if failed else "pending"),
    }


def _inherited(past: PastAttempt) -> dict[str, Any]:
    return asdict(past) | {"error": past.error or None}


def _old_attempt(attempt: AttemptState, task: TaskState) -> dict[str, Any]:
    landed = task.status == "complete" and attempt is task.attempts[-1]
    return {
        "session": attempt.sessions,
        "timestamp": _iso(attempt.ended or attempt.started),
        "approach": attempt.outcome.approach if attempt.outcome else "",
        "success": landed,
        "error": attempt.failure.summary if attempt.failure else None,
    }


def _attempt(attempt: AttemptState) -> dict[str, Any]:
    return {
        "n": attempt.number,
        "agent": attempt.agent,
        "sessions": attempt.sessions,
        "started": _iso(attempt.started),
        "ended": _iso(attempt.ended) if attempt.ended else None,
        "type": attempt.failure.kind if attempt.failure else None,
        "message": attempt.failure.summary if attempt.failure else None,
        "decision": attempt.decision.action.type if attempt.decision else None,
        "reason": attempt.decision.reason if attempt.decision else None,
        "snapshot": attempt.snapshot,
        "cost_usd": attempt.cost_usd,
    }


def _verification(verdict: Verdict) -> dict[str, Any]:
    checks = [{"command": result.command, "kind": result.kind, "status": result.status} for result in verdict.results]
    return {"fresh_verification": verdict.status, "tree": verdict.tree, "checks": checks}


def _metadata(state: RunState) -> dict[str, Any]:
    times = [task.last_at for task in state.tasks.values()]
    return {"created_at": _iso(state.began), "last_updated": _iso(max(times, default=0.0) or state.began)}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
