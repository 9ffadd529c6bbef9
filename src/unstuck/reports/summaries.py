"""The summary of a run as values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from unstuck.journal.run_state import RunState
from unstuck.journal.task_fold import APPROVED
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Accept, Amend
from unstuck.model.changes import NEVER_LANDS, Changes
from unstuck.model.failure import Failure
from unstuck.model.landing import run_branch
from unstuck.model.outcome import Ending
from unstuck.model.text import counted, iso, one_line, waits
from unstuck.model.verdict import Status
from unstuck.policy.schedule import blocked_tasks
from unstuck.reports.halt_summary import halt_lines
from unstuck.reports.questions import Cause, causes

STATUS_WORDS: Final = {
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
"""Our statuses in all texts for users."""
VERDICT_WORDS: Final[Mapping[Status, str]] = {
    "pass": "all checks pass",
    "fail": "against the checks",
    "inconclusive": "not verified",
}
"""The checks of accepted work if none of them is red."""

ENDED_BUT_RIGHT: Final[Mapping[Ending, str]] = {
    "first_output": "the session hung, its work was right",
    "silence": "the session hung, its work was right",
    "wall_clock": "the session ran out of time, its work was right",
    "signalled": "the session was killed, its work was right",
    "stopped": "the session was stopped, its work was right",
    "supervisor_died": "the supervisor died, the work was right",
    "worker_gone": "its worker died or left, the work was right",
}
"""The end of a session whose work passed its checks and landed."""

MERGE_COMMANDS: Final = {"single": "git merge --squash {branch} && git commit"}
MERGE_COMMAND: Final = "git merge --ff-only {branch}"
MAX_SKIPPED = 3
LINE_CHARS = 200
MAX_NAMES = 5


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
    """The agent of the last attempt."""
    seconds: float = 0.0
    """The working time of agents, in all epochs."""
    changes: str = ""
    """The size of its commit, in files and lines."""
    waits_on: str = ""
    wait_until: str | None = None
    """The end of the wait for `waits_on`, as a time stamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The state or the result of a run."""

    run: str
    exit_code: int | None
    reason: str
    home: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    seconds: float
    halted: tuple[str, ...] = ()
    """The lines of the halt summary, if the run was halted."""
    cost_usd: float | None = None
    landed: str = ""
    """A sentence on where the work is, while it is not on the user's branch."""
    commands: tuple[tuple[str, str], ...] = ()
    """The ways to get that work, each with its command."""
    cautions: tuple[str, ...] = ()
    questions: tuple[Cause, ...] = ()
    """The questions to the user, each cause once."""
    meanwhile: tuple[str, ...] = ()
    """The changes in the user's repository and checkout while sessions ran."""

    def count(self, *statuses: str) -> int:
        return sum(row.status in statuses for row in self.rows)


def summary(state: RunState, now: float, *, live: bool) -> Summary:
    """Return the status of every task. Without a living supervisor, running tasks count as interrupted."""
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
        halted=halt_lines(state) if not live else (),
        cost_usd=state.cost_usd or None,
        cautions=cautions(state),
        questions=causes(task for task in state.tasks.values() if task.status == "stuck"),
        **_unmerged_work(state),
    )


def _unmerged_work(state: RunState) -> dict[str, Any]:
    """Return where the work of an unfinished run is and the commands that merge it."""
    unmerged = [task.commit for task in state.tasks.values() if task.commit and task.commit not in state.brought]
    started, landed = state.started, len(unmerged)
    if started is None or state.ended is None or state.home is not None or not landed:
        return {}
    branch, home = run_branch(started.run), (started.branch or "").removeprefix("refs/heads/")
    command = MERGE_COMMANDS.get(started.options.commit, MERGE_COMMAND).format(branch=branch)
    commands = [("take it as it is", command)]
    stuck = [name for name, task in state.tasks.items() if task.status == "stuck"]
    if stuck:
        skipping = " && ".join(f"unstuck skip {name}" for name in stuck)
        if len(stuck) > MAX_SKIPPED:
            skipping = f"for task in {' '.join(stuck)}; do unstuck skip $task; done"
        commands.append(("bring the rest home without what is stuck", f"{skipping} && unstuck resume"))
    verb = "is" if landed == 1 else "are"
    sentence = (
        f"{landed} landed task{'s'[: landed != 1]} {verb} on branch {branch}, not on {home or 'your branch'} yet:"
    )
    return {"landed": sentence, "commands": tuple(commands)}


def run_object(state: RunState, exit_code: int) -> dict[str, Any]:
    """Return the object that `run --json` prints."""
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
    """Return a line with the lineage and the fix tasks of a task, or an empty string."""
    task, chain = state.tasks[name], state.lineage(name).chain
    parts = [f"Lineage: {' → '.join(chain)}" if len(chain) > 1 else ""]
    fixes = [f"{fix} ({STATUS_WORDS[state.tasks[fix].status]})" for fix in task.fixes if fix in state.tasks]
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
            ("pending", f"{acceptance_note(task)}; lands with `unstuck resume`")
            if task.accepted
            else ("interrupted", why)
        )
    elif status == "waiting" and task.wait_until:
        why = waits(task.waits_on, task.wait_until, now)
    elif status == "complete":
        why = _landing_note(task, [fix for fix in task.fixes if fix in state.tasks and state.tasks[fix].commit])
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
        changes=_change_size(task.changes),
        waits_on=task.waits_on if status == "waiting" else "",
        wait_until=iso(task.wait_until) if status == "waiting" and task.wait_until else None,
    )


def _change_size(changes: Changes | None) -> str:
    if changes is None or not changes.files:
        return ""
    return f"{len(changes.files)} file{'s'[: len(changes.files) != 1]} +{changes.plus} -{changes.minus}"


def acceptance_note(task: TaskState) -> str:
    """Return why a user accepted the work and the result of its checks, or an empty string."""
    if not task.accepted:
        return ""
    verdict = task.verdict
    red = sum(result.status == "fail" for result in verdict.results) if verdict else 0
    checks = VERDICT_WORDS[verdict.status if verdict else "inconclusive"]
    reason = task.accepted if task.accepted == APPROVED else f"accepted by a person ({task.accepted})"
    return f"{reason}, {counted(red, 'check')} red" if red else f"{reason}, {checks}"


def recovered_kinds(task: TaskState) -> tuple[str, ...]:
    """Return the kinds of failure that a task recovered from, or none if it landed red by acceptance."""
    verdict = task.verdict
    if task.accepted and (verdict is None or verdict.status != "pass"):
        return ()
    return tuple(dict.fromkeys(failure.kind.value for _, failure in failed_attempts(task)))


def failed_attempts(task: TaskState) -> Iterator[tuple[AttemptState, Failure]]:
    """Yield the failed attempts, without those that landed or changed the plan."""
    for attempt in task.attempts:
        action = attempt.decision.action if attempt.decision else None
        if attempt.failure is not None and not isinstance(action, Accept | Amend):
            yield attempt, attempt.failure


def _landing_note(task: TaskState, fixes: Sequence[str]) -> str:
    """Return how a landed task got there: recovery, fix tasks, sessions, unusual ends."""
    if not task.attempts:
        return "done before the run"
    failed = recovered_kinds(task)
    ending = task.current.outcome.ended.ending if task.current.outcome else "exited"
    by = f" by {', '.join(fixes)}" if fixes else ""
    most = max(attempt.sessions for attempt in task.attempts)
    right = task.verdict is not None and task.verdict.status == "pass"
    parts = [
        acceptance_note(task),
        f"recovered from {', '.join(failed)}{by}" if failed else "",
        *(f"came after {', '.join(change.ids)}" for change in task.modifications if isinstance(change, Amend)),
        f"went on in session {most}" if most > 1 else "",
        ENDED_BUT_RIGHT.get(ending, "") if right else "",
    ]
    return "; ".join(part for part in parts if part)


def cautions(state: RunState) -> tuple[str, ...]:
    """Return the cautions about all tasks, each once with the tasks that it is about."""
    tasks_by_line: dict[str, list[str]] = {}
    for name, task in state.tasks.items():
        for line in dict.fromkeys(_task_cautions(task)):
            tasks_by_line.setdefault(line, []).append(name)
    return tuple(f"{_first_names(names)}: {line}" for line, names in tasks_by_line.items())


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _task_cautions(task: TaskState) -> Iterator[str]:
    """Yield the remarks on landed work, the files that cannot land, and the calls that the agent was denied."""
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
