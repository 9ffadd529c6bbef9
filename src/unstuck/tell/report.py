"""State to what people read: the files under `.unstuck/`, the summary of a run, the story of a stuck task. Values, not text."""

from dataclasses import asdict, dataclass
from typing import Any

from unstuck.journal import AttemptState, Ending, PastAttempt, RunState, TaskState, iso
from unstuck.line import blocked
from unstuck.plans import Plan, check
from unstuck.tell import notices
from unstuck.tell.halt import Halted, halted

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
    halted: Halted | None = None
    """What a person finds after a halt, where that is told in its own way."""
    cost_usd: float | None = None
    meanwhile: tuple[str, ...] = ()
    """What changed in the user's repository and checkout while sessions ran."""

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
        meanwhile=tuple(state.meanwhile),
        seconds=now - state.began if state.began else 0.0,
        halted=halted(state) if not live else None,
        cost_usd=state.cost_usd or None,
    )


def problems(plan: Plan) -> str:
    """Return everything that makes the plan impossible to run, as one message; empty if nothing does."""
    found = check(plan)
    if not found:
        return ""
    head = f"{plan.path} cannot be run, {len(found)} problem{'s'[: len(found) > 1]}:"
    if not plan.phased:
        lines = [f"  {f'line {one.line}: ' if one.line else ''}{one.message} {one.hint}" for one in found]
        return "\n".join([head, *lines])
    tasks = {task.id: task for task in plan.tasks}
    wrong = [one for one in found if not one.cycle]
    blocks = [notices.plan_invalid(wrong, plan.path)] if wrong else []
    blocks += [notices.circular_dependency(one.cycle, tasks, plan.noun) for one in found if one.cycle]
    return "\n\n".join([head, *blocks])


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
        "resume_at": iso(min(waiting)) if waiting else None,
        "tasks": tasks,
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
            "escalated_at": iso(task.last_at),
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
        {"hash": task.commit, "subtask_id": task.task.id, "timestamp": iso(task.last_at)}
        for task in sorted(landed, key=lambda task: task.last_seq)
    ]
    return {
        "commits": commits,
        "last_good_commit": commits[-1]["hash"] if commits else None,
        "metadata": _metadata(state),
    }


def _row(task: TaskState, causes: tuple[str, ...], state: RunState, *, live: bool) -> Row:
    status: str = task.status
    why = task.question
    new = [name for name in state.blocked_by(task) if name in task.waits_for] if status == "pending" else []
    if causes or new:
        status, why = "blocked", f"waits for {', '.join(causes or new)}"
    elif not live and status in ("running", "verifying"):
        status = "interrupted"
    elif status == "waiting" and task.wait_until:
        why = f"until {iso(task.wait_until)}"
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
        "timestamp": iso(attempt.ended or attempt.started),
        "approach": attempt.outcome.approach if attempt.outcome else "",
        "success": landed,
        "error": attempt.failure.summary if attempt.failure else None,
    }


def _metadata(state: RunState) -> dict[str, Any]:
    times = [task.last_at for task in state.tasks.values()]
    return {"created_at": iso(state.began), "last_updated": iso(max(times, default=0.0) or state.began)}
