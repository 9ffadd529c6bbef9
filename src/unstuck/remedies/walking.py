"""Edge: Walk a recovery plan. A way has worked when the failing call, or its repaired form, was run and was green; nothing else counts."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from unstuck.diagnosis import Evidence, Kind
from unstuck.ports import Done, Judge, Toolbox
from unstuck.remedies.chain import ASK, RISKS, Risk
from unstuck.remedies.recovery_plan import Plan, Strategy
from unstuck.remedies.step import Rendered, script

PER_STRATEGY, PER_FAILURE = 2, 4
"""Executions of one way, and of all ways together, before a person is asked."""
PASSING = frozenset({Kind.NETWORK_ERROR, Kind.RATE_LIMITED, Kind.PROVIDER_OVERLOADED, Kind.RESOURCE_BUSY})
"""What may be gone a little later, so that a way which met it is worth a second execution."""
ADVICE = "it is advice: no step of it is the call, so nothing would show that it works"
MOST_OUTPUT = 8_000

Result = Literal["worked", "failed", "not_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One way, and what came of it."""

    strategy: str
    result: Result
    because: str = ""
    steps: int = 0
    seconds: float = 0.0
    output: str = ""
    """What the call printed, bounded."""
    exit_code: int | None = None
    calls: tuple[Rendered, ...] = ()
    """The calls whose success is the recovery, as the caller's tools are told to make them."""
    files: tuple[str, ...] = ()
    """Files of the workspace that it made or changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    tried: tuple[Tried, ...]

    @property
    def recovery(self) -> Tried | None:
        return next((one for one in self.tried if one.result == "worked"), None)

    @property
    def recovered_by(self) -> str | None:
        return self.recovery.strategy if self.recovery else None


def walk(
    plan: Plan, toolbox: Toolbox, judge: Judge, allow: Risk, record: Callable[[Tried], None] = lambda _: None
) -> Walked:
    """Try one way after the other; the record is told of every execution as soon as it is over."""
    tried: list[Tried] = []
    executions = 0
    worth_another: list[Strategy] = []
    queue = [(strategy, 1) for strategy in plan.strategies if strategy.strategy != ASK]
    while queue:
        strategy, times = queue.pop(0)
        if executions >= PER_FAILURE:
            because = f"{PER_FAILURE} executions were made for this failure"
        elif not strategy.proves:
            because = ADVICE
        elif RISKS.index(strategy.risk) > RISKS.index(allow):
            because = f"it is {strategy.risk}, and only {allow} steps may run"
        else:
            because = toolbox.obstacle(strategy)
        if because:
            tried.append(Tried(strategy=strategy.strategy, result="not_run", because=because))
            continue
        one, passing = _execute(strategy, toolbox, judge)
        executions += 1
        tried.append(one)
        record(one)
        if one.result == "worked":
            break
        if passing and times < PER_STRATEGY:
            worth_another.append(strategy)
        if not queue:
            queue = [(each, PER_STRATEGY) for each in worth_another if executions < PER_FAILURE]
            worth_another = []
    return Walked(tried=tuple(tried))


def _execute(strategy: Strategy, toolbox: Toolbox, judge: Judge) -> tuple[Tried, bool]:
    """Do the steps of one way; return what came of it, and whether what stopped it may pass."""
    began, printed, calls, code = time.monotonic(), list[str](), list[Rendered](), None
    for count, told in enumerate(strategy.steps, 1):
        done = toolbox.use(told.step)
        if told.step.again:
            calls.append(told.call)
            code = done.exit_code
        if calls or not done.ok:
            printed.append(done.output.strip("\n"))
        found = judge.diagnose(_evidence(done, script(told.step.deed))) if told.step.again or not done.ok else None
        if done.ok and (found is None or not told.step.again):
            continue
        toolbox.settle(keep=False)
        because = done.because or (f"{found.kind}: {found.message}" if found else "it did not do what was expected")
        failed = Tried(
            strategy=strategy.strategy,
            result="failed",
            because=because,
            steps=count,
            seconds=time.monotonic() - began,
            output=done.output[-MOST_OUTPUT:],
            exit_code=done.exit_code,
        )
        return failed, found is not None and found.kind in PASSING
    seconds = time.monotonic() - began
    return Tried(
        strategy=strategy.strategy,
        result="worked",
        steps=len(strategy.steps),
        seconds=seconds,
        output="\n".join(filter(None, printed))[-MOST_OUTPUT:],
        exit_code=code,
        calls=tuple(calls),
        files=toolbox.settle(keep=True),
    ), False


def _evidence(done: Done, command: str) -> Evidence:
    return Evidence(stdout=done.output, exit_code=done.exit_code, command=command, timed_out=done.timed_out)
