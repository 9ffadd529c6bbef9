"""Edge: What remedies and agents taught, as a table: shown, exported, taken over and forgotten."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unstuck.compose.remedying import open_surgery
from unstuck.errors import BadUsage, UnstuckError
from unstuck.remedies import (
    ENOUGH,
    change_lessons,
    export_lessons,
    import_lessons,
    lessons_path,
    order,
    proposals,
    read_lessons,
)


def experience_rows(cwd: Path) -> dict[str, Any]:
    """Return everything that was learned, chain by chain in the order in which ways are tried now."""
    surgery, path = open_surgery(cwd), lessons_path(cwd)
    lessons = read_lessons(path)
    rows = []
    for chain in surgery.catalog.chains.values():
        places = sorted({(context, tool) for name, _, context, tool in lessons.counts if name == chain.name})
        for context, tool in places:
            for place, way in enumerate(order(chain.ways, chain.name, context, lessons, tool), 1):
                counts = lessons.counts.get((chain.name, way.name, context, tool))
                if counts is not None:
                    known = lessons.of(chain.name, way.name, context, tool)
                    rows.append({
                        "chain": chain.name, "strategy": way.name, "context": context, "tool": tool, "place": place, "tries": counts.tries,
                        "successes": counts.successes, "seconds": round(counts.seconds, 3), "steps": counts.steps, "cost": round(counts.cost, 6),
                        "confidence": way.confidence, "adapted": round(known.blended(way.confidence), 3),
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
    from unstuck.compose.fleets.stores import open_to_look  # noqa: PLC0415  # only where agents are asked for
    from unstuck.git import find  # noqa: PLC0415  # as above
    from unstuck.journal import experience_of  # noqa: PLC0415  # as above

    try:
        repository = find(cwd)
    except UnstuckError:
        return {}  # remedies teach where there is no repository, too
    journal = open_to_look(repository)
    if journal is None:
        return {}
    try:
        return {
            name: {"landed": record.landed, "failed": record.failed}
            for name, record in experience_of(journal).agents.items()
        }
    finally:
        journal.close()
