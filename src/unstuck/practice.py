"""Run remedies and learn from them, composed: the walk, the lessons file, and the table that people see."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstuck.adapters.lessons_file import change_lessons, export_lessons, import_lessons, read_lessons
from unstuck.adapters.probing import lessons_path
from unstuck.adapters.repository import find
from unstuck.core.diagnosis import Diagnosis
from unstuck.core.remedies.chain import Risk
from unstuck.core.remedies.learning import ENOUGH, Lessons, order, proposals
from unstuck.core.remedies.patterns import Seen
from unstuck.core.remedies.plan import Plan
from unstuck.errors import BadUsage, CannotWrite, UnstuckError
from unstuck.surgery import Surgery, open_surgery

if TYPE_CHECKING:
    from unstuck.engine.remedying import Tried, Walked


def practise(surgery: Surgery, plan: Plan, found: Diagnosis, allow: Risk | None) -> "tuple[Walked, tuple[str, ...]]":
    """Walk a plan and keep what it teaches; return it with what else should be told."""
    path, notes = lessons_path(surgery.cwd), list[str]()

    def learn(one: "Tried") -> None:
        _kept(path, lambda lessons: lessons.after(
            plan.chain, one.strategy, plan.context, worked=one.result == "worked", steps=one.steps, seconds=one.seconds
        ), notes)  # fmt: skip

    name = next((value for _, value in found.names), "") or (surgery.context and "")
    _kept(
        path,
        lambda lessons: lessons.with_consent(allow) if allow else lessons,
        notes,
        Seen(kind=found.kind, name=name, at=time.time()),
    )
    return surgery.run(plan, allow=allow, record=learn), tuple(dict.fromkeys(notes))


def _kept(path: Path, change: Callable[[Lessons], Lessons], notes: list[str], seen: Seen | None = None) -> None:
    """Keep a lesson where that is possible: a full disk must not stop the remedy for it."""
    try:
        if path.parent.name == ".unstuck" and not path.parent.exists():
            _hide_ours(path.parent.parent)
        change_lessons(path, change, seen)
    except CannotWrite as error:
        notes.append(f"What was learned could not be kept: {error.message}")


def _hide_ours(root: Path) -> None:
    """Keep `.unstuck/` out of the user's `git status`."""
    try:
        find(root).exclude_ours()
    except UnstuckError:
        return  # a repository without a commit has no status to keep clean yet


# --- the table ------------------------------------------------------------------------------------------------------


def table(cwd: Path) -> dict[str, Any]:
    """Return everything that was learned, chain by chain in the order in which ways are tried now."""
    surgery, path = open_surgery(cwd), lessons_path(cwd)
    lessons = read_lessons(path)
    rows = []
    for chain in surgery.catalog.chains.values():
        contexts = sorted({context for name, _, context in lessons.counts if name == chain.name})
        for context in contexts:
            for place, way in enumerate(order(chain.ways, chain.name, context, lessons), 1):
                counts = lessons.counts.get((chain.name, way.name, context))
                if counts is not None:
                    rows.append({
                        "chain": chain.name, "strategy": way.name, "context": context, "place": place, "tries": counts.tries,
                        "successes": counts.successes, "seconds": round(counts.seconds, 3), "steps": counts.steps,
                        "confidence": way.confidence, "adapted": round(lessons.of(chain.name, way.name, context).blended(way.confidence), 3),
                    })  # fmt: skip
    return {"schema": 1, "file": str(path), "rows": rows, "proposals": list(proposals(lessons)), "agents": _agents(cwd)}


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Tell the table to a person."""
    if not found["rows"] and not found["agents"]:
        yield "Nothing was learned here yet. Remedies that are run with `unstuck remedy --run` teach, and so do runs."
        return
    if found["rows"]:
        yield f"{'chain':20} {'strategy':30} {'context':22} {'worked':>9} {'seed':>5} {'now':>5}  place"
        for row in found["rows"]:
            worked = f"{row['successes']} of {row['tries']}"
            yield f"{row['chain']:20} {row['strategy']:30} {row['context'] or '-':22} {worked:>9} {row['confidence']:5.2f} {row['adapted']:5.2f}  {row['place']}"
        yield f"\nA way overtakes the one before it when both were tried {ENOUGH} times and it does better."
    for name, agent in found["agents"].items():
        yield f"agent {name}: {agent['landed']} attempts landed, {agent['failed']} failed"
    for sentence in found["proposals"]:
        yield f"Proposal for [remedies] in unstuck.toml: {sentence}"


def export_to(cwd: Path, target: str, echo: Callable[[str], None]) -> None:
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


def import_from(cwd: Path, text: str, source: str) -> str:
    lessons, path = import_lessons(text, source), lessons_path(cwd)
    change_lessons(path, lambda _: lessons)
    return f"Took over {len(lessons.counts)} rows from {source}."


def forget(cwd: Path) -> str:
    """Begin anew; the old file stays beside the new one."""
    path = lessons_path(cwd)
    if not path.exists():
        return "There was nothing to forget."
    copy = path.with_name(f"{path.name}.before-reset")
    path.replace(copy)
    return f"Forgotten; a copy is {copy}."


def _agents(cwd: Path) -> dict[str, dict[str, int]]:
    """Return how the attempts of every agent ended, where there were runs."""
    from unstuck.adapters.sqlite import SqliteJournal  # noqa: PLC0415  # only where there is a journal
    from unstuck.run import experience_of  # noqa: PLC0415  # as above

    path = lessons_path(cwd).with_name("journal.db")
    if not path.exists():
        return {}
    journal = SqliteJournal(path)
    try:
        return {
            name: {"landed": record.landed, "failed": record.failed}
            for name, record in experience_of(journal).agents.items()
        }
    finally:
        journal.close()
