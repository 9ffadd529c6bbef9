"""Edge: Let an agent write a plan or repair one: hand back all that is wrong with it, three times at most, and prove what is left.

Law: an agent's text reaches a shell only after `consent` was given for that very command, and never one that destroys.
"""

import difflib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unstuck.agents.agent_set import find_agent, first_agent_on_path, raise_no_agent
from unstuck.app.config_file import read_config
from unstuck.app.services import refuse_inside_an_agent
from unstuck.app.settings import gates_of
from unstuck.app.verify_command import free_slot, local_dispatcher, separate_check_context, told_as_errors
from unstuck.diagnosis.evidence import Evidence
from unstuck.engine.local_dispatcher import LocalDispatcher
from unstuck.engine.stops import RunStop
from unstuck.git.repository import find_repository
from unstuck.model.config import WALL_CLOCK, TimeLimits
from unstuck.model.errors import BadUsage, CannotWrite, Interrupted, Unavailable
from unstuck.model.failure import Kind
from unstuck.model.orders import SessionOrder
from unstuck.model.outcome import Outcome
from unstuck.model.text import one_line, visible
from unstuck.model.verdict import CheckResult
from unstuck.plans.review import Proposal
from unstuck.process.atomic_files import MAX_PLAN_BYTES, change_file, read_plan_bytes, write_atomically
from unstuck.reports.draft_briefs import PLAN_SHAPES, draft_brief, repair_brief
from unstuck.verify.check_cache import open_memory
from unstuck.verify.check_context import CheckContext, with_check_timeout
from unstuck.verify.checks import CleanCheckout, check_on, diagnosed

if TYPE_CHECKING:
    from unstuck.model.plan import Plan, Problem, Task
    from unstuck.plans.review import Proof, ProofState

ROUNDS = 3
NAME = "draft"
WORDS_CHARS = 300
LARGEST_GOAL = 2_000_000
CANNOT_WORK = frozenset({"auth_failed", "billing", "rate_limited", "overloaded", "network", "bad_request"})
"""Ends of a session after which another one would end the same."""
MISSING = frozenset({Kind.COMMAND_NOT_FOUND, Kind.DEPENDENCY_MISSING, Kind.PACKAGE_NOT_FOUND})

Consent = Callable[[Sequence[Proposal]], bool]
"""Asks a person whether these commands may be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan as the last round left it, and what is known about it."""

    text: str
    plan: "Plan"
    problems: "tuple[Problem, ...]"
    proofs: "tuple[Proof, ...]"
    proposals: "tuple[Proposal, ...]"
    """The commands that an agent proposed."""
    approved: bool
    """Whether a person said yes to all of them."""
    rounds: int
    agent: str

    @property
    def sound(self) -> bool:
        return not self.problems


@dataclass(slots=True, kw_only=True)
class Drafting:
    """One plan in the making; `stopper` ends it early."""

    cwd: Path
    file: str
    """The plan's name, from the root of the repository."""
    format: str
    agents: tuple[str, ...]
    consent: Consent
    seen: Callable[[str, str], None]
    run_stop: RunStop
    _allowed: set[str] = field(default_factory=set)
    _refused: bool = False
    _repairing: bool = False

    def write(self, goal: str) -> Draft:
        """Let the agent write a plan for the goal."""
        if self.format not in PLAN_SHAPES:
            raise BadUsage(
                f"Plans are not drafted as {self.format}.", hint=f"Formats to draft in: {', '.join(PLAN_SHAPES)}."
            )
        gates = gates_of(read_config(find_repository(self.cwd).root), find_repository(self.cwd).root)
        shape = PLAN_SHAPES[self.format]
        with self._at_work() as dispatcher:
            brief = draft_brief(goal, file=self.file, shape=shape, gates=gates)
            return self._rounds(dispatcher, goal, brief, text="", own=())

    def repair(self, text: str, own: Sequence[str]) -> Draft:
        """Let the agent repair a plan; `own` are the commands that a person wrote into it.

        Where only a person's yes is missing, no agent is asked.
        """
        from unstuck.plans.review import remove_proposal_marks

        self._repairing = True
        with self._at_work() as dispatcher:
            draft = self._examined(dispatcher.checks, remove_proposal_marks(text), own, rounds=0)
            if draft.sound:
                return draft
            brief = repair_brief("", draft.text, draft.problems, file=self.file, shape=PLAN_SHAPES.get(self.format, ""))
            return self._rounds(dispatcher, "", brief, text=draft.text, own=own)

    # --- below ---------------------------------------------------------------------------------------

    def _rounds(self, dispatcher: LocalDispatcher, goal: str, brief: str, *, text: str, own: Sequence[str]) -> Draft:
        """Ask until nothing is wrong any more, or nobody expects another round to help."""
        draft, shape = self._round(dispatcher, 1, brief, text, own), PLAN_SHAPES.get(self.format, "")
        while not draft.sound and draft.rounds < ROUNDS:
            brief = repair_brief(goal, draft.text, draft.problems, file=self.file, shape=shape)
            draft = self._round(dispatcher, draft.rounds + 1, brief, draft.text, own)
        return draft

    def _round(self, dispatcher: LocalDispatcher, number: int, brief: str, text: str, own: Sequence[str]) -> Draft:
        plan_text = self._session(dispatcher, number, brief, text)
        return self._examined(dispatcher.checks, plan_text, own, rounds=number)

    @contextmanager
    def _at_work(self) -> Iterator[LocalDispatcher]:
        from unstuck.model.plan import Task

        refuse_inside_an_agent()
        repository = find_repository(self.cwd)
        config = read_config(repository.root)
        if not (names := self.agents or config.agent[:1] or first_agent_on_path(config)):
            raise_no_agent()
        self.agents = names[:1]
        with free_slot(repository) as slot, told_as_errors():
            checks = separate_check_context(
                repository,
                config,
                slot,
                self.run_stop,
                self.seen,
                run_id=NAME,
                memory=open_memory(repository, config),
                task=Task(id=NAME, title="Write a plan"),
                gates=gates_of(config, repository.root),
            )
            agents = {name: find_agent(name, config, repository.root) for name in self.agents}
            yield local_dispatcher(checks, agents)

    def _session(self, dispatcher: LocalDispatcher, number: int, brief: str, text: str) -> str:
        """Run one session of the agent in a slot at HEAD, and return the plan that it left there."""
        checks = dispatcher.checks
        head, slot = find_repository(self.cwd).head, checks.first_checkout_slot
        place = checks.workspace.prepare(slot, head, None, clean=True) / self.file
        if text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", errors="surrogateescape")
        else:
            place.unlink(missing_ok=True)
        ((name, writer),) = dispatcher.agents.items()
        self.seen(NAME, f"round {number}: {writer.name} writes the plan")
        limits = checks.settings.limits
        order = SessionOrder(
            run=NAME,
            task=NAME,
            attempt=number,
            session=1,
            agent=name,
            slot=slot,
            base=head,
            brief=checks.redactor.text(brief),
            limits=TimeLimits(
                first_output=limits.first_output or None,
                silence=limits.silence or None,
                wall_clock=(WALL_CLOCK if limits.wall_clock is None else limits.wall_clock) or None,
            ),
        )
        outcome = dispatcher.run(order, self.run_stop).outcome
        if outcome.ended.ending == "stopped":
            raise Interrupted
        return _taken(place) or _said(writer.name, outcome)

    def _examined(self, checks: CheckContext, text: str, own: Sequence[str], *, rounds: int) -> Draft:
        """Read the plan, then run what a person lets us run of it; what is wrong with it is in its problems."""
        from unstuck.plans.review import draft_problems, problems_of_proofs, proposed_commands

        plan = self._read(checks, text)
        problems = list(draft_problems(plan, own, complete=not self._repairing))
        asked = proposed_commands(plan, own)
        proofs: tuple[Proof, ...] = ()
        if approved := self._may_run(asked):
            proofs = tuple(self._proofs(checks, plan, {one.command for one in asked if not one.effect}))
            problems += problems_of_proofs(proofs)
        return Draft(
            text=text,
            plan=plan,
            problems=tuple(sorted(problems, key=lambda one: one.line or 0)),
            proofs=proofs,
            proposals=asked,
            approved=approved,
            rounds=rounds,
            agent=", ".join(self.agents),
        )

    def _read(self, checks: CheckContext, text: str) -> "Plan":
        from unstuck.model.plan import Plan, Problem
        from unstuck.plans.plan_file import read_plan_text
        from unstuck.plans.review import with_review_concerns

        if not text.strip():
            missing = Problem(message=f"No plan was written to {self.file}.", hint="Write it to exactly that file.")
            return Plan(path=self.file, format=self.format, tasks=(), problems=(missing,))
        return with_review_concerns(
            read_plan_text(text, self.format, self.file, find_repository(self.cwd).root), gates=len(checks.gates)
        )

    def _may_run(self, asked: "Sequence[Proposal]") -> bool:
        """Ask for what was not asked for yet; a person who said no is not asked again."""
        harmless = [one for one in asked if not one.effect]
        new = [one for one in harmless if one.command not in self._allowed]
        if new and not self._refused:
            listed = [*new, *(one for one in asked if one.effect)]
            if self.consent(listed):
                self._allowed.update(one.command for one in new)
            else:
                self._refused = True
        return all(one.command in self._allowed for one in harmless)

    def _proofs(self, checks: CheckContext, plan: "Plan", commands: set[str]) -> "Iterator[Proof]":
        from unstuck.plans.review import Proof

        head = find_repository(self.cwd).head
        site = CleanCheckout(context=checks, name=NAME, slot=checks.first_checkout_slot)
        checks.tasks.update((task.id, task) for task in plan.tasks)  # what they are to write is not missing yet
        tree = checks.workspace.tree_of(head)
        for task in plan.tasks:
            for own in with_check_timeout(task, checks.settings.verify.timeout).checks if not task.done else ():
                if own.command in commands:
                    result = check_on(site, own, head)
                    showing = _showing(checks, task, result, tree)
                    says = one_line(checks.redactor.text(result.ended.tail), WORDS_CHARS)
                    yield Proof(task=task.shown, command=own.command, showing=showing, says=says)


def _showing(checks: CheckContext, task: "Task", result: CheckResult, tree: str) -> "ProofState":
    from unstuck.plans.review import is_guard

    if result.repaired:
        return "changes"
    if result.flaky:
        return "wavers"
    ended = result.ended
    evidence = Evidence(stdout=ended.tail, exit_code=ended.exit_code, command=result.command)
    found = None if ended.ok else diagnosed(checks, evidence, tree)
    if found is not None and found.kind in MISSING:  # a program or a package that no task is to write
        return "absent"
    if is_guard(task):
        return "guard"
    return "green" if ended.ok else "red"


def _taken(place: Path) -> str:
    """Return the plan that a session left; nothing if it is no plain file, or beyond measure."""
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        text = file.read(MAX_PLAN_BYTES + 1)
    return visible(text.decode("utf-8", "replace")) if len(text) <= MAX_PLAN_BYTES else ""


def _said(agent: str, outcome: Outcome) -> str:
    """Return the plan that the agent only printed, in its last fence with a task; raise where it cannot work at all."""
    if outcome.end in CANNOT_WORK or outcome.ended.ending == "not_started":
        told = one_line(outcome.message or outcome.ended.tail, WORDS_CHARS)
        raise Unavailable(
            f"{agent} wrote no plan, its session ended with {outcome.end or outcome.ended.ending}: {told}",
            hint=f"Try it with `unstuck agents check {agent}`, or name another with --agent.",
        )
    parts = f"\n{outcome.words}".split("\n```")
    fenced = [part.partition("\n")[2] for part in parts[1:] if "- [ ]" in part]
    return f"{fenced[-1].rstrip()}\n" if fenced else ""


def marked_text(cwd: Path, draft: Draft) -> str:
    """Return the plan with every command marked that an agent proposed; refuse one in which anything could still be run."""
    from unstuck.plans.plan_file import read_plan_text
    from unstuck.plans.review import mark_proposed, proposed_commands

    text = mark_proposed(draft.text, draft.agent)
    left = proposed_commands(read_plan_text(text, draft.plan.format, draft.plan.path, find_repository(cwd).root))
    if left:
        raise CannotWrite(
            f"The check `{one_line(left[0].command, WORDS_CHARS)}` could not be marked as proposed; nothing was written.",
            hint="Draft the plan again, or look at what is proposed and say --yes.",
        )
    return text


def difference(before: str, draft: Draft, name: str) -> str:
    """Return what a repair would change, as a patch."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), draft.text.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def place_of(cwd: Path, path: Path) -> str:
    """Return what a plan is called in a slot: its path from the root, or its name where it lies elsewhere."""
    root, place = find_repository(cwd).root.resolve(), (cwd / path).resolve()
    return str(place.relative_to(root)) if place.is_relative_to(root) else place.name


def keep_patch(cwd: Path, name: str, text: str) -> Path:
    """Keep what nobody has approved where no run would take it for a plan."""
    kept = find_repository(cwd).store / "drafts" / f"{Path(name).name}.diff"
    write_atomically(kept, text)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """A plan that is there, with the commands that a person wrote into it."""

    path: Path
    format: str
    text: str
    own: tuple[str, ...]
    sound: bool


def existing_plan(path: Path, plan_format: str | None) -> Existing:
    """Open a plan that is to be repaired; one in several files is refused."""
    from unstuck.model.plan import plan_problems
    from unstuck.plans.plan_file import open_plan

    opened = open_plan(path, plan_format)
    if opened.companions and not opened.spec_folder:
        raise BadUsage(f"{path} is a plan in several files, which are not repaired.", hint="Correct them by hand.")
    plan = opened.read()
    checks = (*(one for task in plan.tasks for one in task.checks), *plan.gates)
    return Existing(
        path=opened.path,
        format=opened.format,
        text=read_plan_bytes(opened.path).decode("utf-8", "surrogateescape"),
        own=tuple(dict.fromkeys(one.command for one in checks)),
        sound=not plan_problems(plan),
    )


def put_plan(path: Path, text: str) -> None:
    """Write a plan, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    change_file(path, lambda _: text.encode("utf-8", "surrogateescape"), create=True)


def goal_in(name: str) -> str | None:
    """Return the text of the file of that name, if there is one; a goal in a few words is none."""
    if not os.path.isfile(name):  # noqa: PTH113  # Path.is_file raises on odd names
        return None
    return read_plan_bytes(Path(name))[:LARGEST_GOAL].decode("utf-8", "replace")
