"""Edge: Give the task to an agent: open an attempt, make its worktree, have one session run."""

import re
from dataclasses import replace

from unstuck.agents.output_streams import last_fault
from unstuck.diagnosis.classifying import FAULTS
from unstuck.engine.context import Kit
from unstuck.engine.stops import Interrupted
from unstuck.journal.breakers import AGENT_PREFIX
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import TaskState, failed_command
from unstuck.model.action import Amend
from unstuck.model.config import WALL_CLOCK, TimeLimits
from unstuck.model.event import Acted, AttemptStarted, Classified, LineEvent, SessionEnded, SessionStarted
from unstuck.model.failure import Failure, Kind
from unstuck.model.landing import Landing
from unstuck.model.orders import SessionDone, SessionOrder
from unstuck.model.outcome import Outcome
from unstuck.model.plan import END_TO_END
from unstuck.model.text import one_line
from unstuck.policy.history import seen_failures
from unstuck.policy.schedule import held, next_agent
from unstuck.remedies.learning import pattern
from unstuck.report.briefs import brief, continued, go_on

SLICE_SECONDS = 1.0
AT_ONCE_SECONDS = 15.0
"""A model that was asked anything has not answered by then."""
SILENT_ENDS = frozenset({"", "crashed", "no_work", "unreadable", "bad_request"})
"""Ends that are no word of a provider."""
BRIEF = "This only tries whether you can be started. Change nothing, run nothing, and answer with the one word: ready\n"
ERROR = re.compile(
    r"(?i)error|unknown|unrecogni[sz]ed|unexpected|invalid|not found|no such|cannot|can't|denied|failed|usage"
)
REFUSED = re.compile(
    r"(?im)^\W{0,4}(?:usage: \S+ [\[<-]|(?:\S{1,40}: )?error: option\b|"
    r"(?:\S{1,40}: )?(?:error: )?(?:unknown|unrecogni[sz]ed|invalid|unexpected|missing) (?:option|flag|argument|(?:sub)?command)|"
    r"(?:\S{1,40}: )?(?:\w{1,20} )?(?:error|panic|fatal|traceback)\b ?[:(]|(?:you are )?not (?:logged in|authenticated)|please (?:log|sign) ?in|invalid api key|"
    r"(?:you(?:'ve| have) |(?:[\w-]{1,20} ){0,3}limit )(?:hit|reached|exceeded)|(?:error )?[45]\d\d [A-Z]|"
    r"(?:connection error|connection refused|fetch failed|request timed out|(?:the )?(?:model|server|service) is )\b)"
)
"""How a program ends that does not work, whatever its exit code; a probe shows whether it was the task's own."""
CRASHES = frozenset({4, 6, 7, 8, 11})
"""Signals with which a program ends by its own fault."""
LAST_LINES = 3
WORDS_CHARS = 300


def open_attempt(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Open the next attempt: on the tip, or on the tree that a retry keeps."""
    state, name = kit.record.state, next_agent(kit.record.state, task, kit.clock.now())
    name = name if name in kit.agents else next(iter(kit.agents))
    if (breaker := state.breakers.get(f"{AGENT_PREFIX}{name}")) is not None and not breaker.task:
        kit.record.note(f"{name} has rested and is tried again with task {task.task.id}.", task.task.id)
    # It kept its work while others that its agent had asked for were done.
    waited = isinstance(task.last, Acted) and isinstance(task.last.action, Amend)
    # Or while a person mended what its checks had met, perhaps by a commit.
    spared = bool(task.attempts) and not task.tries and task.current.only_environment_failed
    base, tree = _carried(kit, task) if waited or spared else (task.base, task.seed)
    return AttemptStarted(
        task=task.task.id,
        attempt=len(task.attempts) + 1,
        agent=name,
        base=base or kit.workspace.tip(),
        slot=slot,
        tree=tree,
    )


def _carried(kit: Kit, task: TaskState) -> tuple[str | None, str | None]:
    """Put the work that a task kept on top of what landed meanwhile; where the two clash, it begins anew."""
    tip = kit.workspace.tip()
    if task.base is None or task.seed is None or tip == task.base:
        return task.base, task.seed
    kept = Landing(tree=task.seed, base=task.base, message=f"Work of task {task.task.id}\n", at=task.last_at)
    merged = kit.workspace.merge(kept, tip)
    if isinstance(merged, str):
        return tip, merged
    clash = f"What task {task.task.id} had done clashes with what came meanwhile"
    told = f"{clash} ({', '.join(merged.files[:5])}): it begins anew. Its work is kept at {task.current.snapshot}."
    if told not in task.notes:
        kit.record.note(told, task.task.id)
    return tip, None


def run_session(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Have one session of the attempt's agent run, and return how it ended."""
    name, attempt = task.task.id, task.current
    _wait_for_others(kit, name, attempt.agent)
    kit.dispatcher.expect(name, slot)
    if attempt.sessions == 0:
        kit.workspace.prepare(slot, attempt.base, attempt.tree)
    elif not kit.workspace.has_slot(slot):
        kit.workspace.prepare(slot, attempt.base, _start(task))
    if (failure := kit.dispatcher.ready(name, slot)) is not None:
        return Classified(task=name, failure=failure)
    session = attempt.sessions + 1
    kit.record(SessionStarted(task=name, session=session))
    order = _briefed(kit, task, order_of(kit, task, slot, session))
    done = kit.dispatcher.run(order, kit.stop)
    _tell(kit, name, done)
    if done.failure is not None:
        kit.record(SessionEnded(task=name, outcome=done.outcome))
        return Classified(task=name, failure=done.failure)
    return _judged_lifeless(kit, task, order, done) or SessionEnded(task=name, outcome=done.outcome)


def order_of(kit: Kit, task: TaskState, slot: int, session: int) -> SessionOrder:
    """Return a session's order without its brief: what it begins with, and what it continues."""
    attempt, limits = task.current, kit.config.limits
    return SessionOrder(
        run=kit.run,
        task=task.task.id,
        attempt=attempt.number,
        session=session,
        agent=attempt.agent,
        slot=slot,
        base=attempt.base,
        tree=_start(task),
        resume=continued(task),
        limits=TimeLimits(
            first_output=limits.first_output or None,
            silence=limits.silence or None,
            wall_clock=_wall_clock(kit) or None,
        ),
        lasting=END_TO_END.fullmatch(task.task.id) is not None,  # what one step starts, the next ones look at
    )


def _start(task: TaskState) -> str | None:
    """Return the tree that the attempt's next session goes on from; None for the base itself."""
    attempt = task.current
    return attempt.verdict.tree if attempt.verdict else attempt.tree


def _tell(kit: Kit, name: str, done: SessionDone) -> None:
    for sentence in done.notes:
        kit.record.note(sentence, name, meanwhile=True)


def _judged_lifeless(kit: Kit, task: TaskState, order: SessionOrder, done: SessionDone) -> LineEvent | None:
    """Judge a session that failed at once and left nothing: if the agent cannot work at all, no check is asked.

    An unknown flag or a broken installation meets every task alike: it is found before a second task pays for it.
    """
    name, outcome = task.task.id, done.outcome
    turned_away = _turned_away(outcome, kit.clock.now())
    if not (turned_away or _lifeless(outcome)):
        return None
    if kit.workspace.write_tree(order.slot, order.base).id != (order.tree or kit.workspace.tree_of(order.base)):
        return None
    if turned_away:
        return SessionEnded(task=name, outcome=turned_away)
    found = kit.probes.found(
        name, order.agent, lambda finder: _stands(kit, finder, name, order.agent),
        lambda: _probe(kit, order, done),
    )  # fmt: skip
    kit.workspace.prepare(order.slot, order.base, order.tree)
    if found.elsewhere:
        ended = replace(outcome.ended, ending="stopped")
        return SessionEnded(task=name, outcome=replace(outcome, ended=ended, end="", claim="none"))
    if found.failure is None:
        return None
    kit.record(SessionEnded(task=name, outcome=outcome))
    return Classified(task=name, failure=found.failure)


def _stands(kit: Kit, finder: str, name: str, agent: str) -> bool:
    """Whether another task's finding about the agent holds: it is about to be told, or a person was asked and is silent."""
    state = kit.record.state
    return state.tasks[finder].stage is not Stage.REST or held(state, name, agent, kit.clock.now()) is not None


def _probe(kit: Kit, order: SessionOrder, done: SessionDone) -> Failure | None:
    """Ask the agent for one word, where it failed."""
    kit.record.note(f"{order.agent} ended at once and without work: it is asked for one word.", order.task)
    trivial = replace(order, brief=BRIEF, word="", resume="", lasting=False, probe=True, place=done.place)
    answer = kit.dispatcher.run(trivial, kit.stop)
    _tell(kit, order.task, answer)
    return _cannot_work(order.agent, done.outcome, answer)


def _turned_away(outcome: Outcome, now: float) -> Outcome | None:
    """Return the end that a command's last words tell of, where they are its provider's: nobody could have worked."""
    if outcome.end or outcome.ended.ending != "exited":
        return None
    lines = [line for line in outcome.ended.tail.splitlines() if line.strip()][-LAST_LINES:]
    if outcome.ended.ok:  # what it says of its work is no error
        lines = lines[next((at for at, line in enumerate(lines) if REFUSED.match(line)), len(lines)) :]
    found = last_fault(lines, now)
    if found is None or found.end not in FAULTS:
        return None
    return replace(outcome, claim="none", end=found.end, message=found.message, resets_at=found.resets_at)


def _lifeless(outcome: Outcome) -> bool:
    """Whether a session failed at once, and nothing in it shows that a model was reached."""
    ended = outcome.ended
    refused = REFUSED.search((outcome.message or ended.tail)[-4_000:]) is not None
    crashed = ended.ending == "signalled" and ended.signal in CRASHES
    failed = crashed or (ended.ending == "exited" and (refused or not ended.ok)) or outcome.end == "no_work"
    reached = bool(outcome.cost_usd or outcome.failed or (outcome.usage and outcome.usage.output_tokens))
    silent = outcome.end in SILENT_ENDS and not outcome.lost and not reached
    return failed and silent and ended.seconds < AT_ONCE_SECONDS


def _own_words(outcome: Outcome) -> str:
    """Return what the agent says about its end: the lines that speak of an error, else the last ones."""
    lines = [line.strip() for line in (outcome.message or outcome.ended.tail).splitlines() if line.strip()]
    telling = [line for line in lines if ERROR.search(line)] or lines[-2:]
    return one_line(" ".join(telling[:2]), WORDS_CHARS)


def _cannot_work(agent: str, outcome: Outcome, probed: SessionDone) -> Failure | None:
    """Return the fault if the agent could not even say one word."""
    answer = probed.outcome
    if answer.ended.ending != "not_started" and not _lifeless(answer):
        return None
    told = _own_words(outcome) or _own_words(answer) or "nothing"
    ended = outcome.ended
    how = f"exit code {ended.exit_code}" if ended.exit_code is not None else f"signal {ended.signal}"
    starts = (
        "its program starts (`--version` works)" if probed.version else "its program does not answer `--version` either"
    )
    return Failure(
        kind=Kind.AGENT_MISSING,
        summary=(
            f"The agent {one_line(agent, 80)} cannot work. It says: {told.rstrip('.')}. "
            f"It ended at once with {how}, and so did a session that only asks for one word; {starts}."
        ),
        detail=ended.tail,
        error=told.rstrip("."),
    )


def _wall_clock(kit: Kit) -> float:
    """Return how long a session may take: what the user says holds in every profile; 0 is no limit."""
    asked = kit.config.limits.wall_clock
    return asked if asked is not None else kit.policy.limits.wall_clock or WALL_CLOCK


def _wait_for_others(kit: Kit, name: str, agent: str) -> None:
    """Hold back while another task waits for the same fault to pass: it goes first, and this one learns from it."""
    while (breaker := held(kit.record.state, name, agent, kit.clock.now())) is not None:
        if kit.stop.deadline() is not None or breaker.needs_person:
            raise Interrupted
        why = f"task {breaker.task}, which met {breaker.kind}" if breaker.task else f"{agent}, which met {breaker.kind}"
        kit.seen(name, f"waits for {why}")
        kit.clock.wait(SLICE_SECONDS)


def _advice(kit: Kit, task: TaskState, slot: int) -> tuple[str, ...]:
    """Say what the agent itself may do about the surroundings that the last attempt failed in."""
    last = next((one for one in reversed(task.attempts) if one.failure is not None), None)
    if last is None or last.failure is None:
        return ()
    shared = pattern(seen_failures(kit.record.state), kit.clock.now())
    hung = last.failure.kind in (Kind.HANG, Kind.TIMEOUT, Kind.KILLED)  # the session: no check is to blame
    failure, command, place = last.failure, failed_command(task), kit.workspace.path(slot)
    advice = () if hung else kit.helped(task.task.id, lambda remedies: remedies.advise(failure, command, place)) or ()
    return (*((f"{shared.advice} ({shared.because})",) if shared else ()), *advice)


def _briefed(kit: Kit, task: TaskState, order: SessionOrder) -> SessionOrder:
    """Write the brief: all of it for an agent that knows nothing, and a word to a session that is continued."""
    attempt = task.current
    told, checks = replace(task, task=kit.tasks[order.task]), kit.checks(order.task)
    touched = (
        kit.workspace.changed_paths(attempt.base, attempt.verdict.tree) if attempt.verdict and attempt.sessions else ()
    )
    repairs = kit.record.state.tasks.get(task.task.fixes or "")
    advice = _advice(kit, task, order.slot)
    text = brief(told, checks, kit.guidance, touched, repairs, advice, may_ask=kit.plan.extensible)
    word = go_on(told, checks) if order.resume else ""
    return replace(order, brief=kit.redactor.text(text), word=kit.redactor.text(word))
