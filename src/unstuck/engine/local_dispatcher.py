"""Run sessions and verify trees on this machine, in the run's own slots."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from unstuck.agents.agent_set import Agent, Assignment
from unstuck.diagnosis.classifying import sandbox_failed
from unstuck.engine.stops import TaskStop
from unstuck.model.config import TimeLimits
from unstuck.model.failure import Failure
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.verdict import Verdict
from unstuck.process.clock import Clock
from unstuck.process.command import Command, Stop
from unstuck.process.sandbox import WAY_ON, sandboxed
from unstuck.verify.check_context import CheckContext
from unstuck.verify.checks import CleanCheckout
from unstuck.verify.examining import examine
from unstuck.verify.set_up import set_up

CUT_SHORT = Ended(ending="supervisor_died", tail="The supervisor died while this session ran.")

PROBE = "probe"
"""Task id of a session that only asks for one word."""
PROBE_LIMITS = TimeLimits(wall_clock=120.0)
VERSION_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class LocalDispatcher:
    """A `Dispatcher` that works in the calling thread, on this machine."""

    checks: CheckContext
    agents: Mapping[str, Agent]
    clock: Clock

    def expect(self, name: str, slot: int) -> None:
        """Prepare for a session while its slot is made."""
        self.checks.processes.prepare_command(self.checks.environment(name, slot))

    def ready(self, name: str, slot: int, stop: Stop) -> Failure | None:
        """Run the set-up commands in a slot. Return why one failed, or None."""
        return set_up(replace(self.checks, stop=stop), name, slot)

    def run(self, order: SessionOrder, stop: Stop) -> SessionDone:
        """Run one session to its end, or read what is left of one that died with its supervisor."""
        agent, assignment = self.agents.get(order.agent), self._assignment(order)
        if order.begun:
            outcome = agent.outcome(CUT_SHORT, assignment) if agent else Outcome(ended=CUT_SHORT)
            return SessionDone(outcome=replace(outcome, claim="none", approach=""))
        agent = agent or next(iter(self.agents.values()))
        self.checks.own_files.put(assignment.brief_file, assignment.brief)
        if order.probe:
            return self._run_probe(agent, order, assignment, stop)
        return self._run_session(agent, order, assignment, stop)

    def verify(self, subject: Subject, slot: int, stop: Stop) -> Verdict:
        """Return the verdict on one tree."""
        context = replace(self.checks, stop=stop)
        return examine(
            CleanCheckout(context=context, name=subject.task.id, slot=context.first_checkout_slot + slot), subject
        )

    def _run_session(self, agent: Agent, order: SessionOrder, assignment: Assignment, stop: Stop) -> SessionDone:
        command = agent.command(assignment)
        limits = replace(order.limits, first_output=None, silence=None) if command.quiet else order.limits
        environment = {**command.env, **self._session_environment(assignment)}
        command = replace(command, env=environment, limits=limits, lasting=order.lasting)
        sandbox = self.checks.sandbox
        if sandbox is not None and (problem := sandbox.start_problem(command, "session")):
            failure = sandbox_failed(problem, WAY_ON)
            return SessionDone(
                outcome=Outcome(ended=Ended(ending="not_started", tail=failure.summary)), failure=failure
            )
        command = sandboxed(command, "session", sandbox)
        heading = f"\n=== attempt {order.attempt}, session {order.session}: {agent.name}\n"
        self.checks.own_files.append(assignment.log, heading)
        with _taking_messages(stop, command) as command_with_messages:
            ended, notes = self._run_watched(order, command_with_messages, stop)
        return SessionDone(outcome=agent.outcome(ended, assignment), notes=notes)

    def _run_probe(self, agent: Agent, order: SessionOrder, assignment: Assignment, stop: Stop) -> SessionDone:
        """Run the agent's program with `--version`, then a session that only asks for one word."""
        command = agent.command(assignment)
        environment = {**command.env, **self._session_environment(assignment)}
        command = replace(command, env=environment, limits=PROBE_LIMITS)
        version, version_notes = self._run_watched(order, _version_command(command), stop)
        ended, notes = self._run_watched(order, command, stop)
        outcome = agent.outcome(ended, assignment)
        return SessionDone(outcome=outcome, notes=(*version_notes, *notes), version=version.ok)

    def _run_watched(self, order: SessionOrder, command: Command, stop: Stop) -> tuple[Ended, tuple[str, ...]]:
        """Run a process of the agent's and return what changed around it meanwhile."""
        checks = self.checks

        def show(line: str) -> None:
            if gist := command.gist(line):
                checks.show_activity(order.task, gist)

        checks.workspace.note_repository_state()
        began = self.clock.now()
        ended = checks.processes.run(command, stop=stop, seen=show)
        changes = checks.workspace.finish_session(order.slot, order.base)
        return ended, (*changes, *checks.processes.unrelated_processes(command.cwd, began))

    def _assignment(self, order: SessionOrder) -> Assignment:
        """Return the session with the paths of its files. A probe has paths of its own."""
        layout = self.checks.layout
        task, number, session = (PROBE, order.slot, 1) if order.probe else (order.task, order.attempt, order.session)
        return Assignment(
            run=order.run,
            task=task,
            attempt=1 if order.probe else order.attempt,
            session=session,
            slot=order.slot,
            worktree=self.checks.workspace.path(order.slot),
            brief=order.word if order.resume else order.brief,
            brief_file=layout.brief(task, number, session),
            log=layout.log(order.task),
            transcript=layout.transcript(task, number, session),
            resume=order.resume,
        )

    def _session_environment(self, assignment: Assignment) -> dict[str, str]:
        return {
            **self.checks.environment(assignment.task, assignment.slot),
            "UNSTUCK_ATTEMPT": str(assignment.attempt),
            "UNSTUCK_SESSION": str(assignment.session),
            "UNSTUCK_BRIEF": str(assignment.brief_file),
        }


@contextmanager
def _taking_messages(stop: Stop, command: Command) -> Iterator[Command]:
    """Yield the command with an inbox for messages, if the agent takes any."""
    if command.dialogue is None or not isinstance(stop, TaskStop):
        yield command
        return
    stop.takes_messages = True
    try:
        yield replace(command, dialogue=replace(command.dialogue, inbox=stop.take_messages))
    finally:
        stop.takes_messages = False


def _version_command(command: Command) -> Command:
    """Return the command that asks an agent's program for its version."""
    return replace(
        command,
        argv=(command.argv[0], "--version"),
        stdin=b"",
        dialogue=None,
        transcript=None,
        limits=TimeLimits(wall_clock=VERSION_TIMEOUT_SECONDS),
    )
