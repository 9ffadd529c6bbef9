"""Replay recorded trials under every profile, side by side: tasks solved and attempts used, by attempt budget.

Only `adaptive` asks experience whom to switch to, so only its column, and `experience` beside it, moves when the file's
other trials do. The others depend on the ladders alone.
"""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from benchmarks.trials import ENDED, Score, Trial, replay, replay_by_experience
from unstuck.app.config_file import read_config
from unstuck.git.repository import find_repository
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.policy.profiles import profiles

SAMPLE = Path(__file__).parent / "corpora" / "trials.csv"
"""Made up, so that the bench can be tried; real recordings are what it is for."""
BUDGETS = range(1, 6)
EXPERIENCE = "experience"
"""The column's name. In every column what is known of agents comes from the other tasks, never from the one that is played."""
COLUMNS = ("task", "agent", "trial", "passed", "ended")


def read_trials(path: Path) -> tuple[Trial, ...]:
    """Read a file of trials, in the order of their numbers; a bad line is named."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadUsage(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.",
            hint=f"It is a CSV file with the columns {', '.join(COLUMNS)}.",
        ) from error
    trials = []
    for line, row in enumerate(rows, 2):
        if (
            row.get("passed") not in ("0", "1")
            or row.get("ended") not in ENDED
            or not row.get("task")
            or not row.get("agent")
        ):
            raise BadUsage(
                f"{path}:{line} is not a trial: {dict(row)}.", hint="passed is 0 or 1; ended is done, timeout or error."
            )
        number = int(row["trial"]) if str(row.get("trial", "")).isdigit() else line
        trials.append((row["task"], row["agent"], number, line, row))
    if not trials:
        raise BadUsage(f"{path} holds no trials.", hint=f"Its columns are {', '.join(COLUMNS)}.")
    ordered = sorted(trials, key=lambda one: (one[0], one[1], one[2], one[3]))
    return tuple(
        Trial(task=task, agent=agent, passed=row["passed"] == "1", ended=ENDED[row["ended"]])
        for task, agent, _, _, row in ordered
    )


def score(trials: tuple[Trial, ...], own: Mapping[str, Any] | None = None) -> dict[int, dict[str, Score]]:
    """Score every profile, and, as a column of its own, `adaptive` where the agent begins that landed most."""
    known = profiles(own)
    experienced = replay_by_experience(trials, known["adaptive"], BUDGETS)
    return {
        budget: {
            **{name: replay(trials, policy, budget) for name, policy in known.items()},
            EXPERIENCE: experienced[budget],
        }
        for budget in BUDGETS
    }


def table(scores: Mapping[int, Mapping[str, Score]], stories: int) -> str:
    """Print the profiles beside one another: solved, and attempts in brackets."""
    names = list(scores[1])
    lines = [
        f"Tasks solved of {stories} (attempts used), by attempts allowed",
        "",
        "budget  " + "  ".join(f"{name:>16}" for name in names),
    ]
    for budget, row in scores.items():
        cells = [f"{row[name].solved:>6} ({row[name].attempts:>5})  " for name in names]
        lines.append(f"{budget:>6}  " + "  ".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def measure(*, file: Path | None = None, say: Callable[[str], None]) -> Report:
    """Replay a file of trials, or the sample, under every profile."""
    say(f"Replaying {file or SAMPLE}.")
    trials = read_trials(file or SAMPLE)
    scores = score(trials, _own_profiles())
    budgets = {
        str(budget): {name: {"solved": one.solved, "attempts": one.attempts} for name, one in row.items()}
        for budget, row in scores.items()
    }
    lines = [
        *table(scores, len({(trial.task, trial.agent) for trial in trials})).splitlines(),
        "",
        "What `adaptive` and `experience` know of the agents comes from the other tasks of the file; the rest asks nobody.",
    ]
    return Report(figures={"budgets": budgets}, lines=tuple(lines), targets=())


def _own_profiles() -> Mapping[str, Any]:
    """Return the profiles of the repository around, if there is one."""
    try:
        return read_config(find_repository(Path.cwd()).root).profiles
    except Unavailable:
        return {}
