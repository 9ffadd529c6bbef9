"""Edge: What earlier runs in this repository teach: how each agent did."""

from unstuck.decide import Experience, Record
from unstuck.journal.run_state import fold
from unstuck.journal.storing import Store


def experience_of(journal: Store) -> Experience:
    """Count how the attempts of all earlier runs in this repository ended, agent by agent."""
    counts: dict[str, list[int]] = {}
    for run in journal.runs():
        for task in fold(journal.read(run)).tasks.values():
            for attempt in task.attempts:
                landed = attempt is task.attempts[-1] and task.status == "complete"
                if landed or (attempt.failure is not None and attempt.failure.charged):
                    counts.setdefault(attempt.agent, [0, 0])[0 if landed else 1] += 1
    return Experience(agents={name: Record(landed=landed, failed=failed) for name, (landed, failed) in counts.items()})
