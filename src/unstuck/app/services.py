"""Build the services of a run from what this machine has."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from unstuck.agents.agent_set import Agent
from unstuck.app.remedy_runs import Relief
from unstuck.app.settings import gates_of, policy_of, sandbox_of
from unstuck.compat.run_files import ExecutionLog, Projections, show_store
from unstuck.compat.smart_ralph import RECOVERY, asked_by, spec_folder
from unstuck.diagnosis.rule_files import catalog_guidance
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.engine.context import RunContext, Services
from unstuck.engine.local_dispatcher import LocalDispatcher
from unstuck.engine.recorder import Recorder
from unstuck.engine.stops import RunStop
from unstuck.engine.supervise import Supervisor
from unstuck.git.merge_back import MergeBack
from unstuck.git.repository import Repository, RepositoryChanges, slots_folder
from unstuck.git.shared_objects import SharedObjects
from unstuck.git.untracked_files import UntrackedFiles
from unstuck.git.workspace import GitWorkspace
from unstuck.journal.run_state import RunState
from unstuck.journal.store import Store
from unstuck.listeners.attempt_figures import MetricsFile
from unstuck.model.config import Config
from unstuck.model.errors import Owned
from unstuck.model.event import Entry, Options
from unstuck.model.layout import Layout
from unstuck.model.plan import Plan
from unstuck.plans.plan_file import PlanFile
from unstuck.policy.profiles import Policy
from unstuck.policy.schedule import Experience
from unstuck.process.atomic_files import DiskFiles
from unstuck.process.clock import Clock
from unstuck.process.processes import LocalProcesses
from unstuck.redaction.redactor import redactor
from unstuck.toolchain.detection import commands, describe
from unstuck.verify.check_cache import NoMemory, open_memory
from unstuck.verify.check_context import CheckContext, with_check_timeout

INSIDE = "UNSTUCK_RUN"
SECOND_SLOTS = 2000
"""Far behind the slots of tasks, and of verifications by hand."""

Listener = Callable[[Entry, RunState], None]


def _nobody(*_: object) -> None:
    """Watch nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Who is told while a run works: every entry of the journal, and what each agent last did."""

    entry: Callable[[Entry, RunState], None] = _nobody
    activity: Callable[[str, str], None] = _nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorBuilder:
    """The choices of one run, and the supervisor that follows from them on this machine."""

    repository: Repository
    config: Config
    plan_file: PlanFile
    options: Options
    watcher: Watcher
    run_stop: RunStop
    clock: Clock

    def build(
        self,
        journal: Store,
        run: str,
        state: RunState,
        plan: Plan,
        agents: Mapping[str, Agent],
        experience: Experience,
        listeners: tuple[Listener, ...] = (),
    ) -> Supervisor:
        """Return the supervisor of the run, with the services of this machine."""
        layout = self._layout
        show_store(layout.home, layout.store)
        log = ExecutionLog(layout.store / "logs" / "execution.log")
        recorder = Recorder(journal, state, redactor(os.environ), (log, *listeners, self.watcher.entry))
        checks = self._check_context(run, state, plan)
        context = RunContext(
            run_id=run,
            settings=self.config,
            policy=self._policy,
            recovery_policy=self._recovery_policy(),
            experience=experience,
            guidance=catalog_guidance(),
            layout=layout,
            max_time_seconds=self.options.max_time,
            budget_usd=self.options.budget_usd,
        )
        services = Services(
            recorder=recorder,
            checks=checks,
            dispatcher=LocalDispatcher(checks, agents, self.clock),
            agents=agents,
            plan_file=self.plan_file,
            clock=self.clock,
            remedies=Relief(self.repository.root, checks.sandbox),
        )
        return Supervisor(
            context=context,
            services=services,
            journal=journal,
            run_files=self._run_files(services, context),
            home=self._merge_back(run, state),
            stop=self.run_stop,
        )

    def _check_context(self, run: str, state: RunState, plan: Plan) -> CheckContext:
        """Return what the run's checks are run with on this machine."""
        repository, config, options = self.repository, self.config, self.options
        uses_cache = config.verify.cache and options.cache
        return CheckContext(
            run_id=run,
            settings=config,
            layout=self._layout,
            gates=gates_of(config, repository.root, plan.gates),
            tasks={task.id: with_check_timeout(task, config.verify.timeout) for task in plan.tasks},
            state=state,
            workspace=workspace_of(
                repository, config, run, self._untracked_plan(), plan_paths(self.repository, self.plan_file)
            ),
            processes=LocalProcesses(),
            own_files=DiskFiles(),
            judge=open_rulebook(repository.root),
            redactor=redactor(os.environ),
            stop=self.run_stop,
            first_checkout_slot=options.parallel,
            second_checkout_offset=second_checkout_offset(options.parallel),
            sandbox=sandbox_of(config, repository),
            check_cache=open_memory(repository, config) if uses_cache else NoMemory(),
            show_activity=self.watcher.activity,
        )

    def _run_files(self, services: Services, context: RunContext) -> Projections:
        """Return what writes the files that people read."""
        gates, note = services.checks.gates, services.recorder.note
        return Projections(
            home=context.layout.home,
            store=context.layout.store,
            plan=self.plan_file,
            stack=describe(self.repository.root, gates),
            commands=commands(gates),
            spec=spec_folder(self.plan_file, note),
            limits=context.policy.limits,
            told=note,
        )

    @property
    def _layout(self) -> Layout:
        return Layout(self.repository.root, self.repository.store)

    @property
    def _policy(self) -> Policy:
        return policy_of(self.options, self.config, asked_by(self.plan_file))

    def _recovery_policy(self) -> Policy | None:
        """Return the profile of tasks that force recovery mode: smart-ralph's, with the run's own `on_stuck`."""
        if not self.plan_file.extensible:
            return None
        forced = policy_of(replace(self.options, profile=RECOVERY), self.config, asked_by(self.plan_file))
        return replace(forced, on_stuck=self._policy.on_stuck)

    def _merge_back(self, run: str, state: RunState) -> MergeBack:
        """Return what merges the run back into the branch and the commit that it began with."""
        repository = self.repository
        if state.started is not None:
            repository = replace(repository, branch=state.started.branch, head=state.started.base)
        return MergeBack(
            repository=repository,
            run=run,
            identity=repository.identity(),
            mode="single" if self.options.commit == "single" else "auto",
            sign=self.config.git.sign,
        )

    def _untracked_plan(self) -> tuple[str, ...]:
        """Return the files of an untracked plan, which git does not bring into a slot."""
        folder = str(PurePath(plan_name(self.repository, self.plan_file)).parent)
        if self.plan_file.spec_folder and plan_paths(self.repository, self.plan_file) and folder != ".":
            return (folder,)
        parts = (
            plan_paths(self.repository, self.plan_file)[:1]
            if self.plan_file.spec_folder
            else plan_paths(self.repository, self.plan_file)
        )
        return tuple(path for path in parts if not self._tracked(path))

    def _tracked(self, path: str) -> bool:
        return bool(self.repository.git.names("ls-files", "-z", "--", f":(literal){path}"))


def plan_paths(repository: Repository, plan_file: PlanFile) -> tuple[str, ...]:
    """Return the plan's files relative to the root. Empty for a plan outside the checkout, or one that unstuck keeps."""
    plan, root = plan_file.path.resolve(), repository.root.resolve()
    if plan.is_relative_to(repository.store.resolve()):
        return ()
    paths = [plan, *(plan.parent / name for name in plan_file.companions)]
    return tuple(str(path.relative_to(root)) for path in paths if path.is_relative_to(root))


def plan_name(repository: Repository, plan_file: PlanFile) -> str:
    """Return the plan's path from the root, which stays valid where the repository is moved."""
    plan, root = plan_file.path.resolve(), repository.root.resolve()
    return str(plan.relative_to(root) if plan.is_relative_to(root) else plan)


def refuse_inside_an_agent() -> None:
    """Refuse to supervise inside a session: one supervisor is enough."""
    if run := os.environ.get(INSIDE):
        raise Owned(
            f"This is a session of run {run}; a run is not started inside another one's agent.",
            hint="Print what you need as your result; the supervisor around you goes on by itself.",
        )


def workspace_of(
    repository: Repository, config: Config, run: str, placed: Sequence[str] = (), plan: tuple[str, ...] = ()
) -> GitWorkspace:
    """Return the git side of a run: `placed` is copied into slots besides, `plan` are the plan's own files."""
    return GitWorkspace(
        run=run,
        identity=repository.identity(),
        slots=slots_folder(repository, config.workspace.slots),
        shared=SharedObjects(repository),
        repository_changes=RepositoryChanges(repository, plan),
        sign=config.git.sign,
        left_out=plan,
        place=UntrackedFiles(root=repository.root, copy=(*config.workspace.copy, *placed), link=config.workspace.link),
    )


def second_checkout_offset(parallel: int) -> int | None:
    """Return where the second checkouts of verifications are, if every task may keep two processors busy."""
    return SECOND_SLOTS if (os.cpu_count() or 1) >= 2 * parallel else None


@dataclass(slots=True)
class Complaints:
    """Takes what listeners could not do, as soon as the run has a journal to note it in."""

    note: Callable[[str], None] = field(default=lambda _text: None)

    def __call__(self, text: str) -> None:
        self.note(text)


@contextmanager
def listening(config: Config, layout: Layout, complaints: Complaints) -> Iterator[tuple[Listener, ...]]:
    """Return the listeners; at the end, what they still have to send is sent. What nobody asks for is not loaded."""
    found: list[Listener] = [MetricsFile(path=layout.home / "metrics.jsonl", report=complaints)]
    with ExitStack() as stack:
        wanted = config.notify
        if any((wanted.stuck, wanted.asks, wanted.waiting, wanted.ended)):
            from unstuck.listeners.notifying import Notifier  # noqa: PLC0415  # an extra

            notifier = Notifier(
                config=wanted, root=layout.root, store=layout.store, processes=LocalProcesses(), report=complaints
            )
            stack.callback(notifier.close)
            found.append(notifier)
        if config.otel.endpoint:
            from unstuck.listeners.otel import Telemetry  # noqa: PLC0415  # an extra

            telemetry = Telemetry(endpoint=config.otel.endpoint).open()
            stack.callback(telemetry.close)
            found.append(telemetry)
        yield tuple(found)
