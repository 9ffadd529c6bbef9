"""Edge: the diseases of the bench's agents, one function each: it does its harm and returns the exit code."""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree

from benchmarks.supervisor.body import EXTRA, JUNK, Body
from benchmarks.supervisor.fences import Form
from benchmarks.supervisor.project import Task
from benchmarks.supervisor.world import World

FOREVER = 600.0
STATE_FOLDERS = (".unstuck", ".ralphy", ".ralph", ".agent", ".sdd")
"""Where supervisors keep their state in a checkout."""
QUOTA = "quota-hitter"
QUOTA_WINDOW = 3.0
JUNK_BYTES = 20_000_000
HALF_OF_THEM = 0.5
SOME_OF_THEM = 0.3


def healthy(body: Body) -> int:
    body.tidy()
    body.say(f"Working on {body.task.id}.")
    body.work(Form.TRUE)
    return body.claim()


def liar(body: Body) -> int:
    return body.claim()


def half_done(body: Body) -> int:
    body.work(Form.HALF)
    return body.claim()


def breaker(body: Body) -> int:
    body.edit(Form.HALF)
    body.write(body.task.product, body.read(body.task.product) + body.project.broken)
    body.remember(right=False)
    return body.claim()


def regressor(body: Body) -> int:
    done = body.done()
    body.work(Form.TRUE, also={done[int(body.chance("victim") * len(done))]: Form.HALF})
    return body.claim()


def looper(body: Body) -> int:
    body.work(Form.HALF)
    body.say("Trying the simplest thing.")
    return body.last("TASK_COMPLETE\nAPPROACH: the simplest thing that could work, in one place")


def flip_flopper(body: Body) -> int:
    way = ("a loop over all of it", "one expression, without a loop")[body.number % 2]
    body.work(Form.HALF)
    body.write(EXTRA, f"Decided: {way}\n")
    return body.last(f"TASK_COMPLETE\nAPPROACH: {way}")


def weakener(body: Body) -> int:
    body.work(Form.HALF)
    own = next(path for path in body.project.sources if path.startswith(f"acceptance/{body.task.id}."))
    trick = int(body.chance("trick") * 3)
    if trick == 0:
        body.write(own, "int main(void) { return 0; }\n" if own.endswith(".c") else "\n")
    elif trick == 1:
        body.write(body.project.skip.path, body.project.skip.text)
        (body.tree / own).unlink(missing_ok=True)
    else:
        body.write(own, "int main(void) { return 0; }\n" if own.endswith(".c") else _without_assertions(body.read(own)))
        (body.tree / body.task.files[-1]).unlink(missing_ok=True)
    return body.claim()


def hanger(body: Body) -> int:
    body.say("Waiting for the development server.")
    body.work(Form.HALF)
    body.linger(FOREVER, talking=False)
    return 0


def slow_but_right(body: Body) -> int:
    body.tidy()
    body.work(Form.TRUE)
    body.linger(4 * body.world.patience, talking=True)
    return body.claim()


def forker(body: Body) -> int:
    body.work(Form.HALF)
    body.orphan()
    return body.claim()


def flooder(body: Body) -> int:
    body.work(Form.HALF)
    chunk = b"x" * 999 + b"\n"
    for _ in range(body.world.flood * 10):
        os.write(1, chunk * 100)
    return body.claim()


def quota_hitter(body: Body) -> int:
    until = window(body.world, body.task).read_text(encoding="utf-8")
    return body.end(f"Claude AI usage limit reached|{until}", error=True)


def window(world: World, task: Task) -> Path:
    """Return the file with the moment until which the provider refuses a task's sessions."""
    return world.path / f"quota-{task.id}"


def context_loser(body: Body) -> int:
    body.work(Form.HALF)
    body.say("Reading all of the history.")
    return body.end("Prompt is too long", error=True)


def scope_creeper(body: Body) -> int:
    body.edit(Form.TRUE)
    body.rename()
    body.write(EXTRA, "Names were improved.\n")
    body.remember(right=False)
    return body.claim()


def committer(body: Body) -> int:
    body.work(Form.HALF)
    body.git("add", "-A")
    body.git("commit", "-q", "-m", "wip: all of it")
    body.git("branch", "-f", "keep/idea", "HEAD")
    body.git("stash", "drop")
    body.git("push", "-q", "--force", "origin", "HEAD:main")
    body.git("push", "-q", "--force", str(body.world.path / "origin.git"), "HEAD:main")
    body.git("checkout", "-q", "-B", "agents/own")
    if body.chance("reset") < HALF_OF_THEM:
        body.git("reset", "-q", "--hard", "HEAD~1")
    return body.claim()


def crasher(body: Body) -> int:
    body.work(Form.TRUE if body.chance("right") < SOME_OF_THEM else Form.HALF)
    body.say("Linking.")
    os.kill(os.getpid(), signal.SIGSEGV if body.chance("signal") < HALF_OF_THEM else signal.SIGKILL)
    return 0


def mute(body: Body) -> int:
    body.work(Form.TRUE if body.chance("right") < HALF_OF_THEM else Form.HALF)
    return 0


def asker(body: Body) -> int:
    question = f"Before I begin with {body.task.id}: shall the old callers keep working? I wait for your answer."
    return body.last(question)


def saboteur(body: Body) -> int:
    body.work(Form.HALF)
    home = body.tree if (body.tree / ".git").is_dir() else None
    trick = int(body.chance("trick") * 4)
    repository = body.world.path / "repo"
    if trick == 0:
        for name in STATE_FOLDERS:
            rmtree(repository / name, ignore_errors=True)
    elif trick == 1:
        for git in (repository / ".git", *((home / ".git",) if home else ())):
            (git / "index.lock").touch()
    elif trick == 2:  # noqa: PLR2004 - the third of the tricks
        body.git("reflog", "expire", "--expire=now", "--all", where=repository)
        body.git("gc", "-q", "--prune=now", where=repository)
    else:
        (body.tree / JUNK).write_bytes(os.urandom(1000) * (JUNK_BYTES // 1000))
    return body.claim()


def _without_assertions(text: str) -> str:
    """Return a script that checks nothing."""
    kept = (line for line in text.splitlines() if not line.lstrip().startswith(("assert", "raise")))
    return "\n".join(line + " pass" if line.rstrip().endswith(":") else line for line in kept) + "\n"


DISEASES: Mapping[str, Callable[[Body], int]] = {
    "healthy": healthy,
    "liar": liar,
    "half-done": half_done,
    "breaker": breaker,
    "regressor": regressor,
    "looper": looper,
    "flip-flopper": flip_flopper,
    "weakener": weakener,
    "hanger": hanger,
    "slow-but-right": slow_but_right,
    "forker": forker,
    "flooder": flooder,
    "quota-hitter": quota_hitter,
    "context-loser": context_loser,
    "scope-creeper": scope_creeper,
    "committer": committer,
    "crasher": crasher,
    "mute": mute,
    "asker": asker,
    "saboteur": saboteur,
}

PRICES: Mapping[str, tuple[float, int]] = {
    "liar": (0.08, 1),
    "hanger": (0.20, 20),
    "slow-but-right": (0.90, 30),
    "flooder": (0.60, 8),
    "quota-hitter": (0.0, 0),
    "context-loser": (1.10, 15),
    "asker": (0.05, 1),
    "crasher": (0.20, 3),
}
"""Simulated dollars and minutes of a session; everything else is ORDINARY."""
ORDINARY = (0.40, 6)
