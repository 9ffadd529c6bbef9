"""Edge: Run sessions and verify trees on this machine, in the run's own slots."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from unstuck.agents.assignment import Agent, Assignment
from unstuck.engine.context import Kit, set_up
from unstuck.engine.stops import OneTask
from unstuck.model.config import TimeLimits
from unstuck.model.failure import Failure
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.verdict import Verdict
from unstuck.process.command import Command, Stop
from unstuck.process.sandbox import sandboxed
from unstuck.verify.checks import Site
from unstuck.verify.examining import examine

CUT_SHORT = Ended(ending="supervisor_died", tail="The supervisor died while this session ran.")

PROBE = "probe"
"""The task that a trivial session is given."""
PROBE_LIMITS = TimeLimits(wall_clock=120.0)
VERSION_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Here:
    """The `Dispatcher` of a run that stays on one machine: whoever asks waits, in a thread of its own."""

    kit: Kit

    def expect(self, name: str, slot: int) -> None:
        self.kit.processes.prepare_command(self.kit.environment(name, slot))

    def ready(self, name: str, slot: int) -> Failure | None:
        return set_up(self.kit, name, slot)

    def run(self, order: SessionOrder, stop: Stop) -> SessionDone:
        kit, agent = self.kit, self.kit.agents.get(order.agent)
        assignment = self._assignment(order)
        if order.begun:  # its processes died with the supervisor; what it printed is still there
            outcome = agent.outcome(CUT_SHORT, assignment) if agent else Outcome(ended=CUT_SHORT)
            return SessionDone(outcome=replace(outcome, claim="none", approach=""))
        agent = agent or next(iter(kit.agents.values()))
        kit.own_files.put(assignment.brief_file, assignment.brief)
        return self._probed(agent, order, stop) if order.probe else self._sat(agent, order, assignment, stop)

    def verify(self, subject: Subject, slot: int, stop: Stop) -> Verdict:
        site = Site(kit=replace(self.kit, stop=stop), name=subject.task.id, slot=self.kit.spare + slot)
        return examine(site, subject)

    def _sat(self, agent: Agent, order: SessionOrder, assignment: Assignment, stop: Stop) -> SessionDone:
        kit, command = self.kit, agent.command(assignment)
        limits = replace(order.limits, first_output=None, silence=None) if command.quiet else order.limits
        environment = {**command.env, **_environment(kit, assignment)}
        command = replace(command, env=environment, limits=limits, lasting=order.lasting)
        command = sandboxed(command, "session", kit.sandbox)
        heading = f"\n=== attempt {order.attempt}, session {order.session}: {agent.name}\n"
        kit.own_files.append(assignment.log, heading)
        with _listening(stop, command) as command:
            ended, notes = self._watched(order, command, stop)
        return SessionDone(outcome=agent.outcome(ended, assignment), notes=notes)

    def _probed(self, agent: Agent, order: SessionOrder, stop: Stop) -> SessionDone:
        """Ask for the version, then for one word."""
        kit = self.kit
        trivial = self._assignment(order)
        command = agent.command(trivial)
        environment = {**command.env, **_environment(kit, trivial)}
        command = replace(command, env=environment, limits=PROBE_LIMITS)
        version, before = self._watched(order, _asks_version(command), stop)
        ended, notes = self._watched(order, command, stop)
        return SessionDone(outcome=agent.outcome(ended, trivial), notes=(*before, *notes), version=version.ok)

    def _watched(self, order: SessionOrder, command: Command, stop: Stop) -> tuple[Ended, tuple[str, ...]]:
        """Run a process of the agent's, and tell what changed meanwhile around it."""
        kit = self.kit
        kit.workspace.note_repository_state()
        began = kit.clock.now()
        ended = kit.processes.run(command, stop=stop, seen=lambda line: _show(kit, order.task, command.gist(line)))
        changed = kit.workspace.finish_session(order.slot, order.base)
        return ended, (*changed, *kit.processes.unrelated_processes(command.cwd, began))

    def _assignment(self, order: SessionOrder) -> Assignment:
        """Say where everything of a session lies; a probe has places of its own."""
        layout = self.kit.layout
        name, number, session = (PROBE, order.slot, 1) if order.probe else (order.task, order.attempt, order.session)
        return Assignment(
            run=order.run,
            task=name,
            attempt=1 if order.probe else order.attempt,
            session=session,
            slot=order.slot,
            worktree=self.kit.workspace.path(order.slot),
            brief=order.word if order.resume else order.brief,
            brief_file=layout.brief(name, number, session),
            log=layout.log(order.task),
            transcript=layout.transcript(name, number, session),
            resume=order.resume,
        )


def _environment(kit: Kit, assignment: Assignment) -> dict[str, str]:
    return {
        **kit.environment(assignment.task, assignment.slot),
        "UNSTUCK_ATTEMPT": str(assignment.attempt),
        "UNSTUCK_SESSION": str(assignment.session),
        "UNSTUCK_BRIEF": str(assignment.brief_file),
    }


def _show(kit: Kit, name: str, gist: str) -> None:
    if gist:
        kit.seen(name, gist)


@contextmanager
def _listening(stop: Stop, command: Command) -> Iterator[Command]:
    """Let messages reach the session while it runs, if it takes any."""
    if command.dialogue is None or not isinstance(stop, OneTask):
        yield command
        return
    stop.listening = True
    try:
        yield replace(command, dialogue=replace(command.dialogue, inbox=stop.hints))
    finally:
        stop.listening = False


def _asks_version(command: Command) -> Command:
    """Return the command that asks an agent's program for its version."""
    return replace(
        command,
        argv=(command.argv[0], "--version"),
        stdin=b"",
        dialogue=None,
        transcript=None,
        limits=TimeLimits(wall_clock=VERSION_SECONDS),
    )
