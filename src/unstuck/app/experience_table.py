"""Edge: What runs and remedies taught: counted over this repository's runs, shared with the user's other ones, and shown as a table."""

import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from unstuck.app.journal_location import open_to_look
from unstuck.app.remedy_plan import open_remedies
from unstuck.git.repository import Repository, find, slots_folder
from unstuck.journal.run_state import fold
from unstuck.journal.store import Store
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Amend, Escalate, Fix, Halt, Retry, Rollback, Switch
from unstuck.model.errors import BadUsage, UnstuckError
from unstuck.model.event import Options
from unstuck.model.plan import Plan
from unstuck.policy.experience import ANY_AGENT, Experience, Tried, pooled, task_sort
from unstuck.process.atomic_files import put
from unstuck.remedies.learning import ENOUGH, order, proposals
from unstuck.remedies.lessons_file import change_lessons, export_lessons, import_lessons, read_lessons
from unstuck.remedies.machine import lessons_path

ASKING = (Escalate, Halt)
MOVES = (Retry, Rollback, Switch, Fix, Amend, *ASKING)
SCHEMA = 1
MOST_FILES = 100


def experience_of(journal: Store, *, without: str = "") -> Experience:
    """Count how the attempts of all earlier runs in this repository ended, but for the run that asks."""
    agents: defaultdict[str, Tried] = defaultdict(Tried)
    sorts: defaultdict[tuple[str, str], Tried] = defaultdict(Tried)
    moves: defaultdict[tuple[str, str, str], Tried] = defaultdict(Tried)
    for run in journal.runs():
        for task in fold(journal.read(run)).tasks.values() if run != without else ():
            for attempt, landed in _judged(task):
                one = Tried(tried=1, won=int(landed))
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


def known_experience(repository: Repository, journal: Store, *, without: str = "") -> Experience:
    """Return what runs taught here, and, for a quarter, in the user's other repositories; tell those what was learned here."""
    here = experience_of(journal, without=without)
    own = _folder() / f"{slots_folder(repository).parent.name}.json"
    with contextlib.suppress(UnstuckError):  # a state folder that cannot be written shares nothing
        put(own, json.dumps(_as_table(here), ensure_ascii=False))
    return pooled(here, _others(own))


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "unstuck" / "experience"


def _others(own: Path) -> Iterator[Experience]:
    """Read the other repositories' files; one that cannot be read teaches nothing."""
    for path in sorted(own.parent.glob("*.json"))[:MOST_FILES]:
        if path == own:
            continue
        try:
            yield _from_table(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue


def _as_table(known: Experience) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "agents": [[name, one.won, one.failed] for name, one in known.agents.items()],
        "sorts": [[*key, one.won, one.failed] for key, one in known.sorts.items()],
        "moves": [[*key, one.tried, one.won, round(one.seconds, 3)] for key, one in known.moves.items()],
    }


def _from_table(table: dict[str, Any]) -> Experience:
    if table["schema"] != SCHEMA:
        raise ValueError(table["schema"])
    return Experience(
        agents={str(name): _record(landed, failed) for name, landed, failed in table["agents"]},
        sorts={(str(name), str(sort)): _record(landed, failed) for name, sort, landed, failed in table["sorts"]},
        moves={
            (str(kind), str(move), str(agent)): Tried(tried=int(tried), won=int(won), seconds=float(seconds))
            for kind, move, agent, tried, won, seconds in table["moves"]
        },
    )


def _record(landed: object, failed: object) -> Tried:
    return Tried(tried=int(str(landed)) + int(str(failed)), won=int(str(landed)))


def ordered(options: Options, experience: Experience, plan: Plan) -> Options:
    """Let experience say who begins, where that is asked for, or nobody said otherwise and there is evidence enough."""
    wanted = options.order == "experience" or (options.order is None and experience.enough(options.agents))
    if not wanted or len(options.agents) < 2:  # noqa: PLR2004  # one agent is in order by itself
        return replace(options, order="given")
    records = experience.records(options.agents)
    own = {sort: experience.records(options.agents, sort) for sort in sorted({task_sort(one) for one in plan.tasks})}
    known = tuple((sort, each) for sort, each in own.items() if each != records)
    return replace(options, order="experience", records=records, sorts=known)


def who_begins(options: Options) -> tuple[str, ...]:
    """Tell by which figures the agents are chosen."""
    if not options.records:
        return ()
    rates = sorted(options.records, key=lambda one: -(one[1] + 1) / (one[1] + one[2] + 2))
    told = ", ".join(f"{name} landed {landed} of {landed + failed}" for name, landed, failed in rates)
    apart = (
        f"; tasks of the sorts {', '.join(sort for sort, _ in options.sorts)} by their own figures"
        if options.sorts
        else ""
    )
    return (f"Who begins a task is drawn by experience ({told}{apart}); --order given keeps your order.",)


def experience_rows(cwd: Path) -> dict[str, Any]:
    """Return everything that was learned, chain by chain in the order in which ways are tried now."""
    planner, path = open_remedies(cwd), lessons_path(cwd)
    lessons = read_lessons(path)
    rows = []
    for chain in planner.catalog.chains.values():
        places = sorted({(context, tool) for name, _, context, tool in lessons.counts if name == chain.name})
        for context, tool in places:
            for place, strategy in enumerate(order(chain.strategies, chain.name, context, lessons, tool), 1):
                counts = lessons.counts.get((chain.name, strategy.name, context, tool))
                if counts is not None:
                    known = lessons.rate(chain.name, strategy.name, context, tool, strategy.confidence)
                    rows.append({
                        "chain": chain.name, "strategy": strategy.name, "context": context, "tool": tool, "place": place, "tries": counts.tries,
                        "successes": counts.successes, "seconds": round(counts.seconds, 3), "steps": counts.steps, "cost": round(counts.cost, 6),
                        "confidence": strategy.confidence, "adapted": round(known, 3),
                    })  # fmt: skip
    return {"schema": 1, "file": str(path), "rows": rows, "proposals": list(proposals(lessons)), "agents": _agents(cwd)}


def experience_lines(found: dict[str, Any]) -> Iterator[str]:
    """Tell the table to a person."""
    if not found["rows"] and not found["agents"]:
        yield "Nothing was learned here yet. Remedies that are run with `unstuck remedy --run` teach, and so do runs."
        return
    if found["rows"]:
        yield f"{'chain':20} {'strategy':30} {'context':16} {'tool':14} {'worked':>9} {'time':>8} {'listed':>6} {'now':>5}  place"
        for row in found["rows"]:
            worked = f"{row['successes']} of {row['tries']}"
            spent = f"{row['seconds'] / row['tries']:.1f} s"
            yield f"{row['chain']:20} {row['strategy']:30} {row['context'] or '-':16} {row['tool'] or '-':14} {worked:>9} {spent:>8} {row['confidence']:6.2f} {row['adapted']:5.2f}  {row['place']}"
        yield f"\nA way overtakes the one before it when both were tried {ENOUGH} times and it does better, or as well for less money or time."
    for name, agent in found["agents"].items():
        yield f"agent {name}: {agent['landed']} attempts landed, {agent['failed']} failed"
    for sentence in found["proposals"]:
        yield f"Proposal for [remedies] in unstuck.toml: {sentence}"


def export_experience(cwd: Path, target: str, echo: Callable[[str], None]) -> None:
    text = export_lessons(lessons_path(cwd))
    if target == "-":
        echo(text.rstrip("\n"))
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadUsage(
            f"{target} cannot be written: {error.strerror}.", hint="Name another file, or - for stdout."
        ) from error
    echo(f"Wrote what was learned to {target}.")


def import_experience(cwd: Path, text: str, source: str) -> str:
    lessons, path = import_lessons(text, source), lessons_path(cwd)
    change_lessons(path, lambda _: lessons)
    return f"Took over {len(lessons.counts)} rows from {source}."


def forget_experience(cwd: Path) -> str:
    """Begin anew; the old file stays beside the new one."""
    path = lessons_path(cwd)
    if not path.exists():
        return "There was nothing to forget."
    copy = path.with_name(f"{path.name}.before-reset")
    path.replace(copy)
    return f"Forgotten; a copy is {copy}."


def _agents(cwd: Path) -> dict[str, dict[str, int]]:
    """Return how the attempts of every agent ended, where there were runs."""
    try:
        repository = find(cwd)
    except UnstuckError:
        return {}  # remedies teach where there is no repository, too
    journal = open_to_look(repository)
    if journal is None:
        return {}
    with contextlib.closing(journal):
        agents = experience_of(journal).agents
    return {name: {"landed": record.won, "failed": record.failed} for name, record in agents.items()}
