"""Edge: set up one trial: a repository with a user's belongings, a world, and the agent as a program."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.supervisor.courses import PLANTED
from benchmarks.supervisor.project import Planted, Project
from benchmarks.supervisor.world import World

ROOT = Path(__file__).parents[2]
MARK = "SUPERVISOR_BENCH_TRIAL"
"""Set for the supervisor and inherited by all that it starts: what still has it at the end is an orphan."""
LAUNCHER = """#!{python}
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, {root!r})
from benchmarks.supervisor.agent import main
sys.exit(main({folder!r}, sys.argv[1:]))
"""
NOTES = "Call the printer on Monday.\n" * 40
PRIVATE = "EDITOR=ed\n"
STASHED = "A better beginning.\n"
IDEA = "An idea that is not finished.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One supervisor, one project, one pathology, one seed."""

    supervisor: str
    project: Project
    world: World
    folder: Path

    @property
    def repository(self) -> Path:
        return self.folder / "repo"

    @property
    def agent(self) -> Path:
        """The simulated agent; under this name supervisors that know Claude Code find it on PATH, too."""
        return self.folder / "bin" / "claude"

    @property
    def environment(self) -> dict[str, str]:
        """A user's environment that shares nothing with ours but the tools."""
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "PYTHONHASHSEED") if name in os.environ}
        tools = f"{self.agent.parent}:{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        return {
            **kept,
            "PATH": tools,
            "HOME": str(self.folder / "home"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # what this Python has beside pytest is not the project's
            "ANTHROPIC_API_KEY": "none-is-needed",
            "GIT_CONFIG_NOSYSTEM": "1",
            MARK: str(self.folder),
        }

    def git(self, *arguments: str, where: Path | None = None) -> str:
        """Run git; empty if it fails."""
        done = subprocess.run(
            ("git", *arguments),
            cwd=where or self.repository,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def write(self, path: str, text: str) -> None:
        """Write a file of the repository."""
        target = self.repository / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)


def set_up(trial: Trial) -> None:
    """Make the repository, its origin, the user's belongings and the agent."""
    for name in ("home", "bin", "repo"):
        (trial.folder / name).mkdir(parents=True)
    (trial.folder / "home" / ".gitconfig").write_text(
        "[user]\nname = User\nemail = user@localhost\n[init]\ndefaultBranch = main\n[gc]\nauto = 0\n", encoding="utf-8"
    )
    trial.world.save()
    trial.agent.write_text(
        LAUNCHER.format(python=sys.executable, root=str(ROOT), folder=str(trial.folder)), encoding="utf-8"
    )
    trial.agent.chmod(0o755)
    trial.git("init", "-q", "-b", "main")
    for path, text in trial.project.files({}).items():
        trial.write(path, text)
    if trial.world.pathology in PLANTED:
        planted: Planted = getattr(trial.project, PLANTED[trial.world.pathology])
        text = (
            planted.text.format(counter=str(trial.folder / "counter")) if "{counter" in planted.text else planted.text
        )
        trial.write(planted.path, text)
    trial.write("tasks.md", trial.project.plan())
    trial.commit("Begin")


def belongings(trial: Trial) -> None:
    """Leave what a user has lying about: a branch, a stash, a file outside of git, an ignored one, an origin."""
    trial.git("checkout", "-q", "-b", "keep/idea")
    trial.write("idea.md", IDEA)
    trial.commit("An idea")
    trial.git("checkout", "-q", "main")
    trial.write("README.md", STASHED + trial.project.files({})["README.md"])
    trial.git("stash")
    trial.write("notes.txt", NOTES)
    trial.write(".env.local", PRIVATE)
    trial.git("clone", "-q", "--bare", str(trial.repository), str(trial.folder / "origin.git"), where=trial.folder)
    trial.git("remote", "add", "origin", str(trial.folder / "origin.git"))
    trial.git("fetch", "-q", "origin")
