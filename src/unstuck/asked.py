"""What the user, the configuration, the plan's folder and earlier runs ask of a run."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from unstuck.adapters.policies import profile
from unstuck.adapters.sqlite import SqliteJournal
from unstuck.adapters.states.spec_folder import SpecFolder
from unstuck.config import Config
from unstuck.core.event import Options
from unstuck.core.experience import Experience, Record
from unstuck.core.policy import Policy, limited
from unstuck.core.spec_folder import Settings
from unstuck.core.state import fold
from unstuck.ports import Agent, PlanFile


def _nobody(_text: str) -> None:
    """Hear nothing."""


def spec_folder(plan_file: PlanFile, told: Callable[[str], None] = _nobody) -> SpecFolder | None:
    """Return the folder of a spec whose files are kept up with the plan; None for any other plan."""
    return SpecFolder(path=plan_file.path.parent, told=told) if plan_file.spec_folder else None


def asked_by(plan_file: PlanFile) -> Settings:
    """Return what the plan's own state file asks for."""
    folder = spec_folder(plan_file)
    return folder.settings() if folder is not None else Settings(limits={})


def resolved(options: Options, config: Config, asked: Settings) -> Options:
    """Write down what the profile says where the user said nothing; a profile that does not exist is refused here."""
    policy = policy_of(options, config, asked)
    return replace(
        options, on_stuck=policy.on_stuck, max_attempts=policy.limits.attempts, siblings_first=policy.siblings_first
    )


def policy_of(options: Options, config: Config, asked: Settings) -> Policy:
    """Return the run's profile with what the user said about it, and the plan's own state file."""
    policy = profile(options.profile, config.profiles)
    limits = replace(policy.limits, **asked.limits)
    if options.max_attempts:
        limits = replace(limits, attempts=options.max_attempts)
    return replace(
        limited(policy, limits),
        on_stuck=options.on_stuck or policy.on_stuck,
        land_unverified=config.verify.unverified == "land",
    )


def unpriced(agents: Mapping[str, Agent], budget_usd: float | None) -> tuple[str, ...]:
    """Say whose costs a budget cannot see: unknown is not nothing."""
    silent = [name for name, agent in agents.items() if not agent.reports_cost]
    if budget_usd is None or not silent:
        return ()
    return (f"The budget of ${budget_usd:.2f} cannot be kept for {', '.join(silent)}: it does not say what it costs.",)


def experience_of(journal: SqliteJournal) -> Experience:
    """Count how the attempts of all earlier runs in this repository ended, agent by agent."""
    counts: dict[str, list[int]] = {}
    for run in journal.runs():
        for task in fold(journal.read(run)).tasks.values():
            for attempt in task.attempts:
                landed = attempt is task.attempts[-1] and task.status == "complete"
                if landed or (attempt.failure is not None and attempt.failure.charged):
                    counts.setdefault(attempt.agent, [0, 0])[0 if landed else 1] += 1
    return Experience(agents={name: Record(landed=landed, failed=failed) for name, (landed, failed) in counts.items()})
