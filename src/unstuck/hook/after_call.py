"""Advice for an agent after a tool call."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from unstuck.hook.hook_input import Heard
from unstuck.hook.memory import NAMED, Failed, Memory, Proposed, digest
from unstuck.model.text import one_line

if TYPE_CHECKING:
    from unstuck.diagnosis.diagnosis_result import Diagnosis
    from unstuck.remedies.recovery_plan import Plan, Strategy


MOST_STRATEGIES, STEP_CHARS, MOST_STEPS = 2, 300, 4
LARGEST_FILE = 1 << 20
WAITED_FOR = 6
"""Calls within which a way out is expected to be tried."""
ALARMS = ("rror", "ail", "AIL", "ot found", "o such", "enied", "atal", "efused", "xception", "annot", "imed out", "anic", "nknown", "nrecogni", "nvalid", "onflict", "o space", "ddress already", "illed", "ould not", "nable", "issing", "xpected")  # fmt: skip
"""One of these stands in every output that can tell of a failure."""


def tell(heard: Heard, memory: Memory) -> str:
    """Take in a call that is over; return what the agent should know about it, or nothing."""
    if heard.interrupted:
        return ""
    found = _failure(heard)
    result = digest(heard.output)
    asked = heard.command or str(sorted(heard.args.items()))
    memory.calls.append([heard.tool, digest(asked), result, int(found is not None)])
    if found is None and heard.command and memory.red:
        memory.red = {check: how for check, how in memory.red.items() if not _same_program(heard.command, check)}
    if memory.proposed is not None and heard.command:
        _learn(heard, memory, worked=found is None)
    parts = [_advice(heard, memory, found)] if found is not None else []
    if heard.path and heard.moment == "after":
        parts.append(_edited(heard, memory))
    parts.append(nudge(memory, _streak(heard, memory, found)))
    told = [part for part in parts if part]
    return f"unstuck: {' '.join(told)}" if told else ""


def _streak(heard: Heard, memory: Memory, found: "Diagnosis | None") -> tuple[str, str] | None:
    again = repeated(memory, heard)
    if found is not None:
        memory.failures.append(failure_of(str(found.kind), found.message, found.tests, heard))
        again = again or same_failure(memory)
    elif heard.command and memory.failures and _same_program(heard.command, memory.failures[-1].what):
        memory.failures.clear()  # what failed works now
    over = ("row", "still") if found is None and memory.failures else ("row", "still", "same", "not")
    if again is None and memory.nudged.startswith(over):
        memory.nudged = ""
    return again


# --- failures -----------------------------------------------------------------------------------------------------


def _failure(heard: Heard) -> "Diagnosis | None":
    """Say what failed, if anything did: by the agent's word, else by the output of a command that is a check."""
    if heard.moment == "after" and (not heard.command or not any(alarm in heard.output for alarm in ALARMS)):
        return None
    from pathlib import Path  # noqa: PLC0415  # not for a success

    from unstuck.diagnosis.evidence import Evidence  # noqa: PLC0415  # success needs none of this
    from unstuck.diagnosis.rulebook import open_rulebook  # noqa: PLC0415  # as above
    from unstuck.toolchain.command_roles import role  # noqa: PLC0415  # as above

    evidence = Evidence(
        stdout=heard.output,
        exit_code=heard.exit_code,
        timed_out=heard.timed_out,
        tool="" if heard.command else heard.tool,
        command=heard.command,
    )
    if heard.moment == "after" and heard.agent == "claude" and not role(heard.command):
        return None  # it ended well, and what `cat` prints is no news of a failure
    return open_rulebook(Path(heard.cwd or ".")).diagnose(evidence)


def _advice(heard: Heard, memory: Memory, found: "Diagnosis") -> str:
    """Return what the agent does not see itself: ways out, or that it is not its own to repair."""
    if heard.command:
        from unstuck.toolchain.command_roles import role  # noqa: PLC0415  # only after a failure

        if role(heard.command):
            memory.red.pop(check := one_line(heard.command, 160), None)
            memory.red[check] = one_line(found.message or str(found.kind), 160)
    name = f"{found.kind} {digest(''.join(char for char in found.message if not char.isdigit()))}"
    if name in memory.told:
        return ""
    plan, advised = _plan(heard, found)
    strategies = advised[:MOST_STRATEGIES]
    if not strategies and (found.blame == "agent" or found.severity == "recoverable"):
        return ""
    memory.told.append(name)
    means = f"{found.kind}: {found.facts.means}."
    if not strategies:
        return f"{means} Trying again will not help. {plan.strategies[-1].steps[0].step.action}"
    memory.proposed = Proposed(
        chain=plan.chain,
        context=plan.context,
        tool=plan.tool,
        strategies=[
            [strategy.strategy, *(told.line for told in strategy.steps if told.line)] for strategy in strategies
        ],
        left=WAITED_FOR,
    )
    listed = " ".join(f"({place}) {_strategy(strategy)}" for place, strategy in enumerate(strategies, 1))
    return f"{means} {'Ways' if len(strategies) > 1 else 'A way'} out, filled in for this machine: {listed}"


def _plan(heard: Heard, found: "Diagnosis") -> "tuple[Plan, tuple[Strategy, ...]]":
    from pathlib import Path  # noqa: PLC0415  # not for a success

    from unstuck.app.remedy_plan import make_call, open_remedies  # noqa: PLC0415  # only after a failure

    planner = open_remedies(Path(heard.cwd) if os.path.isdir(heard.cwd) else None)  # noqa: PTH112  # odd names raise
    call = make_call(found.evidence, args={} if heard.command else heard.args)
    plan = planner.plan(found, call)
    return plan, planner.advised(plan)


def _strategy(strategy: "Strategy") -> str:
    steps = []
    for told in strategy.steps[:MOST_STEPS]:
        shown = f": `{one_line(told.line, STEP_CHARS).replace('`', chr(39))}`" if told.line else ""
        steps.append(f"{one_line(told.step.action, STEP_CHARS)}{shown}")
    risk = "" if strategy.risk == "safe" else f", {strategy.risk}"
    return f"{strategy.strategy}{risk}: {'; then '.join(steps)}."


def _learn(heard: Heard, memory: Memory, *, worked: bool) -> None:
    """See whether the agent tried a way out, and keep what came of it."""
    proposed = memory.proposed
    assert proposed is not None
    proposed["left"] -= 1
    for name, *steps in proposed["strategies"]:
        done = [place for place, step in enumerate(steps, 1) if step and _plain(str(step)) in _plain(heard.command)]
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
            keep_lesson(Path(heard.cwd or "."), lesson)
            memory.proposed = None
            return
    if proposed["left"] <= 0:
        memory.proposed = None


def _plain(line: str) -> str:
    return " ".join(line.replace("'", "").replace('"', "").split())


def _same_program(command: str, before: str) -> bool:
    return command.split(maxsplit=1)[:1] == before.split(maxsplit=1)[:1]


# --- edits ---------------------------------------------------------------------------------------------------------


def _edited(heard: Heard, memory: Memory) -> str:
    """Remember the file's states around the edit; say so if it goes back and forth."""
    memory.edited = True
    path = os.path.join(heard.cwd, heard.path)  # noqa: PTH118  # pathlib is not loaded for a success
    after = _file(path)
    if after is None:
        return ""
    before = heard.original if heard.original is not None else _before(heard, after)
    states = memory.states.setdefault(heard.path, [])
    known = digest(before) if before is not None else states[-1][1] if states else ""
    states.append([known, digest(after)])
    return nudge(memory, undone(memory, heard.path))


def _before(heard: Heard, after: str) -> str | None:
    """Work out the text before an edit that replaced one text by another."""
    old, new = heard.args.get("old_string"), heard.args.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str) or not new or new not in after:
        return None
    return after.replace(new, old) if heard.args.get("replace_all") is True else after.replace(new, old, 1)


def _file(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # as above
            return file.read(LARGEST_FILE)
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


def repeated(memory: Memory, heard: Heard) -> tuple[str, str] | None:
    """Say that the same call comes again and again; `memory` holds it already. Returns the streak and the words."""
    if heard.tool in WAITING or len(memory.calls) < ROW or memory.calls[-1][:2] != memory.calls[-2][:2]:
        return _no_progress(memory)
    from unstuck.policy.loops import repetition  # noqa: PLC0415  # only where there may be one

    *done, last = [(str(tool), str(arguments)) for tool, arguments, _, _ in memory.calls]
    if repetition(done, last, same=0, tool=0, row=ROW) is None:
        return _no_progress(memory)
    times = next((count for count, call in enumerate(reversed(done), 1) if call != last), len(done) + 1)
    results = {row[2] for row in memory.calls[-times:]}
    same = "with the same result every time" if len(results) == 1 else "without any change of yours in between"
    what = one_line(heard.command or heard.path or heard.tool, 120)
    words = f"This is the same {heard.tool} call (`{what}`) for the {_ordinal(times)} time in a row, {same}. Calling it again will not help."
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
    """Say that the last failures are one, or do not become fewer, whatever was tried between them."""
    if len({one.kind for one in memory.failures[-ROW:]}) != 1 or len(memory.failures) < ROW:
        return None
    from unstuck.diagnosis.diagnosis_result import Diagnosis  # noqa: PLC0415  # as above
    from unstuck.diagnosis.evidence import Evidence  # noqa: PLC0415  # as above
    from unstuck.model.failure import Kind  # noqa: PLC0415  # as above
    from unstuck.policy.loops import Footprint, Strength, signals  # noqa: PLC0415  # only where failures may be one

    prints = [
        Footprint(
            attempt=number,
            signature=Diagnosis(
                kind=Kind(one.kind), confidence=1.0, tests=tuple(one.tests), evidence=Evidence(stdout=one.message)
            ).signature,
            failing=one.failing if one.failing >= 0 else None,
        )
        for number, one in enumerate(memory.failures, 1)
    ]
    told = ("same_failure", "not_converging")
    strong = [one for one in signals(prints[-1], prints[:-1]) if one.strength >= Strength.STRONG and one.type in told]
    if not strong:
        return None
    signal = strong[0]
    tried = dict.fromkeys(one.what for one in memory.failures[-len(signal.attempts) - 1 :])
    listed = "; ".join(f"`{what}`" for what in tried)
    how = "in exactly the same way" if signal.type == "same_failure" else "with no fewer failing tests"
    words = f"It failed {how} {len(signal.attempts) + 1} times in a row. Tried: {listed}. What you change between them does not touch the cause."
    return f"{signal.type} {prints[-1].signature}", words


def undone(memory: Memory, path: str) -> tuple[str, str] | None:
    """Say that an edit brought a file back to what it was before an earlier edit; `memory` holds it already."""
    states = memory.states.get(path, [])
    if len(states) < 2:  # noqa: PLR2004  # there and back
        return None
    from unstuck.policy.loops import Footprint, signals  # noqa: PLC0415  # only after a second edit of a file

    prints = [Footprint(attempt=number, start=start, tree=tree) for number, (start, tree) in enumerate(states, 1)]
    found = [one for one in signals(prints[-1], prints[:-1]) if one.type in ("reverted", "same_tree")]
    if not found:
        return None
    words = (
        f"This edit brings {one_line(path, 200)} back to what it was before an earlier edit of yours (A → B → A). "
        "Both ways were tried now: neither is the answer by itself."
    )
    return f"undone {path} {states[-1][1]}", words


def failure_of(kind: str, message: str, tests: Sequence[str], heard: Heard) -> Failed:
    what = one_line(heard.command or f"{heard.tool} {heard.path}", 100)
    named = [one_line(test, 120) for test in tests[:NAMED]]
    return Failed(kind, one_line(message, 200), named, len(tests) or -1, what)


def nudge(memory: Memory, found: tuple[str, str] | None) -> str:
    """Return the words if this streak was not told of yet; a streak that ended may be told of again."""
    if found is None:
        return ""
    streak, words = found
    if streak == memory.nudged:
        return ""
    memory.nudged = streak
    return f"{words} {FIRM}"


def _ordinal(number: int) -> str:
    return {3: "third", 4: "fourth", 5: "fifth"}.get(number, f"{number}th")
