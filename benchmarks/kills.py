"""Kill a supervisor at random moments of a long run, again and again, then let it end: who was asked, what was done twice."""

import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.parallel import agent_of, make_repository
from benchmarks.report import BenchBroken, Report, Target
from unstuck.app.inspect import look
from unstuck.model.action import Escalate, Halt
from unstuck.model.errors import BadUsage
from unstuck.model.event import Acted

TASKS, KILLS, PARALLEL = 60, 100, 2
SHORTEST, LONGEST = 0.3, 4.0
"""Seconds from a supervisor's first word to its death; a busy machine may take as long before that."""
SECONDS = 2.5
"""How long an agent works: some tasks land between two kills, and there is still something to do after the last one."""
SEED = 18


def measure(
    *,
    tasks: int = TASKS,
    kills: int = KILLS,
    seed: int = SEED,
    seconds: float = SECONDS,
    say: Callable[[str], None] = print,
) -> Report:
    """Run a plan of independent tasks, kill its supervisor, start it again; count what came of it."""
    moments = random.Random(seed)  # noqa: S311  # the same moments for the same seed
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        root = Path(scratch) / "project"
        make_repository(root, tasks)
        say(f"Killing the supervisor of {tasks} tasks {kills} times, each time after {SHORTEST:g} to {LONGEST:g} s ...")
        killed = 0
        while killed < kills and _killed(root, seconds, moments.uniform(SHORTEST, LONGEST)):
            killed += 1
            if killed % 10 == 0:
                say(f"{killed} kills, {_complete(root)} tasks landed.")
        between = _complete(root)
        last = _start(root, seconds)
        last.communicate()
        view, landed = look(root), _landed(root)
        acts = [entry.event.action for entry in view.entries if isinstance(entry.event, Acted)]
    asked = sum(isinstance(act, Halt | Escalate) for act in acts)
    twice = sum(count - 1 for count in landed.values())
    noticed = sum("which died" in note for note in view.state.notes)
    figures = {
        "tasks": tasks,
        "kills": killed,
        "seed": seed,
        "landed": len(landed),
        "twice": twice,
        "asked": asked,
        "between": between,
    }
    lines = (
        f"  {killed} kills (seed {seed}), {noticed} of supervisors that had begun to work",
        f"  {len(landed)} of {tasks} tasks landed, {between} of them between kills, {twice} more than once",
        f"  {asked} halts and questions; the last run ended with exit code {last.returncode}",
    )
    return Report(
        figures=figures,
        lines=lines,
        targets=(
            Target(name="kills that came too late", value=kills - killed, at_most=0),
            Target(name="share of kills that hit no work", value=1 - noticed / max(killed, 1), at_most=0.5),
            Target(name="halts and questions", value=asked, at_most=0),
            Target(name="tasks that did not land", value=tasks - len(landed), at_most=0),
            Target(name="tasks that landed twice", value=twice, at_most=0),
        ),
    )


def _killed(root: Path, seconds: float, after: float) -> bool:
    """Let a supervisor work for a while and kill it; False if it was done before."""
    with _start(root, seconds) as run:
        assert run.stderr is not None
        run.stderr.readline()
        try:
            run.wait(after)
        except subprocess.TimeoutExpired:
            run.kill()
            return True
    if run.returncode != 0:
        raise BenchBroken(
            f"The run ended by itself with exit code {run.returncode}.", hint="See whether `unstuck demo` works here."
        )
    return False


def _start(root: Path, seconds: float) -> subprocess.Popen[bytes]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("UNSTUCK_")}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "unstuck", "run", "plan.md", "--agent", agent_of(seconds), "--parallel", str(PARALLEL)],
        cwd=root, env=inherited, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def _complete(root: Path) -> int:
    """Return how many tasks the journal says are done; before the first fact there is no journal."""
    try:
        return sum(task.status == "complete" for task in look(root).state.tasks.values())
    except BadUsage:
        return 0


def _landed(root: Path) -> Counter[str]:
    """Count the commits of each task on the user's branch."""
    done = subprocess.run(
        ["git", "log", "--format=%s"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Counter(line for line in done.stdout.splitlines() if line.startswith("feat(part-"))
