"""Edge: Give the task to an agent: open an attempt, make its worktree, run one session."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256

from unstuck.config import WALL_CLOCK
from unstuck.decide import AGENT, Amend, seen_failures
from unstuck.diagnosis import Failure, Kind, set_up_failed
from unstuck.journal import (
    Acted,
    AttemptStarted,
    Classified,
    Ended,
    LineEvent,
    Outcome,
    SessionEnded,
    SessionStarted,
    TaskState,
    failed_command,
)
from unstuck.line.agent_probe import BRIEF, PROBE, lifeless, tried
from unstuck.line.parts import Bench, Interrupted
from unstuck.line.schedule import held, next_agent
from unstuck.line.stages import Stage
from unstuck.line.stopping import OneTask
from unstuck.plans import END_TO_END
from unstuck.ports import Agent, Assignment, Command, Landing, Stop, TimeLimits
from unstuck.remedies import pattern
from unstuck.tell import brief, continued, go_on

SLICE_SECONDS = 1.0


def open_attempt(bench: Bench, task: TaskState, slot: int) -> LineEvent:
    """Open the next attempt: on the tip, or on the tree that a retry keeps."""
    state, name = bench.record.state, next_agent(bench.record.state, task, bench.clock.now())
    name = name if name in bench.agents else next(iter(bench.agents))
    if (breaker := state.breakers.get(f"{AGENT}{name}")) is not None and not breaker.task:
        bench.record.note(f"{name} has rested and is tried again with task {task.task.id}.", task.task.id)
    base, tree = _carried(bench, task) if _has_waited(task) else (task.base, task.seed)
    return AttemptStarted(
        task=task.task.id,
        attempt=len(task.attempts) + 1,
        agent=name,
        base=base or bench.workspace.tip(),
        slot=slot,
        tree=tree,
    )


def _has_waited(task: TaskState) -> bool:
    """Whether the task kept its work while others that its agent had asked for were done."""
    return isinstance(task.last, Acted) and isinstance(task.last.action, Amend)


def _carried(bench: Bench, task: TaskState) -> tuple[str | None, str | None]:
    """Put the work that a task kept on top of what landed meanwhile; where the two clash, it begins anew."""
    tip = bench.workspace.tip()
    if task.base is None or task.seed is None or tip == task.base:
        return task.base, task.seed
    kept = Landing(tree=task.seed, base=task.base, message=f"Work of task {task.task.id}\n", at=task.last_at)
    merged = bench.workspace.merge(kept, tip)
    if isinstance(merged, str):
        return tip, merged
    clash = f"What task {task.task.id} had done clashes with the tasks that it asked for"
    told = f"{clash} ({', '.join(merged.files[:5])}): it begins anew. Its work is kept at {task.current.snapshot}."
    if told not in task.notes:
        bench.record.note(told, task.task.id)
    return tip, None


def run_session(bench: Bench, task: TaskState, slot: int) -> LineEvent:
    """Run one session of the attempt's agent and return how it ended."""
    name, attempt = task.task.id, task.current
    _wait_for_others(bench, name, attempt.agent)
    if attempt.sessions == 0:
        bench.workspace.prepare(slot, attempt.base, attempt.tree)
    elif not bench.workspace.present(slot):
        bench.workspace.prepare(slot, attempt.base, attempt.verdict.tree if attempt.verdict else attempt.tree)
    if (failure := set_up(bench, name, slot)) is not None:
        return Classified(task=name, failure=failure)
    session = attempt.sessions + 1
    bench.record(SessionStarted(task=name, session=session))
    agent = bench.agents.get(attempt.agent) or next(iter(bench.agents.values()))
    assignment = _briefed(bench, task, assign(bench, task, slot, session))
    command = agent.command(assignment)
    limits = bench.config.limits
    command = replace(
        command,
        env={**command.env, **_environment(bench, assignment)},
        limits=TimeLimits(
            first_output=limits.first_output or None if not command.quiet else None,
            silence=limits.silence or None if not command.quiet else None,
            wall_clock=_wall_clock(bench) or None,
        ),
        lasting=END_TO_END.fullmatch(name) is not None,  # what one step starts, the next ones look at
    )
    command = bench.fence.around(command, "session")
    bench.desk.append(assignment.log, f"\n=== attempt {attempt.number}, session {session}: {agent.name}\n")
    with _listening(bench.stop, command) as command:
        ended = _watched(bench, name, command)
    outcome = agent.outcome(ended, assignment)
    return _judged_lifeless(bench, task, agent, assignment, outcome) or SessionEnded(task=name, outcome=outcome)


def _watched(bench: Bench, name: str, command: Command) -> Ended:
    """Run a process of the agent's, and tell what changed meanwhile around it."""
    bench.workspace.look()
    began = bench.clock.now()
    ended = bench.processes.run(command, stop=bench.stop, seen=lambda line: _show(bench, name, command.gist(line)))
    strangers = bench.processes.strangers(command.cwd, began)
    for sentence in (*bench.workspace.changed_meanwhile(), *strangers):
        bench.record.note(sentence, name, meanwhile=True)
    return ended


def _environment(bench: Bench, assignment: Assignment) -> dict[str, str]:
    return {
        **bench.environment(assignment.task, assignment.slot),
        "UNSTUCK_ATTEMPT": str(assignment.attempt),
        "UNSTUCK_SESSION": str(assignment.session),
        "UNSTUCK_BRIEF": str(assignment.brief_file),
    }


def _judged_lifeless(
    bench: Bench, task: TaskState, agent: Agent, assignment: Assignment, outcome: Outcome
) -> LineEvent | None:
    """Judge a session that failed at once and left nothing: if the agent cannot work at all, no check is asked."""
    name, attempt, slot = task.task.id, task.current, assignment.slot
    if not lifeless(outcome):
        return None
    start = attempt.verdict.tree if attempt.verdict else attempt.tree
    if bench.workspace.tree(slot, attempt.base).id != (start or bench.workspace.tree_of(attempt.base)):
        return None
    found = bench.probes.found(
        name, agent.name, lambda finder: _stands(bench, finder, name, agent.name),
        lambda: _probe(bench, agent, assignment, outcome),
    )  # fmt: skip
    bench.workspace.prepare(slot, attempt.base, start)
    if found.elsewhere:
        ended = replace(outcome.ended, ending="stopped")
        return SessionEnded(task=name, outcome=replace(outcome, ended=ended, end="", claim="none"))
    if found.failure is None:
        return None
    bench.record(SessionEnded(task=name, outcome=outcome))
    return Classified(task=name, failure=found.failure)


def _stands(bench: Bench, finder: str, name: str, agent: str) -> bool:
    """Whether another task's finding about the agent holds: it is about to be told, or a person was asked and is silent."""
    state = bench.record.state
    return state.tasks[finder].stage is not Stage.REST or held(state, name, agent, bench.clock.now()) is not None


def _probe(bench: Bench, agent: Agent, assignment: Assignment, outcome: Outcome) -> Failure | None:
    """Ask the agent for one word, in the worktree of the task that it failed."""
    bench.record.note(f"{agent.name} ended at once and without work: it is asked for one word.", assignment.task)
    trivial = replace(
        assignment,
        task=PROBE,
        attempt=1,
        session=1,
        brief=BRIEF,
        brief_file=bench.layout.brief(PROBE, assignment.slot, 1),
        transcript=bench.layout.transcript(PROBE, assignment.slot, 1),
        resume="",
    )
    bench.desk.put(trivial.brief_file, BRIEF)
    environment = _environment(bench, trivial)
    return tried(
        agent,
        outcome,
        trivial,
        lambda command: _watched(bench, assignment.task, replace(command, env={**command.env, **environment})),
    )


def _wall_clock(bench: Bench) -> float:
    """Return how long a session may take: what the user says holds in every profile; 0 is no limit."""
    asked = bench.config.limits.wall_clock
    return asked if asked is not None else bench.policy.limits.wall_clock or WALL_CLOCK


def _show(bench: Bench, name: str, gist: str) -> None:
    if gist:
        bench.seen(name, gist)


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


def _wait_for_others(bench: Bench, name: str, agent: str) -> None:
    """Hold back while another task waits for the same fault to pass: it goes first, and this one learns from it."""
    while (breaker := held(bench.record.state, name, agent, bench.clock.now())) is not None:
        if bench.stop.deadline() is not None or breaker.lasts:
            raise Interrupted
        why = f"task {breaker.task}, which met {breaker.kind}" if breaker.task else f"{agent}, which met {breaker.kind}"
        bench.seen(name, f"waits for {why}")
        bench.clock.wait(SLICE_SECONDS)


def set_up(bench: Bench, name: str, slot: int, *, needs: str | None = None) -> Failure | None:
    """Run the set-up commands once in every fresh worktree; a stamp beside it says that they are done.

    With `needs`, what the files say that the project needs, they are run again when that changes.
    """
    commands = bench.config.workspace.setup
    stamp = bench.workspace.path(slot).with_suffix(".ready")
    done = "\n".join(commands if needs is None else (*commands, sha256(needs.encode(errors="replace")).hexdigest()))
    if not commands or bench.desk.read(stamp) == done:
        return None
    loose, altered = bench.workspace.loose(slot), bench.workspace.altered(slot) if needs is None else ()
    for line in commands:
        bench.seen(name, f"set-up: {line}")
        ended = bench.processes.run(
            bench.command(name, line, slot, timeout=bench.config.workspace.setup_timeout, purpose="setup"),
            stop=bench.stop,
        )
        if ended.ending == "stopped":
            raise Interrupted
        if not ended.ok:
            return set_up_failed(line, ended)
    bench.workspace.settle(slot, loose)
    if needs is None:  # what a set-up does to the tree itself, to a lock file say, is not the agent's work
        bench.workspace.put_back(slot, [name for name in bench.workspace.altered(slot) if name not in altered])
    bench.desk.put(stamp, done)
    return None


def _ways_out(bench: Bench, task: TaskState, slot: int) -> tuple[str, ...]:
    """Say what the agent itself may do about the surroundings that the last attempt failed in."""
    last = next((one for one in reversed(task.attempts) if one.failure is not None), None)
    if last is None or last.failure is None:
        return ()
    shared = pattern(seen_failures(bench.record.state), bench.clock.now())
    hung = last.failure.kind in (Kind.HANG, Kind.TIMEOUT, Kind.KILLED)  # the session: no check is to blame
    ways = () if hung else bench.remedies.advise(last.failure, failed_command(task), bench.workspace.path(slot))
    return (*((f"{shared.advice} ({shared.because})",) if shared else ()), *ways)


def assign(bench: Bench, task: TaskState, slot: int, session: int) -> Assignment:
    """Return a session's assignment without its brief: where everything of it lies, and what it continues."""
    name, attempt = task.task.id, task.current
    return Assignment(
        run=bench.run,
        task=name,
        attempt=attempt.number,
        session=session,
        slot=slot,
        worktree=bench.workspace.path(slot),
        brief="",
        brief_file=bench.layout.brief(name, attempt.number, session),
        log=bench.layout.log(name),
        transcript=bench.layout.transcript(name, attempt.number, session),
        resume=continued(task),
    )


def _briefed(bench: Bench, task: TaskState, assignment: Assignment) -> Assignment:
    """Write the brief: all of it for a session that knows nothing, a word to one that is continued."""
    attempt = task.current
    told, checks = replace(task, task=bench.tasks[assignment.task]), bench.checks(assignment.task)
    touched = (
        bench.workspace.changed(attempt.base, attempt.verdict.tree) if attempt.verdict and attempt.sessions else ()
    )
    repairs = bench.record.state.tasks.get(task.task.fixes or "")
    ways = _ways_out(bench, task, assignment.slot)
    text = (
        go_on(told, checks)
        if assignment.resume
        else brief(told, checks, bench.guidance, touched, repairs, ways, may_ask=bench.plan.extensible)
    )
    text = bench.redactor.text(text)
    bench.desk.put(assignment.brief_file, text)
    return replace(assignment, brief=text)
