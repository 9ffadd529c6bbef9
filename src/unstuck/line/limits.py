"""The ceilings of a whole run: time, sessions, money."""

from unstuck.line.parts import Bench
from unstuck.tell import counted


def used_up(bench: Bench) -> str:
    """Say which ceiling of the run is reached, if any, while there is work left."""
    state = bench.record.state
    if not state.open:
        return ""
    sessions = bench.policy.limits.run_executions(len(state.tasks))
    if bench.max_time is not None and bench.clock.now() - state.began > bench.max_time:
        return "The time limit of the run is reached."
    if bench.budget_usd is not None and state.cost_usd >= bench.budget_usd:
        return f"The budget of ${bench.budget_usd:.2f} is used up: ${state.cost_usd:.2f} so far."
    if state.executions >= sessions:
        return f"The limit of {counted(sessions, 'session')} for one run is reached."
    return ""
