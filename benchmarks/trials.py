"""Replay recorded trials of agents under a policy, to see what it would have solved and with how many attempts.

A trial is one finished attempt of one agent at one task. The same `decide` chooses as in a run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from unstuck.model.action import Continue, Retry, Rollback, Switch, Wait
from unstuck.model.failure import Failure, Kind
from unstuck.policy.decision import History, decide
from unstuck.policy.profiles import Policy
from unstuck.policy.schedule import Experience, Tried, sorted_by_rate

Ended = Literal["done", "timeout", "error"]

KIND_OF: Mapping[Ended, Kind] = {"done": Kind.TEST_FAILED, "timeout": Kind.TIMEOUT, "error": Kind.AGENT_CRASHED}

ENDED: Mapping[str, Ended] = {word: word for word in KIND_OF}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    task: str
    agent: str
    passed: bool
    ended: Ended = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    solved: int
    attempts: int


def replay(trials: Sequence[Trial], policy: Policy, budget: int) -> Score:
    """Take every agent once as the first choice for every task that it has tried, the others strongest first behind it."""
    whole, stories = experience(trials), []
    for lists in _by_task(trials).values():
        known = _elsewhere(whole, lists)
        strongest = sorted(known.agents, key=lambda name: (-known.agents[name].rate, name))
        stories += [
            _story(lists, (first, *(name for name in strongest if name != first)), policy, known, budget)
            for first in lists
        ]
    return Score(solved=sum(solved for solved, _ in stories), attempts=sum(attempts for _, attempts in stories))


def replay_by_experience(trials: Sequence[Trial], policy: Policy, budgets: Sequence[int]) -> dict[int, Score]:
    """Play the same stories, but begin with the agent that did best at all other tasks."""
    by_task = _by_task(trials)
    stories: dict[int, list[tuple[bool, int]]] = {budget: [] for budget in budgets}
    for task, lists in by_task.items():
        known = experience(trial for trial in trials if trial.task != task)
        order = sorted_by_rate([*lists], known.records([*lists]))
        for _ in lists:
            for budget, played in stories.items():
                played.append(_story(lists, order, policy, known, budget))
    return {
        budget: Score(solved=sum(solved for solved, _ in played), attempts=sum(attempts for _, attempts in played))
        for budget, played in stories.items()
    }


def _by_task(trials: Iterable[Trial]) -> dict[str, dict[str, list[Trial]]]:
    by_task: dict[str, dict[str, list[Trial]]] = {}
    for trial in trials:
        by_task.setdefault(trial.task, {}).setdefault(trial.agent, []).append(trial)
    return by_task


def experience(trials: Iterable[Trial]) -> Experience:
    """Count what each agent's trials came to."""
    counts: dict[str, Counter[bool]] = {}
    for trial in trials:
        counts.setdefault(trial.agent, Counter())[trial.passed] += 1
    return Experience(agents={name: Tried(tried=count.total(), won=count[True]) for name, count in counts.items()})


def _elsewhere(known: Experience, lists: Mapping[str, Sequence[Trial]]) -> Experience:
    """Take a task's own trials out of what is known: nobody knows how a task ends before it has."""
    agents = dict(known.agents)
    for name, trials in lists.items():
        passed = sum(trial.passed for trial in trials)
        agents[name] = Tried(tried=agents[name].tried - len(trials), won=agents[name].won - passed)
    return replace(known, agents=agents)


def _story(
    lists: Mapping[str, Sequence[Trial]], agents: tuple[str, ...], policy: Policy, known: Experience, budget: int
) -> tuple[bool, int]:
    """Play one task from one first choice; return whether it was solved, and the attempts used."""
    agent, used = agents[0], Counter[str]()
    climbed: tuple[str, ...] = ()
    rollbacks = 0
    for attempt in range(1, budget + 1):
        if used[agent] >= len(lists.get(agent, ())):
            return False, attempt - 1
        trial = lists[agent][used[agent]]
        used[agent] += 1
        if trial.passed:
            return True, attempt
        left = tuple(name for name in agents if used[name] < len(lists.get(name, ())))
        history = History(
            attempts=attempt,
            executions=attempt,
            climbed=climbed,
            rollbacks=rollbacks,
            agent=agent,
            agents=left,
            tries=used,
        )
        failure = Failure(kind=KIND_OF[trial.ended], summary=f"trial {attempt} of {trial.task} failed")
        decision = decide(failure, history, policy, known)
        climbed += (decision.rung,)
        match decision.action:
            case Switch(agent=other):
                agent = other
            case Retry() | Rollback() | Continue() | Wait():
                rollbacks += isinstance(decision.action, Rollback)
            case _:
                return False, attempt
    return False, budget
