"""Edge: Look which coding agents are here, read their recorded sessions, and try one on a scratch repository."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.agents import Found, as_json, manifest, read_files, survey
from unstuck.compose.fencing import works_inside
from unstuck.compose.runs import Run, Watcher
from unstuck.config import Config
from unstuck.config_file import read_config
from unstuck.decide import resolved
from unstuck.errors import BadUsage, Unavailable
from unstuck.git import find
from unstuck.journal import Options, asked_by
from unstuck.plans import open_plan


def known_agents(cwd: Path) -> tuple[Found, ...]:
    """Look which coding agents are here: ours, and those of the repository's configuration."""
    return survey(_config(cwd))


def read_session(cwd: Path, name: str, stdout: Path, stderr: Path | None, exit_code: int | None) -> dict[str, Any]:
    """Return what a recorded session says, in the public form."""
    known = manifest(name, _config(cwd).agents)
    if known is None or not known.program:
        raise BadUsage(f"There is no known agent {name!r}.", hint="See them with `unstuck agents`.")
    return as_json(name, read_files(known.output, stdout, stderr, code=exit_code, meanings=known.exit_codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How an agent did with one small task."""

    agent: str
    landed: bool
    end: str
    """Why its session ended, as it was read; empty for an agent whose output is not read."""
    exit_code: int | None
    message: str
    session: str
    cost_usd: float | None
    seconds: float
    sandbox: bool
    """Whether it worked in a sandbox."""


def check_agent(cwd: Path, name: str, watcher: Watcher | None = None) -> Trial:
    """Let the agent do one small task in a scratch repository, with one attempt."""
    config = _config(cwd)
    config = Config(agents=config.agents, limits=config.limits, sandbox=config.sandbox)
    with trial_ground() as plan:
        repository = find(plan.parent)
        plan_file = open_plan(plan, None, root=repository.root)
        wanted = Options(agents=(name,), max_attempts=1, quota="exit")
        options = resolved(wanted, config, asked_by(plan_file))
        run = Run(repository, config, plan_file, options, watcher or Watcher())
        run.go()
        task = run.state.tasks["1.1"]
        outcome = task.current.outcome if task.attempts else None
        return Trial(
            agent=name,
            landed=task.status == "complete",
            end=outcome.end if outcome else "",
            exit_code=outcome.ended.exit_code if outcome else None,
            message=(outcome.message or outcome.ended.tail) if outcome else task.question,
            session=outcome.session if outcome else "",
            cost_usd=task.cost_usd,
            seconds=task.seconds,
            sandbox=works_inside(config, name),
        )


def _config(cwd: Path) -> Config:
    """Return the configuration; outside of a repository, the defaults."""
    try:
        return read_config(find(cwd).root)
    except Unavailable:
        return Config()


PLAN = """# Trial

- [ ] 1.1 Write the file hello.txt
  - Its only line is the word `hello`. Change nothing else.
  - **Files**: `hello.txt`
  - **Verify**: `grep -qx hello hello.txt`
"""
IDENTITY = ("-c", "user.name=unstuck", "-c", "user.email=unstuck@example.invalid", "-c", "commit.gpgSign=false")


@contextmanager
def trial_ground() -> Iterator[Path]:
    """Make the repository; yield its plan, and remove everything afterwards."""
    if shutil.which("git") is None:
        raise Unavailable("git is not on PATH.", hint="Install git 2.38 or newer.")
    with tempfile.TemporaryDirectory(prefix="unstuck-check-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "trial"
        root.mkdir()
        plan = root / "tasks.md"
        plan.write_text(PLAN, encoding="utf-8")
        (root / "readme.txt").write_text("A scratch repository for one trial.\n", encoding="utf-8")
        for arguments in (["init", "--quiet", "-b", "main"], ["add", "-A"], ["commit", "--quiet", "-m", "Begin"]):
            subprocess.run(["git", *IDENTITY, *arguments], cwd=root, check=True, capture_output=True)
        for key, value in (("user.name", "unstuck"), ("user.email", "unstuck@example.invalid")):
            subprocess.run(["git", "config", key, value], cwd=root, check=True, capture_output=True)
        yield plan
