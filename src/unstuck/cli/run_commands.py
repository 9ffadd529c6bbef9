"""Edge: `run`, `go`, `resume` and `demo`: start a run, show it while it works, sum it up."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from unstuck.cli import say, together
from unstuck.cli.plan_commands import concern
from unstuck.cli.run_text import Lines, summary
from unstuck.cli.terminal_text import ending_on_interrupt, first_few, plain, show_step, span, to_width
from unstuck.compat.notices import fresh_start
from unstuck.compat.smart_ralph import RECOVERY
from unstuck.journal.run_state import RunState
from unstuck.model.errors import BadUsage
from unstuck.model.event import Entry, Options, RunResumed
from unstuck.reports.summaries import Summary, run_object

if TYPE_CHECKING:
    from unstuck.app.run import Run
    from unstuck.app.services import Watcher

SHOWN_CONCERNS = 10
STDOUT, STDERR = 1, 2
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
STORED = {
    "parallel": "parallel", "commit": "commit", "on_stuck": "on_stuck", "profile": "profile", "recovery_mode": "profile",
    "max_attempts": "max_attempts", "max_time": "max_time", "quota": "quota", "no_cache": "cache",
}  # fmt: skip
"""Our options that a run keeps, and what they are called in it."""
UNCHECKED = (
    "Nothing here can tell whether it is done, so a person will be asked. "
    "Give a --check, or write the command that must pass into unstuck.toml, as `test` under [checks]."
)
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
agent_option = click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME|COMMAND",
    help="Who does the work; give more to switch between them.",
)
commit_option = click.option(
    "--commit",
    type=click.Choice(["auto", "single", "message-only"]),
    default="auto",
    show_default=True,
    help="What happens to your branch at the end.",
)
profile_option = click.option("--profile", metavar="NAME", help="How to recover; see them with `unstuck policy`.")
STORY = Path(__file__).parents[1] / "catalog" / "demo"
OPENING = """\
A scratch repository at {root}: a small Python project and a plan of five tasks.
The agent is a script. It will lie, crash, break the build and hang; every claim is checked.
"""


class Duration(click.ParamType[float]):
    """A time such as 90s, 15m, 8h or 1.5h."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", str(value).strip())
        if found is None or float(found[1]) <= 0:
            self.fail(f"{value!r} is not a time; write for example 90s, 15m or 8h.", param, ctx)
        return float(found[1]) * UNITS[found[2]]


shown = together(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end."),
    click.option("--quiet", is_flag=True, help="Print nothing while it works."),
)
"""How a run is shown."""
limited = together(
    click.option("--max-attempts", type=click.IntRange(1), help="Charged attempts per task (default: the profile's)."),
    click.option("--max-time", type=Duration(), help="A limit for the whole run, such as 8h."),
    click.option(
        "--budget-usd",
        type=click.FloatRange(min=0, min_open=True),
        help="What the whole run may cost, as far as the agents say.",
    ),
    click.option(
        "--quota",
        type=click.Choice(["wait", "switch", "exit"]),
        default="wait",
        show_default=True,
        help="At a provider's limit: wait for its end, take another agent, or end with code 75.",
    ),
)
"""How much a run may use."""
fresh_option = click.option("--fresh", is_flag=True, help="Set the old state aside and begin anew; commits stay.")


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@agent_option
@click.option(
    "--order",
    type=click.Choice(["given", "experience"]),
    help="Who begins a task: the first agent named, or the one whose work landed most often here (default: as named, until each has 10 attempts).",
)
@click.option("--format", "plan_format", metavar="NAME", help="The plan's format, where it is not recognised.")
@click.option("--parallel", type=click.IntRange(1, 64), help="How many tasks may run side by side (a ceiling).")
@commit_option
@click.option(
    "--on-stuck",
    type=click.Choice(["skip", "halt"]),
    help="Go on around a stuck task, or stop (default: the profile's).",
)
@profile_option
@click.option("--recovery-mode", is_flag=True, help="Repair failures with fix tasks: the profile `fix-tasks`.")
@limited
@click.option(
    "--store", metavar="URL", help="Let a fleet do it: the Postgres that it shares, or `local` for this machine."
)
@click.option(
    "--priority", type=int, help="Whose jobs a fleet does first: the highest (default: 0, or the configuration's)."
)
@click.option("--no-cache", is_flag=True, help="Run every check, though it passed on the same tree before.")
@click.option("--resume", is_flag=True, help="Go on with the unfinished run (the default).")
@click.option(
    "--from", "start_from", metavar="TASK", help="Do TASK and all that follow it in the plan, even what landed before."
)
@fresh_option
@click.option("--accept-plan-change", is_flag=True, help="Go on although the plan's text changed.")
@shown
def run(
    plan: Path, *, agents: tuple[str, ...], plan_format: str | None, parallel: int | None, profile: str | None,
    recovery_mode: bool, store: str | None, priority: int | None, no_cache: bool, resume: bool, start_from: str | None,
    fresh: bool, accept_plan_change: bool, as_json: bool, quiet: bool, **wanted: Any,
) -> int:  # fmt: skip
    """Run PLAN, a file or a spec folder, or go on with its unfinished run."""
    from unstuck.app.open_run import open_run

    if resume and fresh:
        raise click.UsageError("--resume and --fresh exclude each other.")
    if recovery_mode and profile not in (None, RECOVERY):
        raise click.UsageError(f"--recovery-mode is the profile {RECOVERY}; it excludes --profile {profile}.")
    options = Options(agents=(), cache=not no_cache, **wanted)
    asked = replace(options, parallel=parallel or 0, profile=RECOVERY if recovery_mode else profile or "")
    with _progress(quiet=quiet) as progress:
        opened = open_run(
            plan,
            agents=agents,
            options=options,
            parallel=parallel,
            profile=profile,
            recovery_mode=recovery_mode,
            plan_format=plan_format,
            store=store,
            priority=priority,
            watcher=_telling_what_is_not_taken(asked, progress),
        )
        if fresh:
            progress.say(fresh_start(str(plan), options.commit))
        _tell_what_to_know(opened, progress)
        with _signals(opened, progress):
            result = opened.go(fresh=fresh, accept_plan_change=accept_plan_change, start_from=start_from)
    return _told(opened, result, as_json=as_json)


@click.command()
@click.argument("goal")
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CMD",
    help="A command that must hold when it is done; give more for all.",
)
@agent_option
@commit_option
@profile_option
@limited
@fresh_option
@shown
def go(
    goal: str, *, checks: tuple[str, ...], agents: tuple[str, ...], profile: str | None, fresh: bool, as_json: bool,
    quiet: bool, **wanted: Any,
) -> int:  # fmt: skip
    """Reach GOAL: one task without a plan file. The repository's gates decide whether it is done, and every --check."""
    from unstuck.app.init import try_what_fits
    from unstuck.app.open_run import open_goal
    from unstuck.app.services import Watcher
    from unstuck.app.settings import gates

    if not all(check.strip() for check in checks):
        raise click.UsageError("--check needs a command.")
    options = Options(agents=(), **wanted)
    with ending_on_interrupt() as run_stop:
        for note in try_what_fits(Path.cwd(), run_stop, Watcher().activity if quiet else show_step):
            say(to_width(plain(note)), err=True)
    with _progress(quiet=quiet) as progress:
        opened = open_goal(
            goal,
            checks=checks,
            agents=agents,
            options=options,
            profile=profile,
            watcher=_telling_what_is_not_taken(replace(options, profile=profile or ""), progress),
        )
        if not checks and not gates(Path.cwd()):
            progress.say(UNCHECKED)
        _tell_what_to_know(opened, progress)
        with _signals(opened, progress):
            result = opened.go(fresh=fresh)
    return _told(opened, result, as_json=as_json)


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option(
    "--budget-usd", type=click.FloatRange(min=0, min_open=True), help="What the whole run may cost, instead of before."
)
@shown
def resume(run_id: str | None, *, budget_usd: float | None, as_json: bool, quiet: bool) -> int:
    """Go on with the latest run, or the one named. Stuck tasks may be tried as often again."""
    from unstuck.app.open_run import reopen_run

    with _progress(quiet=quiet) as progress:
        opened = reopen_run(run_id, watcher=progress.watcher, budget_usd=budget_usd)
        with _signals(opened, progress):
            result = opened.go()
    return _told(opened, result, as_json=as_json)


@click.command()
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Leave the scratch repository there.")
def demo(keep: Path | None) -> int:
    """See the whole story: a scratch repository, a real plan, and a scripted agent that fails as real ones do."""
    from unstuck.app.open_run import open_run

    with _scratch(keep) as root:
        say(OPENING.format(root=root), err=True)
        with Lines() as progress:  # a story stays on the screen
            opened = open_run(root / "tasks.md", cwd=root, watcher=progress.watcher)
            with _signals(opened, progress):
                result = opened.go()
        say(summary(result))
        say(_closing(root, kept=keep is not None))
        return result.exit_code or 0


def _telling_what_is_not_taken(asked: Options, progress: Lines) -> "Watcher":
    """Watch for a run that goes on: it does so with the options that it began with, and other ones should not vanish."""
    context = click.get_current_context()
    given = [name for name in STORED if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]

    def entry(one: Entry, state: RunState) -> None:
        if isinstance(one.event, RunResumed) and state.started is not None:
            stored = state.started.options
            differ = [name for name in given if getattr(stored, STORED[name]) != getattr(asked, STORED[name])]
            if differ:
                flags = ", ".join(f"--{name.replace('_', '-')}" for name in differ)
                progress.say(f"Not taken, because this run goes on as it began: {flags}. Begin anew with --fresh.")
        progress.watcher.entry(one, state)

    return replace(progress.watcher, entry=entry)


def _progress(*, quiet: bool) -> Lines:
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return Lines(quiet=quiet)
    from unstuck.cli.terminal_board import Board  # rich is heavy

    return Board()


@contextmanager
def _signals(opened: "Run", progress: Lines) -> Iterator[None]:
    """Stop the run politely on the first Ctrl-C, SIGTERM or closed terminal, at once on the second."""

    def ask(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _leave_the_terminal()
        again = opened.run_stop.deadline() is not None
        opened.run_stop.request("Interrupted.", SIGNALS[signal.Signals(number)])
        drain = (
            f"nothing new starts; running sessions get {span(opened.run_stop.drain_seconds)} (limits.drain) to finish"
        )
        drain = "ending everything now" if again else f"{drain}, once more ends them at once"
        try:
            progress.say(f"Stopping: {drain}.")
        except RuntimeError:  # the signal came in the middle of printing, which cannot be entered twice
            os.write(STDERR, f"Stopping: {drain}.\n".encode())

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # nohup has it ignored
    before = {number: signal.signal(number, ask) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave_the_terminal() -> None:
    """Print nowhere from now on: writing to a terminal that was closed fails, and the run still has its work to put away."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (STDOUT, STDERR):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(nowhere, stream)
    os.close(nowhere)


def _tell_what_to_know(opened: "Run", progress: Lines) -> None:
    """Say what a careful reader would ask about the plan, and what the run does not see."""
    concerns = opened.concerns()
    for one in concerns[:SHOWN_CONCERNS]:
        progress.say(f"Worth a look: {concern(one)}")
    if len(concerns) > SHOWN_CONCERNS:
        progress.say(f"And {len(concerns) - SHOWN_CONCERNS} more such remarks: see `unstuck plan`.")
    files = opened.uncommitted()
    if files:
        progress.say(f"Uncommitted and not used by the run, which starts from HEAD: {first_few(files)}")


def _told(opened: "Run", result: Summary, *, as_json: bool) -> int:
    code = result.exit_code or 0
    say(json.dumps(run_object(opened.state, code)) if as_json else summary(result))
    return code


@contextmanager
def _scratch(keep: Path | None) -> Iterator[Path]:
    """Make the scratch repository; remove it afterwards unless it is to be kept."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise BadUsage(f"{keep} is not empty.", hint="Name a folder that does not exist yet.")
    with tempfile.TemporaryDirectory(prefix="unstuck-demo-") as folder:
        os.environ["XDG_STATE_HOME"] = folder  # its slots go with it, and its scripted failures teach no other run
        yield _made(keep or Path(folder) / "cart")


def _closing(root: Path, *, kept: bool) -> str:
    told = subprocess.run(["git", "log", "--oneline", "--graph"], cwd=root, capture_output=True, text=True, check=False)
    look = f"It is all in {root}: try `unstuck show 1.1` and `unstuck log` there.\n"
    again = "Keep it to look around: unstuck demo --keep DIR\n"
    return f"\nWhat is on your branch now:\n{told.stdout}\n{look if kept else again}"


def _made(root: Path) -> Path:
    from unstuck.app.init import begin_repository, require_git

    require_git()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadUsage(
            f"{root} cannot be made: {error.strerror}.", hint="Name a folder that you may write to."
        ) from error
    shutil.copytree(STORY / "project", root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    begin_repository(root, "You", "A cart that can be filled")
    return root
