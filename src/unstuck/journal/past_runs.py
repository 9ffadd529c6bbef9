"""Edge: What earlier runs in this repository teach: how each agent did, and what each move came to."""

from collections import defaultdict
from collections.abc import Iterator

from unstuck.decide import (
    ANY_AGENT,
    Amend,
    Escalate,
    Experience,
    Fix,
    Halt,
    Record,
    Retry,
    Rollback,
    Switch,
    Tried,
    task_sort,
)
from unstuck.journal.run_state import fold
from unstuck.journal.storing import Store
from unstuck.journal.task_state import AttemptState, TaskState

ASKING = (Escalate, Halt)
MOVES = (Retry, Rollback, Switch, Fix, Amend, *ASKING)


def experience_of(journal: Store, *, without: str = "") -> Experience:
    """Count how the attempts of all earlier runs in this repository ended, but for the run that asks."""
    agents: defaultdict[str, Record] = defaultdict(Record)
    sorts: defaultdict[tuple[str, str], Record] = defaultdict(Record)
    moves: defaultdict[tuple[str, str, str], Tried] = defaultdict(Tried)
    for run in journal.runs():
        for task in fold(journal.read(run)).tasks.values() if run != without else ():
            for attempt, landed in _judged(task):
                one = Record(landed=int(landed), failed=int(not landed))
                agents[attempt.agent] += one
                sorts[attempt.agent, task_sort(task.task)] += one
            for kind, move, agent, tried in _made(task):
                for name in (agent, ANY_AGENT):
                    moves[kind, move, name] += tried
    return Experience(agents=dict(agents), sorts=dict(sorts), moves=dict(moves))


def _judged(task: TaskState) -> Iterator[tuple[AttemptState, bool]]:
    """Yield the attempts that say something about their agent, and whether they landed."""
    for attempt in task.attempts:
        landed = attempt is task.attempts[-1] and task.status == "complete"
        if landed or (attempt.failure is not None and attempt.failure.charged):
            yield attempt, landed


def _made(task: TaskState) -> Iterator[tuple[str, str, str, Tried]]:
    """Yield what was done about each failure and what it came to: the attempt after it landed or not, in so many seconds."""
    for place, attempt in enumerate(task.attempts[:-1]):
        action = attempt.decision.action if attempt.decision else None
        if attempt.failure is None or not attempt.failure.charged or not isinstance(action, MOVES):
            continue
        move = "ask" if isinstance(action, ASKING) else action.type
        won = task.status == "complete" and (place + 2 == len(task.attempts) or move in ("ask", "fix", "amend"))
        tried = Tried(tried=1, won=int(won), seconds=task.attempts[place + 1].worked)
        yield str(attempt.failure.kind), move, attempt.agent, tried
