"""State to what people read: the files under `.unstuck/`, the summary of a run, the story of a stuck task. Values, not text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unstuck.journal.run_state import RunState
from unstuck.journal.task_fold import APPROVED
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Accept, Amend
from unstuck.model.changes import NEVER_LANDS, Changes
from unstuck.model.failure import Failure
from unstuck.model.landing import run_branch
from unstuck.model.text import counted, iso, one_line, waits
from unstuck.policy.schedule import blocked_tasks
from unstuck.report.halt_summary import halted
from unstuck.report.questions import Cause, causes
from unstuck.shipped import shipped_toml

WORDS = {
    "complete": "landed",
    "running": "running",
    "verifying": "checking",
    "waiting": "waiting",
    "stuck": "stuck",
    "blocked": "blocked",
    "skipped": "skipped",
    "interrupted": "interrupted",
    "pending": "pending",
}
"""How a task's status is told to people, everywhere."""


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
    agent: str = ""
    """Who worked on it last."""
    seconds: float = 0.0
    """How long agents worked on it, in all epochs."""
    changes: str = ""
    """What its commit changes."""
    waits_on: str = ""
    wait_until: str | None = None
    """What it waits for, and until when."""


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
    halted: tuple[str, ...] = ()
    """What a person finds after a halt, line by line, where that is told in its own way."""
    cost_usd: float | None = None
    landed: str = ""
    """Where the work is, while it is not on the user's branch."""
    commands: tuple[tuple[str, str], ...] = ()
    """What one can do about that now, and what to type for it."""
    cautions: tuple[str, ...] = ()
    questions: tuple[Cause, ...] = ()
    """What waits for a person, each cause once."""
    meanwhile: tuple[str, ...] = ()
    """What changed in the user's repository and checkout while sessions ran."""

    def count(self, *statuses: str) -> int:
        return sum(row.status in statuses for row in self.rows)


def summary(state: RunState, now: float, *, live: bool) -> Summary:
    """Say where every task stands. Without a living supervisor, what was under way is interrupted."""
    waiting = blocked_tasks(state)
    return Summary(
        run=state.started.run if state.started else "",
        exit_code=state.ended.exit_code if state.ended else None,
        reason=state.ended.reason if state.ended else "",
        home=state.home.text if state.home else "",
        rows=tuple(_row(task, waiting.get(name, ()), state, now, live=live) for name, task in state.tasks.items()),
        notes=tuple(state.notes),
        meanwhile=tuple(state.meanwhile),
        seconds=state.seconds(now),
        halted=halted(state) if not live else (),
        cost_usd=state.cost_usd or None,
        cautions=cautions(state),
        questions=causes(task for task in state.tasks.values() if task.status == "stuck"),
        **_on_its_branch(state),
    )


TAKING = {"single": "git merge --squash {branch} && git commit"}
TAKE = "git merge --ff-only {branch}"
MOST_SKIPPED = 3


def _on_its_branch(state: RunState) -> dict[str, Any]:
    """Say where the work of an unfinished run is, how it is taken as it is, and how the rest of it comes home."""
    away = [task.commit for task in state.tasks.values() if task.commit and task.commit not in state.brought]
    started, landed = state.started, len(away)
    if started is None or state.ended is None or state.home is not None or not landed:
        return {}
    branch, home = run_branch(started.run), (started.branch or "").removeprefix("refs/heads/")
    command = TAKING.get(started.options.commit, TAKE).format(branch=branch)
    found = [("take it as it is", command)]
    stuck = [name for name, task in state.tasks.items() if task.status == "stuck"]
    if stuck:
        skipping = " && ".join(f"unstuck skip {name}" for name in stuck)
        if len(stuck) > MOST_SKIPPED:
            skipping = f"for task in {' '.join(stuck)}; do unstuck skip $task; done"
        found.append(("bring the rest home without what is stuck", f"{skipping} && unstuck resume"))
    verb = "is" if landed == 1 else "are"
    told = f"{landed} landed task{'s'[: landed != 1]} {verb} on branch {branch}, not on {home or 'your branch'} yet:"
    return {"landed": told, "commands": tuple(found)}


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
    fixes = [f"{fix} ({WORDS[state.tasks[fix].status]})" for fix in task.fixes if fix in state.tasks]
    parts.append(f"Fix tasks: {', '.join(fixes)}" if fixes else "")
    return "; ".join(part for part in parts if part)


def _row(task: TaskState, causes: tuple[str, ...], state: RunState, now: float, *, live: bool) -> Row:
    status: str = task.status
    why = task.question
    new = [name for name in state.blocked_by(task) if name in task.waits_for] if status == "pending" else []
    if causes or new:
        status, why = "blocked", f"waits for {', '.join(causes or new)}"
    elif not live and status in ("running", "verifying"):
        status, why = (
            ("pending", f"{vouched(task)}; lands with `unstuck resume`") if task.accepted else ("interrupted", why)
        )
    elif status == "waiting" and task.wait_until:
        why = waits(task.waits_on, task.wait_until, now)
    elif status == "complete":
        why = _how_it_landed(task, [fix for fix in task.fixes if fix in state.tasks and state.tasks[fix].commit])
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
        agent=task.attempts[-1].agent if task.attempts else "",
        seconds=round(task.worked, 1),
        changes=_changed(task.changes),
        waits_on=task.waits_on if status == "waiting" else "",
        wait_until=iso(task.wait_until) if status == "waiting" and task.wait_until else None,
    )


def _changed(changes: Changes | None) -> str:
    if changes is None or not changes.files:
        return ""
    return f"{len(changes.files)} file{'s'[: len(changes.files) != 1]} +{changes.plus} -{changes.minus}"


def vouched(task: TaskState) -> str:
    """Say that a person took the work as it is, why, and what the checks said of it; empty where the checks decided."""
    if not task.accepted:
        return ""
    verdict = task.verdict
    red = sum(result.status == "fail" for result in verdict.results) if verdict else 0
    checks = shipped_toml("telling")["vouched"][verdict.status if verdict else "inconclusive"]
    word = task.accepted if task.accepted == APPROVED else f"accepted by a person ({task.accepted})"
    return f"{word}, {counted(red, 'check')} red" if red else f"{word}, {checks}"


def recovered(task: TaskState) -> tuple[str, ...]:
    """Return the kinds of failure that a task came back from: none if it landed red, on a person's word."""
    verdict = task.verdict
    if task.accepted and (verdict is None or verdict.status != "pass"):
        return ()
    return tuple(dict.fromkeys(failure.kind.value for _, failure in failed_attempts(task)))


def failed_attempts(task: TaskState) -> Iterator[tuple[AttemptState, Failure]]:
    """Yield the attempts that failed: not one that asked for other tasks first, nor one that landed itself."""
    for attempt in task.attempts:
        action = attempt.decision.action if attempt.decision else None
        if attempt.failure is not None and not isinstance(action, Accept | Amend):
            yield attempt, attempt.failure


def _how_it_landed(task: TaskState, fixes: Sequence[str]) -> str:
    """Say what a landed task was recovered from, if anything, and by which fixes that landed themselves."""
    if not task.attempts:
        return "done before the run"
    failed = recovered(task)
    ending = task.current.outcome.ended.ending if task.current.outcome else "exited"
    by = f" by {', '.join(fixes)}" if fixes else ""
    most = max(attempt.sessions for attempt in task.attempts)
    right = task.verdict is not None and task.verdict.status == "pass"
    parts = [
        vouched(task),
        f"recovered from {', '.join(failed)}{by}" if failed else "",
        *(f"came after {', '.join(one.ids)}" for one in task.modifications if isinstance(one, Amend)),
        f"went on in session {most}" if most > 1 else "",
        shipped_toml("telling")["ended_but_right"].get(ending, "") if right else "",
    ]
    return "; ".join(part for part in parts if part)


LINE_CHARS = 200
NAMED = 5


def cautions(state: RunState) -> tuple[str, ...]:
    """Gather what was noticed in all tasks, each thing once with the tasks that it holds for."""
    found: dict[str, list[str]] = {}
    for name, task in state.tasks.items():
        for line in dict.fromkeys(_of_task(task)):
            found.setdefault(line, []).append(name)
    more = {line: f" and {len(names) - NAMED} more" if len(names) > NAMED else "" for line, names in found.items()}
    return tuple(f"{', '.join(names[:NAMED])}{more[line]}: {line}" for line, names in found.items())


def _of_task(task: TaskState) -> Iterator[str]:
    """Yield what the last verdict has against work that landed, what cannot land, and what its agent was not allowed."""
    yield from (note for note in task.notes if NEVER_LANDS in note)
    verdict = task.attempts[-1].verdict if task.attempts else None
    if verdict is not None and task.status == "complete":
        yield from (one_line(str(remark), LINE_CHARS) for remark in verdict.remarks if remark.severity != "reject")
        for result in verdict.results:
            if result.excused_because:
                yield one_line(f"`{result.command}` is red, and excused: {result.excused_because}", LINE_CHARS)
            elif result.not_meaningful_because:
                yield one_line(f"`{result.command}` says nothing: {result.not_meaningful_because}", LINE_CHARS)
    denied = [call for attempt in task.attempts if attempt.outcome for call in attempt.outcome.denied]
    yield from (one_line(f"its agent was not allowed {call}", LINE_CHARS) for call in dict.fromkeys(denied))
