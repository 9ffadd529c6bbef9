"""Count the results of attempts and remedies for the table of experience."""

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
from unstuck.policy.schedule import Experience, Tried, sorted_by_rate
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
    """Yield the attempts that count for their agent, each with whether it landed."""
    for attempt in task.attempts:
        landed = attempt is task.attempts[-1] and task.status == "complete"
        if landed or (attempt.failure is not None and attempt.failure.charged):
            yield attempt, landed


def order_agents(options: Options, experience: Experience) -> Options:
    """Return the options with a decided order: by landed rate if requested or well known, else as given."""
    wanted = options.order == "experience" or (options.order is None and experience.can_order(options.agents))
    if not wanted or len(options.agents) < 2:  # noqa: PLR2004  # there is nothing to order
        return replace(options, order="given")
    return replace(options, order="experience", records=experience.records(options.agents))


def who_begins(options: Options) -> tuple[str, ...]:
    """Return a note with the figures that order the agents, if they decide."""
    if not options.records:
        return ()
    figures = {name: f"{name} landed {landed} of {landed + failed}" for name, landed, failed in options.records}
    agents = sorted_by_rate([*figures], options.records)
    listed = ", ".join(figures[name] for name in agents)
    return (f"Agents begin in the order of their landed work ({listed}). Keep your own order with --order given.",)


def experience_rows(cwd: Path) -> dict[str, Any]:
    """Return the results of remedies, chain by chain in the present order of trying, and those of agents."""
    path = lessons_path(cwd)
    lessons = read_lessons(path)
    rows = []
    for chain in open_remedies(cwd).catalog.chains.values():
        places = sorted({(context, tool) for name, _, context, tool in lessons.counts if name == chain.name})
        for context, tool in places:
            strategies = order(chain.strategies, chain.name, context, lessons, tool)
            for place, strategy in enumerate(strategies, 1):
                counts = lessons.counts.get((chain.name, strategy.name, context, tool))
                if counts is None:
                    continue
                rate = lessons.rate(chain.name, strategy.name, context, tool, strategy.confidence)
                rows.append(
                    {
                        "chain": chain.name,
                        "strategy": strategy.name,
                        "context": context,
                        "tool": tool,
                        "place": place,
                        "tries": counts.tries,
                        "successes": counts.successes,
                        "seconds": round(counts.seconds, 3),
                        "steps": counts.steps,
                        "cost": round(counts.cost, 6),
                        "confidence": strategy.confidence,
                        "adapted": round(rate, 3),
                    }
                )
    return {"schema": 1, "file": str(path), "rows": rows, "proposals": list(proposals(lessons)), "agents": _agents(cwd)}


def experience_lines(table: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table for people."""
    if not table["rows"] and not table["agents"]:
        yield "Nothing was learned here yet. Remedies that are run with `unstuck remedy --run` teach, and so do runs."
        return
    if table["rows"]:
        yield f"{'chain':20} {'strategy':30} {'context':16} {'tool':14} {'worked':>9} {'time':>8} {'listed':>6} {'now':>5}  place"
        for row in table["rows"]:
            worked = f"{row['successes']} of {row['tries']}"
            time = f"{row['seconds'] / row['tries']:.1f} s"
            context, tool = row["context"] or "-", row["tool"] or "-"
            head = f"{row['chain']:20} {row['strategy']:30} {context:16} {tool:14} {worked:>9} {time:>8}"
            yield f"{head} {row['confidence']:6.2f} {row['adapted']:5.2f}  {row['place']}"
        yield f"\nA way overtakes the one before it when both were tried {ENOUGH} times and it does better, or as well for less money or time."
    for name, agent in table["agents"].items():
        yield f"agent {name}: {agent['landed']} attempts landed, {agent['failed']} failed"
    for sentence in table["proposals"]:
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
    """Set the learned results of remedies aside in a copy, and return a sentence about it."""
    path = lessons_path(cwd)
    if not path.exists():
        return "There was nothing to forget."
    copy = path.with_name(f"{path.name}.before-reset")
    path.replace(copy)
    return f"Forgotten; a copy is {copy}."


def _agents(cwd: Path) -> dict[str, dict[str, int]]:
    """Return the numbers of landed and failed attempts of each agent."""
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
