"""State to what people read: the files under `.unstuck/`, the summary of a run, the story of a stuck task. Values, not text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import APPROVED, AttemptState, TaskState
from unstuck.model.action import Accept, Amend, Rollback, Switch
from unstuck.model.changes import NEVER_LANDS, Changes
from unstuck.model.event import PastAttempt
from unstuck.model.failure import Failure
from unstuck.model.text import counted, iso, one_line, waits
from unstuck.model.verdict import CheckResult
from unstuck.policy.schedule import blocked
from unstuck.report.event_lines import action_text
from unstuck.report.halt_summary import halted
from unstuck.report.questions import Cause, causes
from unstuck.shipped import shipped_toml

HISTORY_STATUS = {"complete": "completed", "pending": "pending", "stuck": "stuck", "skipped": "stuck"}
"""Our statuses as Auto-Claude's files know them; what is under way is `in_progress` there, or `failed` between two attempts."""


UNDER_WAY = ("running", "verifying", "waiting")
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
    waiting = blocked(state)
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
    branch, home = f"unstuck/{started.run}", (started.branch or "").removeprefix("refs/heads/")
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


def attempt_history(state: RunState) -> dict[str, Any]:
    """Return the attempts of all tasks, in Auto-Claude's shape."""
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
    """Return the commits at which our checks were green, in Auto-Claude's shape."""
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
    return tuple(dict.fromkeys(failure.kind.value for _, failure in _failed(task)))


def _failed(task: TaskState) -> Iterator[tuple[AttemptState, Failure]]:
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


def _history(task: TaskState) -> dict[str, Any]:
    last = task.attempts[-1] if task.attempts else None
    failed = last is not None and last.failure is not None and not last.goes_on
    ended = [attempt for attempt in task.attempts if attempt.ended is not None]
    if task.status in UNDER_WAY and ended and ended[-1] is last and not failed:
        ended.pop()  # it goes on, or is being checked: nobody knows yet how it ends
    return {
        "attempts": [
            *(_inherited(past) for past in task.inherited),
            *(_old_attempt(attempt, task) for attempt in ended),
        ],
        "status": HISTORY_STATUS.get(task.status, "failed" if failed else "in_progress"),
    }


def _inherited(past: PastAttempt) -> dict[str, Any]:
    return asdict(past) | {"error": past.error or None}


def _old_attempt(attempt: AttemptState, task: TaskState) -> dict[str, Any]:
    landed = task.status == "complete" and attempt is task.attempts[-1]
    place = task.attempts.index(attempt)
    epoch = task.attempts[task.epoch_from if place >= task.epoch_from else 0 : place + 1]
    rolled = attempt.decision is not None and isinstance(attempt.decision.action, Rollback | Switch)
    return {
        "session": sum(one.sessions for one in epoch),
        "timestamp": iso(attempt.ended or attempt.started),
        "approach": attempt.outcome.approach if attempt.outcome else "",
        "success": landed,
        "error": attempt.failure.says if attempt.failure else None,
        **({"rolled_back_to": attempt.base} if rolled else {}),
    }


def _metadata(state: RunState) -> dict[str, Any]:
    times = [task.last_at for task in state.tasks.values()]
    return {"created_at": iso(state.created), "last_updated": iso(max(times, default=0.0) or state.created)}


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
            if result.although:
                yield one_line(f"`{result.command}` is red, and excused: {result.although}", LINE_CHARS)
            elif result.idle:
                yield one_line(f"`{result.command}` says nothing: {result.idle}", LINE_CHARS)
    denied = [call for attempt in task.attempts if attempt.outcome for call in attempt.outcome.denied]
    yield from (one_line(f"its agent was not allowed {call}", LINE_CHARS) for call in dict.fromkeys(denied))


# --- a run as a page of Markdown; foreign text cannot pose as more

TITLE_CHARS, SAID_CHARS, COMMAND_CHARS = 72, 200, 160
LEFT = ("stuck", "blocked", "pending", "interrupted", "waiting", "running", "verifying")


def pull_request(state: RunState, result: Summary) -> tuple[str, str]:
    """Write the title and the body of a pull request for what landed."""
    landed = [task for task in state.tasks.values() if task.commit is not None]
    about = state.started.title if state.started else ""
    title = landed[0].task.subject if len(landed) == 1 else about or f"{counted(len(landed), 'task')} of a plan"
    return one_line(title, TITLE_CHARS), "\n".join(_page_sections(state, result)) + "\n"


def page_of(state: RunState, result: Summary) -> str:
    """Write the whole page."""
    about = state.started.about if state.started else ""
    head = [f"# Run {result.run}: {_prose(about)}", "", result.reason, _prose(result.home), ""]
    return "\n".join([*head, *_page_sections(state, result)]) + "\n"


def _page_sections(state: RunState, result: Summary) -> Iterator[str]:
    landed = [task for task in state.tasks.values() if task.commit is not None]
    parts = (
        ("What landed", _landed(landed)),
        ("How it was verified", _verified(landed)),
        ("What was recovered", _recovered(landed)),
        ("What is left", _left(result)),
        ("Worth a look", [f"- {_prose(one)}" for one in result.cautions]),
    )
    for heading, lines in parts:
        listed = list(lines)
        if listed:
            yield from (f"## {heading}", "", *listed, "")
    cost = f", ${result.cost_usd:.2f}" if result.cost_usd is not None else ""
    tries = sum(len(task.attempts) for task in state.tasks.values())
    yield f"{counted(tries, 'attempt')}{cost}, run `{result.run}` of `unstuck`: every claim was checked in a clean checkout."


def _landed(tasks: Iterable[TaskState]) -> Iterator[str]:
    rows = list(tasks)
    if rows:
        yield from ("| task | what | commit | files |", "|---|---|---|---|")
    for task in rows:
        changes = task.changes
        files = f"{len(changes.files)} (+{changes.plus} -{changes.minus})" if changes else ""
        yield f"| {task.task.shown} | {_prose(task.task.subject)} | {(task.commit or '')[:12]} | {files} |"


def _verified(tasks: Iterable[TaskState]) -> Iterator[str]:
    """List each command once, with how it went last and for how many tasks."""
    seen: dict[str, list[CheckResult]] = {}
    for task in tasks:
        verdict = task.verdict
        for result in verdict.results if verdict else ():
            seen.setdefault(result.command, []).append(result)
        if task.accepted:
            yield f"- Task {task.task.shown} was taken as it is by a person: {_prose(task.accepted)}"
    for command, results in seen.items():
        last = results[-1]
        counts = last.counts
        facts = [f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped" if counts else last.status]
        facts += [_prose(part) for part in (last.although, last.idle) if part]
        facts += [f"after {len(results)} tasks"] if len(results) > 1 else []
        yield f"- {_code(command, COMMAND_CHARS)}: {'; '.join(facts)}"


def _recovered(tasks: Iterable[TaskState]) -> Iterator[str]:
    for task in tasks:
        for attempt, failure in _failed(task):
            then = f"; decided to {_prose(action_text(attempt.decision.action))}" if attempt.decision else ""
            what = f"{failure.kind.value} {_code(failure.says, SAID_CHARS)}"
            yield f"- Task {task.task.shown}, attempt {attempt.number}: {what}{then}"


def _left(result: Summary) -> Iterator[str]:
    asked = {name: cause.question for cause in result.questions for name in cause.tasks}
    for row in result.rows:
        if row.status in LEFT:
            why = asked.get(row.id) or row.why
            yield f"- {row.id} {_prose(row.title)}: {row.status}{f', {_code(why, SAID_CHARS)}' if why else ''}"
        elif row.status == "skipped":
            yield f"- {row.id} {_prose(row.title)}: skipped by a person"


def _prose(text: str) -> str:
    """Return text from elsewhere as one line that is only text: no markup, nobody is mentioned, no issue is closed."""
    marked = re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", one_line(text, SAID_CHARS))
    return re.sub(r"([@#])(?=\w)", "\\1\u200b", marked)


def _code(text: str, limit: int) -> str:
    """Return text from elsewhere as code, which nothing in it can end."""
    return f"`{one_line(text, limit).replace('`', chr(39)).replace('|', chr(0xA6))}`"
