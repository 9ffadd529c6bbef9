"""Break real things in a box, let remedies heal them, and see from outside whether they did."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults import calls, everyday, places, proofs, scripts, servers
from benchmarks.faults.box import Box, CannotBreak, Fault, fingerprint, open_box
from benchmarks.report import BenchBroken, Report, Target
from unstuck.app.remedy_plan import RemedyPlanner, make_call
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.remedies.chain import ASK, read_catalog
from unstuck.remedies.learning import Lessons
from unstuck.remedies.machine import workspace_root
from unstuck.remedies.performing import Tried
from unstuck.remedies.situation import Preferences
from unstuck.remedies.toolbox import Done

FAULTS: tuple[Callable[[Box], Fault], ...] = (
    *calls.FAULTS,
    *scripts.FAULTS,
    *servers.FAULTS,
    *places.FAULTS,
    *proofs.FAULTS,
    *everyday.FAULTS,
)
LEAST_FAULTS, LEAST_SHARE, RATIO = 80, 60 / 63, 10.0
STEP_SECONDS = 8.0
REPEATS = 5
BASIC_TOOLS = ("run_bash", "read_dir", "read_file", "write_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed:
    """What came of one fault."""

    fault: str
    category: str
    chain: str
    strategy: str | None
    healed: bool
    """The thing is whole, and the call that recovered it was green once more outside of the remedy."""
    needs_person: bool
    safe: bool
    """The way that worked consists of safe steps alone."""
    unharmed: bool
    """Nothing changed outside of the workspace, nor inside what must stay."""
    seconds: float
    tried: tuple[str, ...] = ()


def measure(*, repeats: int = REPEATS, say: Callable[[str], None] = print) -> Report:
    """Heal every fault in a box of its own; then measure how long an answer takes."""
    found, skipped = [], []
    for make in FAULTS:
        with tempfile.TemporaryDirectory(prefix="unstuck-box-") as folder:
            try:
                found.append(heal(make, Path(folder) / "box"))
            except CannotBreak as reason:
                skipped.append((make.__name__, str(reason)))
                say(f"skipped {make.__name__}: {reason}")
    return summed_up(found, skipped, _start_ratio(repeats, say))


def heal(make: Callable[[Box], Fault], base: Path) -> Healed:
    """Break one thing, see it fail, and let the remedies try."""
    with open_box(base) as box:
        fault = make(box)
        began = time.monotonic()
        evidence = _fails(box, fault)
        before = fingerprint(base)
        cwd = _folder(box, fault)
        tools = _tools(fault)
        planner = RemedyPlanner(
            cwd=cwd, root=workspace_root(cwd), catalog=read_catalog(), lessons=Lessons(), env=fault.env or None,
            preferences=Preferences(
                allow=fault.allow, timeout=STEP_SECONDS, mirrors=fault.mirrors, prefer_mirrors=bool(fault.mirrors)
            ),
        )  # fmt: skip
        diagnosis = open_rulebook(cwd).diagnose(evidence)
        if diagnosis is None:
            raise BenchBroken(f"{fault.name}: the failing call did not fail: {evidence.stdout[-300:]}")
        call = make_call(evidence, tools=tools, args=fault.args, schema=fault.schema)
        plan = planner.plan(diagnosis, call, tools)
        walked = planner.run(plan, lent={name: _lend(tool) for name, tool in fault.lent.items()})
        worked = walked.recovery
        way = next((one for one in plan.strategies if worked and one.strategy == worked.strategy), None)
        return Healed(
            fault=fault.name,
            category=fault.category,
            chain=plan.chain,
            strategy=worked.strategy if worked else None,
            healed=worked is not None
            and fault.prints in worked.output
            and fault.healed()
            and confirmed(box, fault, worked),
            needs_person=fault.needs_person,
            safe=way is not None and way.risk == "safe",
            unharmed=fingerprint(base) == before and fault.intact(),
            seconds=time.monotonic() - began,
            tried=tuple(
                f"{one.strategy} {one.result}" + (f": {one.because}" if one.because else "") for one in walked.tried
            )
            + tuple(f"{name} skipped: {because}" for name, because in plan.skipped),
        )


def _tools(fault: Fault) -> dict[str, Any] | None:
    """Return the caller's tools with what is known of their schemas; None where nobody says."""
    if not fault.lent:
        return None
    names = (*fault.lent, *(() if fault.alone else BASIC_TOOLS))
    missing = fault.tool if fault.category == "tool_not_found" else ""
    return {name: fault.schema if name == fault.tool else None for name in names if name != missing}


def confirmed(box: Box, fault: Fault, worked: Tried) -> bool:
    """Make the recovered calls again, outside of the remedy and as an agent would, from what was handed over alone."""
    if fault.once:
        return True
    for call in worked.calls:
        time.sleep(fault.pause)
        lent = fault.lent.get(call.tool or "")
        if lent is not None:
            if not lent(call.args)[0]:
                return False
            continue
        match call.tool:
            case "run_bash":
                done = subprocess.run(
                    ["bash", "-c", call.args["script"]], cwd=_folder(box, fault), env={**_bare_environment(), **fault.env},
                    stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
                )  # fmt: skip
                if done.returncode != 0:
                    return False
            case "read_file" | "read_dir":
                if not (_folder(box, fault) / next(iter(call.args.values()))).exists():
                    return False
            case "write_file":
                if not box.has(call.args["file"], call.args["content"]):
                    return False
            case _:
                return False
    return bool(worked.calls)


def _folder(box: Box, fault: Fault) -> Path:
    return box.work / "disk" if fault.command.startswith("cd disk && ") else box.work


def _fails(box: Box, fault: Fault) -> Evidence:
    """Make the call that fails, as an agent would, and return what it saw."""
    if fault.lent:
        tool = fault.lent[fault.tool]
        ok, text = tool(fault.args)
        if ok:
            raise BenchBroken(f"{fault.name}: the tool did not fail")
        return Evidence(stdout=text, tool=fault.tool)
    read, write = os.pipe()
    try:
        done = subprocess.run(
            ["bash", "-c", fault.command], cwd=box.work, env={**_bare_environment(), **fault.env}, stdin=read, capture_output=True,
            timeout=fault.limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return Evidence(
            stdout=(error.stdout or b"").decode(errors="replace"),
            command=fault.command,
            tool="run_bash",
            timed_out=True,
        )
    finally:
        os.close(read)
        os.close(write)
    if done.returncode == 0:
        raise BenchBroken(f"{fault.name}: the failing call did not fail: {done.stdout[-300:]!r}")
    text = (done.stdout + done.stderr).decode(errors="replace")
    command = fault.command.removeprefix("cd disk && ")
    return Evidence(stdout=text, exit_code=done.returncode, command=command, tool="run_bash")


def _bare_environment() -> dict[str, str]:
    """Return our environment without what would tell git whom it works for."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _lend(tool: Callable[[Mapping[str, Any]], tuple[bool, str]]) -> Callable[[Mapping[str, Any]], Done]:
    def use(args: Mapping[str, Any]) -> Done:
        ok, text = tool(args)
        return Done(ok=ok, output=text, exit_code=0 if ok else None, because="" if ok else text)

    return use


def summed_up(found: Sequence[Healed], skipped: Sequence[tuple[str, str]], ratio: float) -> Report:
    """Put the table together."""
    curable = [one for one in found if not one.needs_person]
    healed = [one for one in curable if one.healed]
    false = [one for one in found if one.strategy is not None and (one.needs_person or not one.healed)]
    harmed = [one for one in found if not one.unharmed]
    share = len(healed) / len(curable) if curable else 0.0
    lines = [f"{'fault':44} {'chain':20} {'recovered by':28} seconds"]
    for one in found:
        mark = "✔" if one.healed else "·" if one.needs_person and one.strategy is None else "✘"
        by = one.strategy or (ASK if one.needs_person else "nothing")
        lines.append(f"{mark} {one.fault:42} {one.chain:20} {by:28} {one.seconds:7.1f}")
    safe = sum(one.safe for one in healed)
    lines += [
        "",
        f"{len(healed)} of {len(found)} recovered without a person ({share:.0%} of those that anybody but a person can cure), {safe} of them by safe steps alone.",
        f"Each recovered call was green once more outside of the remedy; {len(false)} were falsely called recovered.",
        f"{len(found) - len(curable)} need a person, {len(harmed)} changed something outside, {len(skipped)} could not be broken here.",
    ]
    return Report(
        figures={
            "recovered": len(healed), "faults": len(found), "share": share, "safe": safe, "made_worse": len(harmed), "falsely_recovered": len(false),
            "skipped": [{"fault": name, "because": why} for name, why in skipped], "start_ratio": ratio,
            "rows": [{"fault": one.fault, "chain": one.chain, "recovered_by": one.strategy, "healed": one.healed, "needs_person": one.needs_person,
                      "safe": one.safe, "unharmed": one.unharmed, "seconds": round(one.seconds, 3), "tried": list(one.tried)} for one in found],
        },
        lines=tuple(lines),
        targets=(
            Target(name="share of the curable not recovered", value=1 - share, at_most=1 - LEAST_SHARE),
            Target(name="faults made worse", value=len(harmed), at_most=0),
            Target(name="faults falsely recovered", value=len(false), at_most=0),
            Target(name="faults short of 80", value=max(0, LEAST_FAULTS - len(found)), at_most=0),
            Target(name="unstuck remedy, in bare interpreters", value=ratio, at_most=RATIO),
        ),
    )  # fmt: skip


def _start_ratio(repeats: int, say: Callable[[str], None]) -> float:
    """Return how long an answer takes in a fresh process, in starts of a bare interpreter."""
    say(f"Asking for a remedy {repeats} times in a fresh process ...")
    bare = [sys.executable, "-c", "pass"]
    ours = [sys.executable, "-P", "-m", "unstuck", "remedy", "--tool", "repo_browser", "--json"]
    taken: list[float] = []
    for _ in range(repeats):
        seconds = []
        for argv in (bare, ours):
            began = time.perf_counter()
            subprocess.run(
                argv, input=b"Unknown tool: repo_browser", cwd=tempfile.gettempdir(), check=True, capture_output=True
            )
            seconds.append(time.perf_counter() - began)
        taken.append(seconds[1] / seconds[0])
    return statistics.median(taken)
