"""One run of a plan: begin it, resume it, and leave requests for it."""

import os
import secrets
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from unstuck.agents.agent_set import AgentSet, first_agent_on_path, gather_agents
from unstuck.app.config_file import NAME as CONFIG_NAME
from unstuck.app.experience_table import experience_of, order_agents, who_begins
from unstuck.app.journal_location import (
    begin_anew,
    claimed,
    journal_path,
    open_for_run,
    remember_store,
    with_dispatcher,
)
from unstuck.app.services import (
    Complaints,
    SupervisorBuilder,
    Watcher,
    listening,
    plan_name,
    plan_paths,
    refuse_inside_an_agent,
)
from unstuck.app.settings import gates_of, missing_sandbox_notes, note_found, require_sandbox_starts
from unstuck.compat.auto_claude import inherited
from unstuck.compat.autobuild import Adopted, adopt
from unstuck.compat.notices import plan_problems_text
from unstuck.compat.smart_ralph import asked_by
from unstuck.engine.recorder import redacted
from unstuck.engine.requests import refusal_of
from unstuck.engine.resume import unfinished
from unstuck.engine.stops import RunStop
from unstuck.engine.supervise import Situation
from unstuck.git.repository import Repository
from unstuck.git.untracked_files import unsafe_copies
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.store import Store
from unstuck.model.config import Config
from unstuck.model.errors import BadUsage, InvalidPlan, Unavailable
from unstuck.model.event import GOAL, Entry, Operated, Options, Request, RunStarted, Verb
from unstuck.model.layout import Layout
from unstuck.model.plan import Plan, Problem, find_task_id, plan_problems
from unstuck.plans.plan_file import PlanFile
from unstuck.plans.review import with_review_concerns
from unstuck.policy.schedule import Experience
from unstuck.process.atomic_files import remove_unfinished_writes, require_writable
from unstuck.process.caller import RequestProof, calling_session, user_name
from unstuck.process.clock import Clock, SystemClock
from unstuck.redaction.redactor import REDACTED, redactor
from unstuck.reports.summaries import Summary, summary
from unstuck.toolchain.detection import way_around

REQUEST_TIMEOUT_SECONDS = 10.0
"""How long a command waits until a running supervisor has read its request."""
REQUEST_POLL_SECONDS = 0.02
NOTHING_LEFT = "Nothing is left to do: every task of the plan is done."

Listener = Callable[[Entry, RunState], None]


@dataclass(slots=True)
class Run:
    """One durable execution of a plan."""

    _repository: Repository
    _config: Config
    _plan_file: PlanFile
    _options: Options
    _watcher: Watcher
    _run: str | None = None
    _open_journal: Callable[[Path], Store] | None = None
    _clock: Clock | None = None
    state: RunState = field(default_factory=RunState, init=False)
    run_stop: RunStop = field(init=False)

    def __post_init__(self) -> None:
        self.run_stop = RunStop(self._config.limits.drain)

    def go(self, *, fresh: bool = False, accept_plan_change: bool = False, start_from: str | None = None) -> Summary:
        """Run the plan, or what is left of it, to the end; return what it came to."""
        refuse_inside_an_agent()
        self._refuse_below_own_session()
        plan = self._sound_plan()
        first = _first(plan, start_from)
        self._repository.exclude_unstuck_folder()
        if fresh:
            self._crew(plan, None)  # nothing is set aside for an agent that cannot be started
            plan = begin_anew(self._repository, self._plan_file, plan, plan_name(self._repository, self._plan_file))
        with self._journal() as journal:
            run = None if fresh else self._choose(journal, again=first is not None)
            remember_store(self._repository, self._config.store.url)  # not before it answered
            found = (
                adopt(self._repository.root, self._repository.git, plan)
                if run is None and not fresh
                else Adopted(plan=plan)
            )
            plan = found.plan
            if run is None and first is None and all(task.done or task.skipped for task in plan.tasks):
                return Summary(run="", exit_code=0, reason=NOTHING_LEFT, home="", rows=(), notes=(), seconds=0.0)
            known = experience_of(journal, without=run or "")
            crew = self._crew(plan, known if run is None else None)
            plan = crew.without_missing_agents(plan)
            run = run or f"{time.strftime('%Y%m%d')}-{secrets.token_hex(3)}"
            with claimed(journal, run) as before:
                if before is not None:
                    remove_unfinished_writes(self._repository.unstuck_folder, self._repository.store)
                entries = tuple(journal.read(run))
                situation = Situation(
                    entries=entries,
                    plan=plan,
                    started=self._started(run, plan),
                    accept_plan_change=accept_plan_change,
                    start_from=first,
                    inherited=inherited(
                        self._plan_file.path, *(() if journal.runs() else (self._repository.unstuck_folder,))
                    )
                    or found.inherited,
                    warnings=(
                        *found.notes,
                        *self._warnings(),
                        *crew.remarks,
                        *missing_sandbox_notes(self._config, crew.agents),
                        *who_begins(self._options),
                    ),
                    dead_owner=before.pid if before else None,
                    awaits_approval=asked_by(self._plan_file).awaits_approval,
                )
                complaints = Complaints()
                with listening(
                    self._config, Layout(self._repository.root, self._repository.store), complaints
                ) as listeners:
                    self.state = fold(entries)
                    supervisor = self._builder.build(journal, run, self.state, plan, crew.agents, known, listeners)
                    complaints.note = supervisor.services.recorder.note
                    with with_dispatcher(supervisor, journal, self._config, self._repository) as staff:
                        staff.work(situation)
                return summary(self.state, time.time(), live=False)

    def operate(self, verb: Verb, *, task: str | None = None, text: str = "", shown: str = "") -> Operated | None:
        """Leave a request and carry it out; None if a living supervisor will do that.

        One that a session leaves is recorded and told as well, and refused.
        """
        assert self._run is not None
        with self._journal() as journal:
            request = replace(
                _request(verb, task, self._foreign(journal)),
                text=redacted(text, redactor(os.environ)),
                shown_tree=shown,
            )
            with journal.attended() as attended:
                request = replace(request, pid=os.getpid(), token=attended.token)
                number = journal.leave(self._run, request)
                if self._is_taken(journal, attended):
                    refused = refusal_of(request)
                    return Operated(request=request, refused=refused) if refused else None
                with claimed(journal, self._run):
                    self.state = fold(journal.read(self._run))
                    known = experience_of(journal, without=self._run)
                    supervisor = self._builder.build(journal, self._run, self.state, self._plan_file.read(), {}, known)
                    with with_dispatcher(supervisor, journal, self._config, self._repository) as staff:
                        return staff.answer()[number]

    def concerns(self) -> tuple[Problem, ...]:
        """List what a careful reader would ask about the plan."""
        return with_review_concerns(self._plan_file.read(), gates=len(self._config.checks)).concerns

    def uncommitted(self) -> tuple[str, ...]:
        """List the user's files that the run does not see, because it starts from HEAD."""
        used = {
            *plan_paths(self._repository, self._plan_file),
            CONFIG_NAME,
        }  # read from where they lie, whatever git knows of them
        return tuple(path for path in self._repository.uncommitted() if path not in used)

    @property
    def _builder(self) -> SupervisorBuilder:
        return SupervisorBuilder(
            repository=self._repository,
            config=self._config,
            plan_file=self._plan_file,
            options=self._options,
            watcher=self._watcher,
            run_stop=self.run_stop,
            clock=self._clock or SystemClock(),
        )

    def _started(self, run: str, plan: Plan) -> RunStarted:
        """Say how the run begins, if it is a new one."""
        session = calling_session()
        return RunStarted(
            run=run,
            plan=plan.path,
            format=plan.format,
            base=self._repository.head,
            branch=self._repository.branch,
            options=self._options,
            tasks=tuple(plan.tasks),
            title=plan.title,
            plan_files=plan_paths(self._repository, self._plan_file),
            inside=session.run if session else "",
        )

    def _refuse_below_own_session(self) -> None:
        """Refuse to begin or go on with anything in the repository whose run this process works for, and have it told."""
        session, known = calling_session(), self._config.store.url or journal_path(self._repository).exists()
        if session is None or not session.run or not known:
            return
        with self._journal() as journal:
            if session.run not in journal.runs():
                return
            request = _request("run", None, str(session))
            journal.leave(session.run, request)
        raise BadUsage(refusal_of(request), hint="Nothing was changed.")

    def _crew(self, plan: Plan, known: Experience | None) -> AgentSet:
        """Say who works: as asked, as configured or as found; a new run begins with whom experience speaks for."""
        if not self._options.agents:
            self._options = replace(self._options, agents=self._config.agent or first_agent_on_path(self._config))
        if known is not None:
            self._options = order_agents(self._options, known)
        _refuse_hidden(self._options.agents, plan)
        root, options, here = self._repository.root, self._options, not self._config.store.url
        crew = gather_agents(options.agents, plan, self._config, root, budget_usd=options.budget_usd, here=here)
        if here:
            require_sandbox_starts(self._config, self._repository, crew.agents.values())
        return crew

    def _foreign(self, journal: Store) -> str:
        """Name the session that this process belongs to, unless the run is one that the session itself began."""
        session = calling_session()
        started = fold(journal.read(self._run or "")).started
        own = session is not None and started is not None and started.inside == session.run != ""
        return str(session) if session is not None and not own else ""

    def _is_taken(self, journal: Store, attended: RequestProof) -> bool:
        """Wait until a living supervisor has looked at a request; False where none is alive, or it ends meanwhile."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_SECONDS
        while (owner := journal.owner(self._run)) is not None and owner.is_alive(time.time()):
            if attended.was_checked is None or attended.was_checked():
                return True
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"The supervisor (pid {owner.pid}) has not looked at it for {REQUEST_TIMEOUT_SECONDS:.0f} seconds: is it suspended?",
                    hint=f"Nothing was done. Let it go on (`kill -CONT {owner.pid}`) or end it (`kill -9 {owner.pid}`), then say it again.",
                )
            time.sleep(REQUEST_POLL_SECONDS)
        return attended.was_checked is not None and attended.was_checked()

    @contextmanager
    def _journal(self) -> Iterator[Store]:
        opened = self._open_journal
        journal = opened(journal_path(self._repository)) if opened else open_for_run(self._repository, self._config)
        with closing(journal):
            yield journal

    def _choose(self, journal: Store, *, again: bool) -> str | None:
        """Return the run to go on with, and take its stored options; None for a new one. `again`: even a finished one."""
        for run in (self._run,) if self._run else reversed(journal.runs()):
            entries = tuple(journal.read(run))
            started = entries[0].event if entries else None
            if not isinstance(started, RunStarted) or (
                not self._run and started.plan != plan_name(self._repository, self._plan_file)
            ):
                continue
            if not self._run and not again and not unfinished(entries):
                return None
            asked, stored = self._options, started.options
            budget = stored.budget_usd if asked.budget_usd is None else asked.budget_usd  # it may be raised on the way
            self._options = replace(stored, agents=asked.agents or stored.agents, budget_usd=budget)
            return run
        return None

    def _sound_plan(self) -> Plan:
        plan = with_review_concerns(
            replace(self._plan_file.read(), path=plan_name(self._repository, self._plan_file)),
            gates=len(self._config.checks),
        )
        if found := plan_problems(plan):
            raise InvalidPlan(
                plan_problems_text(plan, found),
                hint=f"See it as unstuck does: `unstuck plan {self._plan_file.path}`. Nothing was started.",
            )
        for name in (self._plan_file.path.name, *self._plan_file.companions):
            require_writable(self._plan_file.path.with_name(name))
        return plan

    def _warnings(self) -> tuple[str, ...]:
        """Say what will not be placed in slots, because it would lead back into the user's checkout."""
        root, workspace = self._repository.root, self._config.workspace
        found = (*unsafe_copies(root, workspace.copy), *unsafe_copies(root, workspace.link, linked=True))
        return (
            *(f"{trap.message} {way_around(root, trap)}" for trap in found),
            *note_found(gates_of(self._config, root)),
        )


def _refuse_hidden(agents: Sequence[str], plan: Plan) -> None:
    """Start no command that a secret was taken out of: the agent would only be told that its key is wrong."""
    again = "go 'THE GOAL'" if plan.format == GOAL else f"run {shlex.quote(plan.path)}"
    if hidden := next((agent for agent in agents if REDACTED in agent), ""):
        raise BadUsage(
            f"Secrets are not stored, so the command of this run's agent is not known whole: {hidden}",
            hint=f"Name the agent again, and the run goes on: unstuck {again} --agent 'COMMAND'",
        )


def _first(plan: Plan, start_from: str | None) -> str | None:
    """Return the task that a person wants to start from."""
    found = find_task_id(plan.tasks, start_from) if start_from is not None else None
    if start_from is not None and found is None:
        raise BadUsage(
            f"There is no task {start_from} in {plan.path}.", hint=f"See all of them with `unstuck plan {plan.path}`."
        )
    return found


def _request(verb: Verb, task: str | None, session: str) -> Request:
    place = f"{Path.cwd()} on {socket.gethostname()}"
    return Request(id=0, verb=verb, task=task, requester=user_name(), place=place, at=time.time(), inside=session)
