"""Advice for an agent after a tool call: remedies for a failure, warnings about loops."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from unstuck.hook.hook_input import HookEvent
from unstuck.hook.memory import NAMED, Failed, Memory, Proposed, digest
from unstuck.model.text import one_line

if TYPE_CHECKING:
    from unstuck.diagnosis.diagnosis_result import Diagnosis
    from unstuck.remedies.recovery_plan import Plan, Strategy


MAX_STRATEGIES = 2
MAX_STEPS = 4
STEP_CHARS = 300
MAX_FILE_CHARS = 1 << 20
WAITED_FOR = 6
"""Calls within which the agent is expected to try a remedy."""
ALARMS = ("rror", "ail", "AIL", "ot found", "o such", "enied", "atal", "efused", "xception", "annot", "imed out", "anic", "nknown", "nrecogni", "nvalid", "onflict", "o space", "ddress already", "illed", "ould not", "nable", "issing", "xpected")  # fmt: skip
"""Every output of a failure holds one of these. Other outputs are not diagnosed."""


def advice_after_call(event: HookEvent, memory: Memory) -> str:
    """Record a call that ended and return advice for the agent, or an empty string."""
    if event.interrupted:
        return ""
    diagnosis = _failure(event)
    result = digest(event.output)
    call = event.command or str(sorted(event.args.items()))
    memory.calls.append([event.tool, digest(call), result, int(diagnosis is not None)])
    if diagnosis is None and event.command and memory.red:
        memory.red = {check: how for check, how in memory.red.items() if not _same_program(event.command, check)}
    if memory.proposed is not None and event.command:
        _learn(event, memory, worked=diagnosis is None)
    parts = [_advice(event, memory, diagnosis)] if diagnosis is not None else []
    if event.path and event.moment == "after":
        parts.append(_edited(event, memory))
    parts.append(nudge(memory, _streak(event, memory, diagnosis)))
    text = " ".join(part for part in parts if part)
    return f"unstuck: {text}" if text else ""


def _streak(event: HookEvent, memory: Memory, diagnosis: "Diagnosis | None") -> tuple[str, str] | None:
    again = repeated(memory, event)
    if diagnosis is not None:
        memory.failures.append(failure_of(str(diagnosis.kind), diagnosis.message, diagnosis.tests, event))
        again = again or same_failure(memory)
    elif event.command and memory.failures and _same_program(event.command, memory.failures[-1].what):
        memory.failures.clear()  # what failed works now
    over = ("row", "still") if diagnosis is None and memory.failures else ("row", "still", "same", "not")
    if again is None and memory.nudged.startswith(over):
        memory.nudged = ""
    return again


def _failure(event: HookEvent) -> "Diagnosis | None":
    """Return the diagnosis of a failed call, or None.

    A call failed if the agent reports it, or if a check prints a failure.
    """
    if event.moment == "after" and (not event.command or not any(alarm in event.output for alarm in ALARMS)):
        return None
    from pathlib import Path  # noqa: PLC0415  # not for a success

    from unstuck.diagnosis.evidence import Evidence  # noqa: PLC0415  # success needs none of this
    from unstuck.diagnosis.rulebook import open_rulebook  # noqa: PLC0415  # as above
    from unstuck.toolchain.command_roles import role  # noqa: PLC0415  # as above

    evidence = Evidence(
        stdout=event.output,
        exit_code=event.exit_code,
        timed_out=event.timed_out,
        tool="" if event.command else event.tool,
        command=event.command,
    )
    if event.moment == "after" and event.agent == "claude" and not role(event.command):
        return None  # it succeeded, and the output of `cat` may quote any failure
    return open_rulebook(Path(event.cwd or ".")).diagnose(evidence)


def _advice(event: HookEvent, memory: Memory, diagnosis: "Diagnosis") -> str:
    """Return remedies for a failure, or that the agent cannot repair it."""
    if event.command:
        from unstuck.toolchain.command_roles import role  # noqa: PLC0415  # only after a failure

        if role(event.command):
            memory.red.pop(check := one_line(event.command, 160), None)
            memory.red[check] = one_line(diagnosis.message or str(diagnosis.kind), 160)
    name = f"{diagnosis.kind} {digest(''.join(char for char in diagnosis.message if not char.isdigit()))}"
    if name in memory.told:
        return ""
    plan, advised = _plan(event, diagnosis)
    strategies = advised[:MAX_STRATEGIES]
    if not strategies and (diagnosis.blame == "agent" or diagnosis.severity == "recoverable"):
        return ""
    memory.told.append(name)
    means = f"{diagnosis.kind}: {diagnosis.facts.means}."
    if not strategies:
        return f"{means} Trying again will not help. {plan.strategies[-1].steps[0].step.action}"
    memory.proposed = Proposed(
        chain=plan.chain,
        context=plan.context,
        tool=plan.tool,
        strategies=[
            [strategy.strategy, *(step.line for step in strategy.steps if step.line)] for strategy in strategies
        ],
        left=WAITED_FOR,
    )
    listed = " ".join(f"({place}) {_strategy(strategy)}" for place, strategy in enumerate(strategies, 1))
    return f"{means} {'Ways' if len(strategies) > 1 else 'A way'} out, filled in for this machine: {listed}"


def _plan(event: HookEvent, diagnosis: "Diagnosis") -> "tuple[Plan, tuple[Strategy, ...]]":
    from pathlib import Path  # noqa: PLC0415  # not for a success

    from unstuck.app.remedy_plan import make_call, open_remedies  # noqa: PLC0415  # only after a failure

    planner = open_remedies(Path(event.cwd) if os.path.isdir(event.cwd) else None)  # noqa: PTH112  # odd names raise
    call = make_call(diagnosis.evidence, args={} if event.command else event.args)
    plan = planner.plan(diagnosis, call)
    return plan, planner.advised(plan)


def _strategy(strategy: "Strategy") -> str:
    steps = []
    for filled in strategy.steps[:MAX_STEPS]:
        line = f": `{one_line(filled.line, STEP_CHARS).replace('`', chr(39))}`" if filled.line else ""
        steps.append(f"{one_line(filled.step.action, STEP_CHARS)}{line}")
    risk = "" if strategy.risk == "safe" else f", {strategy.risk}"
    return f"{strategy.strategy}{risk}: {'; then '.join(steps)}."


def _learn(event: HookEvent, memory: Memory, *, worked: bool) -> None:
    """Record the result if the call was a step of a proposed remedy."""
    proposed = memory.proposed
    assert proposed is not None
    proposed["left"] -= 1
    for name, *steps in proposed["strategies"]:
        done = [place for place, step in enumerate(steps, 1) if step and _plain(str(step)) in _plain(event.command)]
        if done and (not worked or max(done) == len(steps)):
            from pathlib import Path  # noqa: PLC0415  # not for a success

            from unstuck.app.remedy_runs import keep_lesson  # noqa: PLC0415  # only where something was learned
            from unstuck.remedies.learning import Lesson  # noqa: PLC0415  # as above

            lesson = Lesson(
                chain=proposed["chain"],
                strategy=str(name),
                context=proposed["context"],
                worked=worked,
                tool=proposed.get("tool", ""),  # a session that began before an update has none
                steps=len(steps),
            )
            keep_lesson(Path(event.cwd or "."), lesson)
            memory.proposed = None
            return
    if proposed["left"] <= 0:
        memory.proposed = None


def _plain(line: str) -> str:
    return " ".join(line.replace("'", "").replace('"', "").split())


def _same_program(command: str, before: str) -> bool:
    return command.split(maxsplit=1)[:1] == before.split(maxsplit=1)[:1]


def _edited(event: HookEvent, memory: Memory) -> str:
    """Record the states of a file around an edit, and return a warning if they go back and forth."""
    memory.edited = True
    path = os.path.join(event.cwd, event.path)  # noqa: PTH118  # pathlib is not loaded for a success
    after = _file(path)
    if after is None:
        return ""
    before = event.original if event.original is not None else _before(event, after)
    states = memory.states.setdefault(event.path, [])
    last = states[-1][1] if states else ""
    states.append([digest(before) if before is not None else last, digest(after)])
    return nudge(memory, undone(memory, event.path))


def _before(event: HookEvent, after: str) -> str | None:
    """Return the text before an edit that replaced one text by another, or None."""
    old, new = event.args.get("old_string"), event.args.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str) or not new or new not in after:
        return None
    return after.replace(new, old) if event.args.get("replace_all") is True else after.replace(new, old, 1)


def _file(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # as above
            return file.read(MAX_FILE_CHARS)
    except OSError:
        return None


ROW = 3
"""Identical calls in a row that are too many."""
BEATS = 5
"""Calls that bring the same result before standing still is called so."""
WAITING = frozenset(
    {"BashOutput", "TaskOutput", "KillShell", "ScheduleWakeup", "write_stdin", "TodoWrite", "update_plan"}
)
"""Tools that are meant to be called again and again."""
FIRM = "Stop and think: say what you know for certain, what you only assume, and take a different way. If nothing is left to try, tell the person what stands in the way."


def repeated(memory: Memory, event: HookEvent) -> tuple[str, str] | None:
    """Return the name of a streak and a warning if the same call is repeated, or None.

    The call is already in the memory.
    """
    if event.tool in WAITING or len(memory.calls) < ROW or memory.calls[-1][:2] != memory.calls[-2][:2]:
        return _no_progress(memory)
    from unstuck.policy.loops import repetition  # noqa: PLC0415  # only where there may be one

    *done, last = [(str(tool), str(arguments)) for tool, arguments, _, _ in memory.calls]
    if repetition(done, last, same=0, tool=0, row=ROW) is None:
        return _no_progress(memory)
    times = next((count for count, call in enumerate(reversed(done), 1) if call != last), len(done) + 1)
    results = {row[2] for row in memory.calls[-times:]}
    same = "with the same result every time" if len(results) == 1 else "without any change of yours in between"
    what = one_line(event.command or event.path or event.tool, 120)
    words = f"This is the same {event.tool} call (`{what}`) for the {_ordinal(times)} time in a row, {same}. Calling it again will not help."
    return f"row {last}", words


def _no_progress(memory: Memory) -> tuple[str, str] | None:
    results = [str(row[2]) for row in memory.calls if row[3]]
    failing = [row[3] for row in memory.calls[-BEATS:]]
    if len(failing) < BEATS or not all(failing) or len(set(results[-BEATS:])) > 1:
        return None
    from unstuck.policy.loops import stalled  # noqa: PLC0415  # as above

    if not stalled(results, BEATS):
        return None
    return f"still {results[-1]}", f"The last {BEATS} calls all failed with the very same output, though they differ."


def same_failure(memory: Memory) -> tuple[str, str] | None:
    """Return the name of a streak and a warning if the last failures are equal or not fewer."""
    if len({failed.kind for failed in memory.failures[-ROW:]}) != 1 or len(memory.failures) < ROW:
        return None
    from unstuck.diagnosis.diagnosis_result import Diagnosis  # noqa: PLC0415  # as above
    from unstuck.diagnosis.evidence import Evidence  # noqa: PLC0415  # as above
    from unstuck.model.failure import Kind  # noqa: PLC0415  # as above
    from unstuck.policy.loops import Footprint, Strength, signals  # noqa: PLC0415  # only where failures may be one

    prints = [
        Footprint(
            attempt=number,
            signature=Diagnosis(
                kind=Kind(failed.kind),
                confidence=1.0,
                tests=tuple(failed.tests),
                evidence=Evidence(stdout=failed.message),
            ).signature,
            failing=failed.failing if failed.failing >= 0 else None,
        )
        for number, failed in enumerate(memory.failures, 1)
    ]
    types = ("same_failure", "not_converging")
    recent_signals = signals(prints[-1], prints[:-1])
    strong = [signal for signal in recent_signals if signal.strength >= Strength.STRONG and signal.type in types]
    if not strong:
        return None
    signal = strong[0]
    tried = dict.fromkeys(failed.what for failed in memory.failures[-len(signal.attempts) - 1 :])
    listed = "; ".join(f"`{what}`" for what in tried)
    how = "in exactly the same way" if signal.type == "same_failure" else "with no fewer failing tests"
    words = f"It failed {how} {len(signal.attempts) + 1} times in a row. Tried: {listed}. What you change between them does not touch the cause."
    return f"{signal.type} {prints[-1].signature}", words


def undone(memory: Memory, path: str) -> tuple[str, str] | None:
    """Return the name of a streak and a warning if an edit undid an earlier one, or None.

    The edit is already in the memory.
    """
    states = memory.states.get(path, [])
    if len(states) < 2:  # noqa: PLR2004  # there and back
        return None
    from unstuck.policy.loops import Footprint, signals  # noqa: PLC0415  # only after a second edit of a file

    prints = [Footprint(attempt=number, start=start, tree=tree) for number, (start, tree) in enumerate(states, 1)]
    recent_signals = signals(prints[-1], prints[:-1])
    if not any(signal.type in ("reverted", "same_tree") for signal in recent_signals):
        return None
    words = (
        f"This edit brings {one_line(path, 200)} back to what it was before an earlier edit of yours (A → B → A). "
        "Both ways were tried now: neither is the answer by itself."
    )
    return f"undone {path} {states[-1][1]}", words


def failure_of(kind: str, message: str, tests: Sequence[str], event: HookEvent) -> Failed:
    what = one_line(event.command or f"{event.tool} {event.path}", 100)
    named = [one_line(test, 120) for test in tests[:NAMED]]
    return Failed(kind, one_line(message, 200), named, len(tests) or -1, what)


def nudge(memory: Memory, warning: tuple[str, str] | None) -> str:
    """Return the warning about a streak if the agent did not get it yet."""
    if warning is None:
        return ""
    streak, words = warning
    if streak == memory.nudged:
        return ""
    memory.nudged = streak
    return f"{words} {FIRM}"


def _ordinal(number: int) -> str:
    return {3: "third", 4: "fourth", 5: "fifth"}.get(number, f"{number}th")
