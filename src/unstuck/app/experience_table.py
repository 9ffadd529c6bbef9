"""Count the results of earlier attempts and remedies, and print them as a table."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from unstuck.app.journal_location import open_to_look
from unstuck.app.remedy_plan import open_remedies
from unstuck.git.repository import find_repository
from unstuck.journal.run_state import fold
from unstuck.journal.store import Store
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.errors import BadUsage, UnstuckError
from unstuck.model.event import Options
from unstuck.policy.experience import Experience, Tried, sorted_by_rate
from unstuck.remedies.learning import ENOUGH, order, proposals
from unstuck.remedies.lessons_file import change_lessons, export_lessons, import_lessons, read_lessons
from unstuck.remedies.machine import lessons_path


def experience_of(journal: Store, *, without: str = "") -> Experience:
    """Count how the attempts of all earlier runs in this repository ended. The run `without` is left out."""
    agents: defaultdict[str, Tried] = defaultdict(Tried)
    for run in journal.runs():
        if run == without:
            continue
        for task in fold(journal.read(run)).tasks.values():
            for attempt, landed in _judged(task):
                agents[attempt.agent] += Tried(tried=1, won=int(landed))
    return Experience(agents=dict(agents))


def _judged(task: TaskState) -> Iterator[tuple[AttemptState, bool]]:
    """Yield the attempts that say something about their agent, and whether they landed."""
    for attempt in task.attempts:
        landed = attempt is task.attempts[-1] and task.status == "complete"
        if landed or (attempt.failure is not None and attempt.failure.charged):
            yield attempt, landed


def order_agents(options: Options, experience: Experience) -> Options:
    """Return the options with the order of agents decided: by landed rate if asked for or known, else as given."""
    wanted = options.order == "experience" or (options.order is None and experience.can_order(options.agents))
    if not wanted or len(options.agents) < 2:  # noqa: PLR2004  # there is nothing to order
        return replace(options, order="given")
    return replace(options, order="experience", records=experience.records(options.agents))


def who_begins(options: Options) -> tuple[str, ...]:
    """Return a note with the figures by which the agents are ordered; none where they are tried as given."""
    if not options.records:
        return ()
    figures = {name: f"{name} landed {landed} of {landed + failed}" for name, landed, failed in options.records}
    agents = sorted_by_rate([*figures], options.records)
    listed = ", ".join(figures[name] for name in agents)
    return (f"Agents begin in the order of their landed work ({listed}). Keep your own order with --order given.",)


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
        repository = find_repository(cwd)
    except UnstuckError:
        return {}  # remedies teach where there is no repository, too
    journal = open_to_look(repository)
    if journal is None:
        return {}
    with contextlib.closing(journal):
        agents = experience_of(journal).agents
    return {name: {"landed": record.won, "failed": record.failed} for name, record in agents.items()}
