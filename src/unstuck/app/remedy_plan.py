"""Edge: One remedy, planned: the chains of the catalogue, the facts of this machine, and what was learned. Loads nothing that only running needs."""

import os
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.model.errors import BadUsage
from unstuck.model.failure import Kind
from unstuck.remedies.chain import Risk

if TYPE_CHECKING:
    from unstuck.remedies.chain import Catalog, TaskType
    from unstuck.remedies.learning import Lessons
    from unstuck.remedies.performing import Tool, Tried, Walked
    from unstuck.remedies.recovery_plan import Plan, Strategy
    from unstuck.remedies.situation import Call, Preferences, Situation

STACKS = {
    "pyproject.toml": "python", "setup.py": "python", "requirements.txt": "python", "package.json": "node", "Cargo.toml": "rust",
    "go.mod": "go", "pom.xml": "jvm", "build.gradle": "jvm", "Gemfile": "ruby", "composer.json": "php",
}  # fmt: skip
"""A file at the top → what the project is made of: the context in which experience counts."""
Given = Collection[Any] | Mapping[str, Any] | None
"""Tools as a caller has them: names, name → schema, or definitions."""
MOST_ADVISED: Risk = "caution"
"""An agent may be careful by itself; more than that is for those who allowed it."""
TOOL_NAME = re.compile(r"[\w.:/-]{1,200}")
CONFIG_FILES = ("unstuck.toml", "pyproject.toml")


NOTHING_FAILED: dict[str, Any] = {
    "schema": 1, "failed": False, "kind": None, "category": None, "plans": [], "skipped": [],
}  # fmt: skip


class Remedy(dict[str, Any]):
    """A recovery plan in its public form, forgekeeper's; the same as values in `plan`, `kind` and `plans`."""

    def __init__(self, content: Mapping[str, Any], plan: "Plan | None") -> None:
        super().__init__(content)
        self.plan = plan
        self.plans: tuple[Strategy, ...] = plan.strategies if plan else ()
        self.kind: str | None = content.get("kind")
        self.category: str | None = content.get("category")


class RemedyPlanner(NamedTuple):
    """Everything that planning and running remedies in one folder needs; made once, used many times."""

    cwd: Path
    root: Path
    catalog: "Catalog"
    preferences: "Preferences"
    lessons: "Lessons"
    task_type: "TaskType" = ""
    env: Mapping[str, str] | None = None
    """What commands see on top of our own environment; None: nothing else."""

    def situation(self, found: Diagnosis, call: "Call", tools: Given) -> "Situation":
        """Gather what is known about a failed call, the machine around it included."""
        from unstuck.remedies.call_words import entered
        from unstuck.remedies.chain import Tools, read_tools
        from unstuck.remedies.machine import look_around
        from unstuck.remedies.situation import Situation

        evidence = found.evidence
        names, schemas = read_tools(tools)
        folder, rest = entered(call.line)
        if not (self.cwd / folder).is_dir() or not (self.cwd / folder).resolve().is_relative_to(self.root.resolve()):
            folder = ""
        call = call._replace(command=rest) if folder else call
        known = Tools(names, self.catalog.tables["tools"], schemas, folder)
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
        env = {**os.environ, **self.env} if self.env else None
        return bare._replace(around=look_around(bare, topics, self.cwd / folder, self.root, env))

    def plan(self, found: Diagnosis, call: "Call", tools: Given = None) -> "Plan":
        from unstuck.remedies.recovery_plan import recovery

        return recovery(self.situation(found, call, tools), self.lessons, self.context)

    def advised(self, plan: "Plan") -> "tuple[Strategy, ...]":
        """Return the ways that an agent is told of, and none that nobody allowed."""
        from unstuck.remedies.chain import ASK, RISKS

        most = max(MOST_ADVISED, self.preferences.allow, key=RISKS.index)
        fitting = [one for one in plan.strategies if RISKS.index(one.risk) <= RISKS.index(most)]
        return tuple(one for one in fitting if one.strategy != ASK)

    @property
    def context(self) -> str:
        stack = next((stack for file, stack in STACKS.items() if (self.root / file).exists()), "")
        return "/".join(part for part in (stack, self.task_type) if part)

    def run(
        self,
        plan: "Plan",
        *,
        allow: Risk | None = None,
        lent: "Mapping[str, Tool] | None" = None,
        record: "Callable[[Tried], None]" = lambda _: None,
    ) -> "Walked":
        """Walk the plan on this machine: what is allowed is run, each step verified, the first that works ends it."""
        from unstuck.app.settings import sandbox_for_folder  # only to run
        from unstuck.diagnosis.rulebook import open_rulebook
        from unstuck.remedies.performing import LocalToolbox, walk

        toolbox = LocalToolbox(
            cwd=self.cwd / plan.folder,
            root=self.root,
            timeout=self.preferences.timeout,
            allowed_folders=self.preferences.allowed_folders,
            lent=lent or {},
            env=self.env or {},
            sandbox=sandbox_for_folder(self.cwd),
        )
        return walk(plan, toolbox, open_rulebook(self.cwd), allow or self.preferences.allow, record)


def open_remedies(cwd: Path | None = None, task_type: "TaskType" = "") -> RemedyPlanner:
    """Return all that remedies need here: chains, preferences and what was learned."""
    from unstuck.remedies.chain import read_catalog
    from unstuck.remedies.learning import Lessons
    from unstuck.remedies.lessons_file import read_lessons
    from unstuck.remedies.machine import lessons_path, workspace_root

    try:
        here = (cwd or Path.cwd()).absolute()
    except FileNotFoundError as error:
        raise BadUsage("The current folder no longer exists.", hint="Change to one that does.") from error
    root, path = workspace_root(here), lessons_path(here)
    return RemedyPlanner(
        cwd=here,
        root=root,
        catalog=read_catalog(),
        preferences=read_preferences(root),
        lessons=read_lessons(path) if path.exists() else Lessons(),
        task_type=task_type,
    )


def remedy(
    failure: Diagnosis | None,
    *,
    tools: Given = None,
    args: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    task_type: "TaskType" = "",
    cwd: Path | None = None,
) -> Remedy:
    """Return the ways out of a failure, forgekeeper's recovery plan; `tools` are the caller's, as names or with their schemas."""
    from unstuck.remedies.recovery_plan import plan_json

    call = make_call(failure.evidence if failure else Evidence(), tools=tools, args=args, schema=schema)
    failure = judged(failure, call, cwd)
    if failure is None:
        return Remedy(NOTHING_FAILED, None)
    planner = open_remedies(cwd, task_type)
    made = planner.plan(failure, call, tools)
    return Remedy({**plan_json(made), "pattern": pattern_here(planner.cwd)}, made)


def make_call(
    evidence: Evidence,
    *,
    tools: Given = None,
    args: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> "Call":
    """Return the failed call; names and schemas that are none are refused before anything is looked at."""
    from unstuck.remedies.chain import read_tools
    from unstuck.remedies.schemas import problem
    from unstuck.remedies.situation import Call

    names, schemas = read_tools(tools)
    for name in (*(names or ()), *((evidence.tool,) if evidence.tool else ())):
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            raise BadUsage(
                f"{str(name)[:100]!r} is no name of a tool.",
                hint="A tool's name has letters, digits and _ - . : / only.",
            )
    own = schema if schema is not None else schemas.get(evidence.tool)
    for name, one in {**schemas, evidence.tool: own}.items():
        if one is not None and (why := problem(one)):
            raise BadUsage(
                f"The schema of {name or 'the tool'} is no JSON schema: {why}.",
                hint="Give the schema of its arguments, an object with `properties`.",
            )
    return Call(tool=evidence.tool, args=dict(args or {}), command=evidence.command, schema=own)


def judged(seen: Diagnosis | Evidence | None, call: "Call", cwd: Path | None = None) -> Diagnosis | None:
    """Judge a call by its arguments, too: by the command in them, and by the schema of the tool, if they break it.

    What was judged without them stands otherwise.
    """
    from unstuck.diagnosis.rulebook import open_rulebook
    from unstuck.remedies.schemas import breaks

    broken = next(breaks(call.args, call.schema), "") if call.schema is not None else ""
    if not isinstance(seen, Evidence) and not broken:
        return seen
    evidence = seen if isinstance(seen, Evidence) else seen.evidence if seen is not None else Evidence()
    evidence = replace(evidence, command=evidence.command or call.line, breaks=broken)
    found = open_rulebook(cwd).diagnose(evidence)
    refused = found is not None and found.kind is Kind.INVALID_ARGUMENTS
    return found if refused or isinstance(seen, Evidence) else seen


def read_preferences(root: Path) -> "Preferences":
    """Return the user's `[remedies]`; most have none, and then nothing heavy is loaded."""
    from unstuck.remedies.situation import Preferences

    if not any(_mentions(root / name) for name in CONFIG_FILES):
        return Preferences()
    from unstuck.app.config_file import read_config  # only with a configuration

    config = read_config(root).remedies
    return Preferences(**{name: getattr(config, name) for name in Preferences._fields})


def pattern_here(cwd: Path) -> Mapping[str, str] | None:
    """Return what the failures of the last hour have in common, if they do."""
    from unstuck.remedies.learning import pattern
    from unstuck.remedies.lessons_file import read_recent
    from unstuck.remedies.machine import lessons_path

    path = lessons_path(cwd)
    found = pattern(read_recent(path), time.time()) if path.exists() else None
    return found._asdict() if found else None


def _mentions(path: Path) -> bool:
    try:
        return b"remedies" in path.read_bytes()
    except OSError:
        return False


def _seconds_until(words: str) -> float | None:
    """Return how long a stated limit lasts from now."""
    from unstuck.diagnosis.rulebook import limit_end

    if not words:
        return None
    from datetime import datetime  # only for a limit

    now = datetime.now().astimezone()
    moment = limit_end(words, now)
    return (moment - now).total_seconds() if moment else None
