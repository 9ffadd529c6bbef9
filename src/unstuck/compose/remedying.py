"""Edge: One remedy, composed: the chains of the catalogue, the facts of this machine, what was learned, the plan, and running it."""

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unstuck.diagnosis import Diagnosis, Evidence, Failure, open_rulebook
from unstuck.errors import BadUsage, CannotWrite, UnstuckError
from unstuck.git import find
from unstuck.remedies import (
    ENOUGH,
    Call,
    Catalog,
    Lessons,
    ListFolder,
    LocalToolbox,
    Plan,
    Preferences,
    ReadFile,
    Risk,
    Seen,
    Situation,
    Strategy,
    TaskType,
    Tools,
    change_lessons,
    export_lessons,
    import_lessons,
    lessons_path,
    look_around,
    order,
    proposals,
    read_catalog,
    read_lessons,
    script,
    workspace_root,
)
from unstuck.remedies import recovery_plan as planning
from unstuck.tell import one_line

if TYPE_CHECKING:
    from unstuck.remedies import Pattern, Tool, Tried, Walked
if TYPE_CHECKING:
    from unstuck.remedies import Tried, Walked


STACKS = {
    "pyproject.toml": "python", "setup.py": "python", "requirements.txt": "python", "package.json": "node", "Cargo.toml": "rust",
    "go.mod": "go", "pom.xml": "jvm", "build.gradle": "jvm", "Gemfile": "ruby", "composer.json": "php",
}  # fmt: skip
"""A file at the top → what the project is made of: the context in which experience counts."""
TOOL_NAME = re.compile(r"[\w.:/-]{1,200}")
CONFIG_FILES = ("unstuck.toml", "pyproject.toml")


class Remedy(dict[str, Any]):
    """A recovery plan in its public form, seed 001's; the same as values in `plan`, `kind` and `plans`."""

    def __init__(self, content: Mapping[str, Any], plan: Plan | None) -> None:
        super().__init__(content)
        self.plan = plan

    @property
    def plans(self) -> tuple[Strategy, ...]:
        return self.plan.strategies if self.plan else ()

    @property
    def kind(self) -> str | None:
        kind: str | None = self.get("kind")
        return kind

    @property
    def category(self) -> str | None:
        category: str | None = self.get("category")
        return category


class Surgery(NamedTuple):
    """Everything that planning and running remedies in one folder needs; made once, used many times."""

    cwd: Path
    root: Path
    catalog: Catalog
    preferences: Preferences
    lessons: Lessons
    task_type: TaskType = ""
    env: Mapping[str, str] | None = None
    """What commands see on top of our own environment; None: nothing else."""

    def situation(self, found: Diagnosis, call: Call, tools: Collection[str] | None) -> Situation:
        """Gather what is known about a failed call, the machine around it included."""
        evidence = found.evidence
        known = Tools(frozenset(tools) if tools is not None else None, self.catalog.tables["tools"])
        bare = Situation(
            kind=found.kind,
            message=found.message,
            text=f"{evidence.stdout}\n{evidence.stderr}",
            names=dict(found.names),
            where=found.where,
            call=call,
            tools=known,
            catalog=self.catalog,
            preferences=self.preferences,
            task_type=self.task_type,
            reset=_seconds_until(found.resets),
        )
        topics = self.catalog.chain(found.kind).looks_at
        return bare._replace(
            around=look_around(bare, topics, self.cwd, self.root, {**os.environ, **self.env} if self.env else None)
        )

    def plan(self, found: Diagnosis, call: Call, tools: Collection[str] | None = None) -> Plan:
        return planning.plan(self.situation(found, call, tools), self.lessons, self.context)

    @property
    def context(self) -> str:
        try:
            names = set(os.listdir(self.root))  # noqa: PTH208  # bare names
        except OSError:
            names = set()
        stack = next((stack for file, stack in STACKS.items() if file in names), "")
        return "/".join(part for part in (stack, self.task_type) if part)

    def run(
        self,
        plan: Plan,
        *,
        allow: Risk | None = None,
        lent: "Mapping[str, Tool] | None" = None,
        record: "Callable[[Tried], None]" = lambda _: None,
    ) -> "Walked":
        """Walk the plan on this machine: what is allowed is run, each step verified, the first that works ends it."""
        from unstuck.diagnosis import open_rulebook  # noqa: PLC0415  # as above
        from unstuck.remedies import LocalToolbox, walk  # noqa: PLC0415  # only to run

        toolbox = LocalToolbox(
            cwd=self.cwd,
            root=self.root,
            timeout=self.preferences.timeout,
            allowed_folders=self.preferences.allowed_folders,
            lent=lent or {},
            env=self.env or {},
        )
        return walk(plan, toolbox, open_rulebook(self.cwd), allow or self.preferences.allow, record)


def open_surgery(cwd: Path | None = None, task_type: TaskType = "") -> Surgery:
    """Return all that remedies need here: chains, preferences and what was learned."""
    try:
        here = (cwd or Path.cwd()).absolute()
    except FileNotFoundError as error:
        raise BadUsage("The current folder no longer exists.", hint="Change to one that does.") from error
    root = workspace_root(here)
    return Surgery(
        cwd=here,
        root=root,
        catalog=read_catalog(),
        preferences=read_preferences(root),
        lessons=_lessons(here),
        task_type=task_type,
    )


def remedy(
    failure: Diagnosis | None,
    *,
    tools: Collection[str] | Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    task_type: TaskType = "",
    cwd: Path | None = None,
) -> Remedy:
    """Return the ways out of a failure, seed 001's recovery plan; `tools` are the caller's, as names or with their schemas."""
    if failure is None:
        return Remedy({"schema": 1, "failed": False, "kind": None, "category": None, "plans": [], "skipped": []}, None)
    surgery = open_surgery(cwd, task_type)
    call = make_call(failure.evidence, tools=tools, args=args, schema=schema)
    made = surgery.plan(failure, call, tools)
    return Remedy({**planning.plan_json(made), "pattern": pattern_here(surgery.cwd)}, made)


def make_call(
    evidence: Evidence,
    *,
    tools: Collection[str] | Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Call:
    """Return the failed call; names and schemas that are none are refused before anything is looked at."""
    for name in (*(tools or ()), *((evidence.tool,) if evidence.tool else ())):
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            raise BadUsage(
                f"{str(name)[:100]!r} is no name of a tool.",
                hint="A tool's name has letters, digits and _ - . : / only.",
            )
    own = schema if schema is not None else tools.get(evidence.tool) if isinstance(tools, Mapping) else None
    if own is not None:
        _refuse_unless_schema(own, evidence.tool)
    return Call(tool=evidence.tool, args=dict(args or {}), command=evidence.command, schema=own)


def _refuse_unless_schema(schema: Any, tool: str) -> None:
    from unstuck.remedies import problem  # noqa: PLC0415  # only with a schema

    if why := problem(schema):
        raise BadUsage(
            f"The schema of {tool or 'the tool'} is no JSON schema: {why}.",
            hint="Give the schema of its arguments, an object with `properties`.",
        )


def read_preferences(root: Path) -> Preferences:
    """Return the user's `[remedies]`; most have none, and then nothing heavy is loaded."""
    if not any(_mentions(root / name) for name in CONFIG_FILES):
        return Preferences()
    from unstuck.config_file import read_config  # noqa: PLC0415  # only with a configuration

    config = read_config(root).remedies
    return Preferences(**{name: getattr(config, name) for name in Preferences._fields})


def pattern_here(cwd: Path) -> Mapping[str, str] | None:
    """Return what the failures of the last hour have in common, if they do."""
    path = lessons_path(cwd)
    if not path.exists():
        return None
    import time  # noqa: PLC0415  # only with a past

    from unstuck.remedies import pattern, pattern_json, read_recent  # noqa: PLC0415  # as above

    found: Pattern | None = pattern(read_recent(path), time.time())
    return pattern_json(found)


def _lessons(cwd: Path) -> Lessons:
    path = lessons_path(cwd)
    if not path.exists():
        return Lessons()
    from unstuck.remedies import read_lessons  # noqa: PLC0415  # only with a past

    return read_lessons(path)


def _mentions(path: Path) -> bool:
    try:
        return b"remedies" in path.read_bytes()
    except OSError:
        return False


def _seconds_until(words: str) -> float | None:
    """Return how long a stated limit lasts from now."""
    if not words:
        return None
    from datetime import datetime  # noqa: PLC0415  # only for a limit

    from unstuck.diagnosis import limit_end  # noqa: PLC0415  # as above

    now = datetime.now().astimezone()
    moment = limit_end(words, now)
    return (moment - now).total_seconds() if moment else None


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


def keep_lesson(cwd: Path, chain: str, strategy: str, context: str, *, worked: bool) -> None:
    """Keep what came of one way out that somebody else tried."""
    _kept(lessons_path(cwd), lambda lessons: lessons.after(chain, strategy, context, worked=worked), [])


def _kept(path: Path, change: Callable[[Lessons], Lessons], notes: list[str], seen: Seen | None = None) -> None:
    """Keep a lesson where that is possible: a full disk must not stop the remedy for it."""
    try:
        if path.parents[1].name == ".git" and not path.parent.exists():
            hide_ours(path.parents[2])
        change_lessons(path, change, seen)
    except CannotWrite as error:
        notes.append(f"What was learned could not be kept: {error.message}")


def hide_ours(root: Path) -> None:
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
