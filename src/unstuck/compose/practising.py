"""Run remedies and learn from them, composed: the walk, the lessons file, and the table that people see."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstuck.compose.remedying import Surgery, make_call, open_surgery, read_preferences
from unstuck.diagnosis import Diagnosis, Evidence, Failure, open_rulebook
from unstuck.errors import BadUsage, CannotWrite, UnstuckError
from unstuck.git import find
from unstuck.remedies import (
    ENOUGH,
    Lessons,
    ListFolder,
    LocalToolbox,
    Plan,
    ReadFile,
    Risk,
    Seen,
    change_lessons,
    export_lessons,
    import_lessons,
    lessons_path,
    order,
    proposals,
    read_lessons,
    script,
)
from unstuck.tell import one_line

if TYPE_CHECKING:
    from unstuck.remedies import Tried, Walked

MOST_ADVICE, ADVICE_CHARS = 3, 300


def practise(surgery: Surgery, plan: Plan, found: Diagnosis, allow: Risk | None) -> "tuple[Walked, tuple[str, ...]]":
    """Walk a plan and keep what it teaches; return it with what else should be told."""
    path, notes = lessons_path(surgery.cwd), list[str]()

    def learn(one: "Tried") -> None:
        _kept(path, lambda lessons: lessons.after(
            plan.chain, one.strategy, plan.context, worked=one.result == "worked", steps=one.steps, seconds=one.seconds
        ), notes)  # fmt: skip

    name = next((value for _, value in found.names), "")
    _kept(
        path,
        lambda lessons: lessons.with_consent(allow) if allow else lessons,
        notes,
        Seen(kind=found.kind, name=name, at=time.time()),
    )
    return surgery.run(plan, allow=allow, record=learn), tuple(dict.fromkeys(notes))


# --- inside a run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relief:
    """Remedies between two attempts: what is safe is done, the rest is advice for the next brief."""

    root: Path
    """The repository, where lessons are kept."""

    def relieve(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:
        """Do the safe steps of ways that are meant for this; the call itself is the next attempt's."""
        surgery, plan = self._plan(failure, command, cwd)
        toolbox = LocalToolbox(cwd=surgery.cwd, root=surgery.root, timeout=surgery.preferences.timeout)
        done = []
        for strategy in plan.strategies:
            steps = [told.step for told in strategy.steps if not told.step.again]
            if not strategy.between_attempts or not steps or any(step.risk != "safe" for step in steps):
                continue
            if any(isinstance(step.deed, ListFolder | ReadFile) for step in steps) or any(
                toolbox.hindrance(step.deed) for step in steps
            ):
                continue
            worked = all(toolbox.use(step).ok for step in steps)
            toolbox.settle(keep=worked)
            if worked:  # whether it helped, only the next attempt can show: nothing is learned here
                done.append(f"Remedy {strategy.strategy}: {'; '.join(step.action for step in steps)}.")
                break
        return tuple(done)

    def advise(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:
        """Tell the ways that are the agent's own to go."""
        _, plan = self._plan(failure, command, cwd)
        return tuple(
            f"{number}. {strategy.strategy} ({strategy.risk}): "
            + "; ".join(
                one_line(f"{told.step.action}: {script(told.step.deed)}".rstrip(": "), ADVICE_CHARS)
                for told in strategy.steps
            )
            for number, strategy in enumerate(plan.strategies[:-1][:MOST_ADVICE], 1)
        )

    def _plan(self, failure: Failure, command: str, cwd: Path) -> tuple[Surgery, Plan]:
        evidence = Evidence(stdout=failure.detail or failure.summary, exit_code=1, command=command)
        surgery = open_surgery(cwd)._replace(
            root=cwd, preferences=read_preferences(self.root), lessons=read_lessons(lessons_path(self.root))
        )
        found = open_rulebook(self.root).diagnose(evidence)
        if found is None or not surgery.catalog.chain(found.kind).ways:  # the output says no more than the check does
            found = Diagnosis(kind=failure.kind, confidence=1.0, message=failure.summary, evidence=evidence)
        return surgery, surgery.plan(found, make_call(evidence))


def _kept(path: Path, change: Callable[[Lessons], Lessons], notes: list[str], seen: Seen | None = None) -> None:
    """Keep a lesson where that is possible: a full disk must not stop the remedy for it."""
    try:
        if path.parents[1].name == ".git" and not path.parent.exists():
            _hide_ours(path.parents[2])
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


def experience_table(cwd: Path) -> dict[str, Any]:
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


def experience_lines(found: dict[str, Any]) -> Iterator[str]:
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
    from unstuck.journal import SqliteJournal, experience_of  # noqa: PLC0415  # only where there is a journal

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
