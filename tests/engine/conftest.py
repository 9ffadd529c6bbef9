"""A small world in which supervisors die: a repository with a plan, an agent that plays a script, and a busy user.

Task 1.1 breaks the build, is rolled back and done again; 1.2 and 1.3 run side by side. Nothing depends on time: the
agents of those two wait for each other, and the check of 1.3 waits until 1.2 has landed, so that 1.3 is always the one
that is merged and verified again.
"""

import contextlib
import itertools
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fork_server import ForkServer
from tests.waiting import wait_until

from unstuck.journal.run_state import RunState, fold
from unstuck.journal.sqlite import COVERED, SqliteJournal
from unstuck.model.event import Entry, RunResumed

GIT = shutil.which("git") or ""
PATIENCE = 60.0

PLAN = """\
# Tasks: three letters

- [ ] 1.1 Write a
  - **Verify**: `reach check && test -f a`
  - **Commit**: `feat: write a`
- [ ] 1.2 [P] Write b
  - **Files**: `b`
  - **Verify**: `test -f b`
  - **Commit**: `feat: write b`
- [ ] 1.3 [P] Write c
  - **Files**: `c`
  - **Verify**: `test -f c && landed 'feat: write b'`
  - **Commit**: `feat: write c`
"""

CONFIG = """\
agent = ["play"]
parallel = 2
[workspace]
setup = ["reach set-up"]
[checks]
build = "reach gate; test ! -e broken"
"""

COMMANDS = {
    # The agent. What it leaves half done when it dies in the first part is never green.
    "play": """\
case "$UNSTUCK_TASK $UNSTUCK_ATTEMPT" in
"1.1 1") touch broken; setsid sleep 1000 & reach agent; echo wrong >a ;;
"1.1 2") reach second-attempt; echo a >a ;;
"1.2 1") meet b c; echo b >b ;;
"1.3 1") meet c b; reach side-by-side; echo c >c ;;
"2.3 1") echo half >d; printf 'Task 2.3: Write d FAILED\\n- Error: File not found: d\\n' ;;
"2.3.1 1") reach fix; await-progress; echo whole >>d ;;
"2.3 2") reach after-fix ;;
"2.4 1") ;;
"3.1 1") ask SPLIT_TASK One Two ;;
"3.1.1 1") echo one >p ;;
"3.1.2 1") echo two >>p ;;
"3.1 2") ;;
"3.2 1") echo half >q; ask ADD_PREREQUISITE First ;;
"3.2.1 1") echo first >p ;;
"3.2 2") echo whole >>p ;;
"3.3 1") echo whole >p; ask ADD_FOLLOWUP Later ;;
"3.3.1 1") echo later >>p ;;
*) exit 1 ;;
esac
""",
    # The supervisor dies here, if this is the place; with `+shim` also the process between it and us.
    "reach": """\
case "$DIE_AT" in
"$1") kill -9 "$SUPERVISOR" ;;
"$1+shim")
    kill -STOP "$SUPERVISOR"
    kill -9 "$(cut -d ' ' -f 4 "/proc/$PPID/stat")" "$SUPERVISOR" ;;
*) exit 0 ;;
esac
exec sleep 1000
""",
    # Where the supervisor is to die at a later write of the progress file: stay until there was an earlier one.
    "await-progress": """\
case "$DIE_AT" in *" rename ."*" 2") ;; *) exit ;; esac
for _ in $(seq 1000); do grep -q failed "$WORLD/specs/demo/.progress.md" && exit; sleep 0.03; done
echo "no progress was written"; exit 1
""",
    # Ask for a change of the plan: its type, then the titles of the tasks.
    "ask": """\
sort=$1; shift
printf 'TASK_MODIFICATION_REQUEST\\n{"type": "%s", "originalTaskId": "%s", "reasoning": "so", "proposedTasks": [' "$sort" "$UNSTUCK_TASK"
between=
for title do
    printf '%s"- [ ] 9 %s\\\\n  - **Do**: it\\\\n  - **Files**: p\\\\n  - **Done when**: it is\\\\n  - **Verify**: `x`\\\\n  - **Commit**: feat(p): %s"' "$between" "$title" "$title"
    between=', '
done
echo ']}'
""",
    # Wait until the other session has begun, too, now or in a supervisor's earlier life.
    "meet": """\
mkdir -p "$MEETING" && touch "$MEETING/$1"
for _ in $(seq 1000); do test -e "$MEETING/$2" && exit; sleep 0.03; done
echo "$2 never came"; exit 1
""",
    # Say that we are here, and stay until we are let go.
    "hold": """\
mkdir -p "$MEETING" && touch "$MEETING/held"
for _ in $(seq 2000); do test -e "$MEETING/free" && exit; sleep 0.03; done
echo "nobody let us go"; exit 1
""",
    "landed": f"""\
for _ in $(seq 1000); do {GIT} -C "$WORLD" log --format=%s "unstuck/$UNSTUCK_RUN" | grep -qx "$1" && exit; sleep 0.03; done
echo "$1 never landed"; exit 1
""",
}

GIT_FACTS = {
    "run-branch": "update-ref refs/heads/unstuck/*",
    "slot-made": "update-ref --stdin* refs/unstuck/slots/*/base *",
    "tree-kept": "update-ref --stdin* refs/unstuck/slots/w*",
    "landing": "update-ref --stdin* refs/heads/unstuck/*",
    "snapshot": "update-ref refs/unstuck/snapshots/*",
    "plan-commit": "update-ref * HEAD *",
    "second-slot-filled": "read-tree --reset * in w1",
    "slot-filled": "read-tree --reset *",
    "plan-tree": "read-tree *",
    "slot-emptied": "clean *",
    "rollback": "checkout *",
    "work-staged": "add *",
    "tree-written": "write-tree *",
    "commit-written": "commit-tree *",
    "plan-written": "hash-object *",
    "plan-staged": "update-index * --index-info *",
    "index-refreshed": "update-index * --refresh *",
    "siblings-merged": "merge-tree *",
    "run-merged": "merge --ff-only *",
    "question": "*",
}
"""What a git call of the supervisor is for, and how it is recognised: a shell pattern over arguments, stdin of
`update-ref` and worktree. The first that fits holds. A question changes nothing."""

COUNTING_GIT = f"""\
#!/bin/sh
# Git as the supervisor calls it: every call is a place to die, before it and while it works.
if [ "$PPID" = "$SUPERVISOR" ]; then
    skip= name= words=
    for word do
        if [ "$skip" ]; then skip=; continue; fi
        case "$name$word" in -c) skip=yes ;; *) name=${{name:-$word}} words="$words$word " ;; esac
    done
    if [ "${{words#update-ref --stdin}}" != "$words" ]; then
        mkdir -p "$CALLS"
        cat >"$CALLS/stdin $$"
        exec <"$CALLS/stdin $$"
        words="$words$(tr '\\0\\n' '  ' <"$CALLS/stdin $$")"
        rm "$CALLS/stdin $$"
    fi
    words="$words in ${{GIT_WORK_TREE##*/}}"
    case "$words" in
{"".join(f"    {pattern.replace(' ', chr(92) + ' ')}) fact={fact} ;;{chr(10)}" for fact, pattern in GIT_FACTS.items())}\
    esac
    number=1
    test -d "$CALLS" || mkdir -p "$CALLS"
    # Look first, without a process for each number; who is given it, only a folder that was not there can tell.
    while test -d "$CALLS/$fact $number" || ! mkdir "$CALLS/$fact $number" 2>/dev/null; do number=$((number + 1)); done
    case "$DIE_AT" in
    "before git $fact $number") kill -9 "$SUPERVISOR"; exit 1 ;;
    "during git $fact $number") kill -9 "$SUPERVISOR" ;;
    "inside git $fact $number")
        # Git dies, too, and leaves what it leaves in the middle of its work.
        kill -9 "$SUPERVISOR"
        case "$name" in
        update-ref) for word do case "$word" in refs/*) mkdir -p ".git/${{word%/*}}"; touch ".git/$word.lock"; break ;; esac; done ;;
        read-tree | add) touch "$GIT_INDEX_FILE.lock" ;;
        checkout) touch "$GIT_INDEX_FILE.lock" "$GIT_DIR/HEAD.lock" ;;
        merge | commit) touch .git/index.lock ;;
        esac
        exit 1 ;;
    "late git $fact $number")
        # Git is slow, and comes to life only when the next supervisor has begun.
        kill -9 "$SUPERVISOR"
        for _ in $(seq 1000); do test -e "$CALLS/go" && break; sleep 0.03; done ;;
    esac
fi
exec {GIT} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run came to, as far as it may not depend on anybody's death."""

    exit_code: int
    tasks: Mapping[str, tuple[str, int, int, str]]
    """Status, attempts, how many of them were charged, and the commit that was recorded."""
    landed: tuple[str, ...]
    """Subject, task and attempt of every landed commit on the run's branch, oldest first."""
    tree: str
    """What is in the last landed commit."""
    plan: str
    phases: tuple[str, ...]
    user_log: str
    user_tree: str


@dataclass(frozen=True, slots=True)
class World:
    """One repository, its user and the commands that its agents and checks use."""

    root: Path
    env: Mapping[str, str] = field(repr=False)
    fork_server: ForkServer = field(repr=False)

    # --- supervisors -------------------------------------------------------------------------------

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start the command line in the repository."""
        command = [sys.executable, "-m", "unstuck", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env={**self.env, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def unstuck(self, *arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Run the command line to its end."""
        return self.fork_server.run(arguments, cwd=self.root, env={**self.env, **(env or {})})

    def live(self, commit: str, die_at: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a supervisor that dies at the place, or to the end if there is none."""
        return self.doomed("tasks.md", commit, die_at)

    def doomed(self, plan: str, commit: str, die_at: str) -> "subprocess.CompletedProcess[str]":
        """Run a plan with a supervisor that dies at the place."""
        env = {**self.env, "DIE_AT": die_at}
        return self.fork_server.run([plan, commit], cwd=self.root, env=env, module="tests.engine.doomed")

    def die(self, place: str, commit: str) -> None:
        """Run a supervisor that dies at the place; it is an error if it never comes there."""
        done = self.live(commit, place)
        assert done.returncode == -signal.SIGKILL, f"{place!r} was never reached: {done.returncode}\n{done.stderr}"

    def go_on(self, commit: str) -> "subprocess.CompletedProcess[str]":
        """Take the run up again as a user would: `resume` if it began, else `run`."""
        arguments = ["resume"] if self.runs() else ["run", "tasks.md", "--commit", commit]
        return self.unstuck(*arguments, "--quiet")

    def go_on_together_with_late_git(self) -> "subprocess.CompletedProcess[str]":
        """Take the run up again; a git command of the dead supervisor comes to life when the new one is at work."""
        started = self.start("resume", "--quiet")
        wait_until(lambda: any(isinstance(entry.event, RunResumed) for entry in self.entries()), "the next supervisor")
        Path(self.env["CALLS"], "go").touch()
        return finished(started)

    # --- what there is -----------------------------------------------------------------------------

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            [GIT, *arguments], cwd=self.root, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def runs(self) -> tuple[str, ...]:
        with self._journal() as journal:
            return journal.runs() if journal else ()

    def entries(self) -> tuple[Entry, ...]:
        with self._journal() as journal:
            return tuple(journal.read(journal.runs()[-1])) if journal and journal.runs() else ()

    def lose_what_was_not_forced(self) -> int:
        """Take the last facts that nothing forced to the disk, as a power cut does; return how many. A heartbeat forces all."""
        with self._journal() as journal:
            owner = journal.owner() if journal else None
            beaten = owner.heartbeat if owner else 0.0
        last = reversed(self.entries())
        unforced = list(itertools.takewhile(lambda one: one.event.type in COVERED and one.at > beaten, last))
        with sqlite3.connect(self.root / ".git" / "unstuck" / "journal.db") as connection:
            (kept,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'events_last'").fetchone()
            connection.execute("DROP TRIGGER events_last")
            connection.executemany("DELETE FROM events WHERE seq = ?", [(one.seq,) for one in unforced])
            connection.execute(kept)
        connection.close()
        return len(unforced)

    def state(self) -> RunState:
        return fold(self.entries())

    def owner(self) -> int | None:
        """Return the pid of the supervisor that has the claim, dead or alive."""
        with self._journal() as journal:
            owner = journal.owner() if journal else None
            return owner.pid if owner else None

    def git_calls(self) -> frozenset[str]:
        """Return what the git calls were for, each with its number."""
        return frozenset(path.name for path in Path(self.env["CALLS"]).iterdir())

    def fsck(self) -> str:
        """Return what git has to complain about."""
        done = subprocess.run(
            [GIT, "fsck", "--full", "--no-dangling", "--no-progress"],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr + (f"exit code {done.returncode}" if done.returncode else "")

    def litter(self) -> tuple[str, ...]:
        """List locks and half-written files."""
        folders = (self.root.glob("*"), (self.root / ".git").rglob("*"), (self.root / ".unstuck").rglob("*"))
        found = [str(path.relative_to(self.root)) for folder in folders for path in folder]
        return tuple(name for name in found if name.endswith((".lock", ".part", ".tmp")) or ".unstuck-tick-" in name)

    def await_no_processes(self, *, guarded: bool) -> None:
        """Wait until nothing of the run is left; unguarded processes stay until the next supervisor ends them."""
        if guarded:
            wait_until(lambda: not self.processes(), "the end of the dead supervisor's processes")
        else:
            assert self.processes()

    def end_processes(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def commit(self, files: Mapping[str, str]) -> None:
        """Replace files on the user's branch, and nothing else of what the user is about."""
        for name, text in files.items():
            (self.root / name).write_text(text)
        self.git("add", "--", *files)
        self.git("commit", "--quiet", "--only", "-m", "change", "--", *files)

    def await_held(self) -> None:
        """Wait until an agent or a check is held."""
        wait_until(Path(self.env["MEETING"], "held").exists, "somebody to be held")

    def let_go(self) -> None:
        """Let whoever is held go on, now and later."""
        Path(self.env["MEETING"], "free").touch()

    def processes(self) -> tuple[int, ...]:
        """List the processes that belong to a run in this world and are not a supervisor."""
        mark, inside = b"UNSTUCK_RUN=", os.fsencode(f"WORLD={self.root}")
        return tuple(
            int(place.name)
            for place in Path("/proc").glob("[0-9]*")
            if inside in (environment := _environment(place)) and any(part.startswith(mark) for part in environment)
        )

    def result(self, exit_code: int) -> Result:
        state = self.state()
        assert state.started is not None
        trailers = [f"%(trailers:key=Unstuck-{key},valueonly,separator=%x2C)" for key in ("Task", "Attempt")]
        form = "--format=" + "|".join(["%H", "%T", "%s", *trailers])
        branch = f"{state.started.base}..unstuck/{state.started.run}"
        commits = [line.split("|", 2) for line in self.git("log", "--reverse", form, branch).splitlines()]
        landed = {commit: (tree, text) for commit, tree, text in commits if not text.endswith("||")}
        return Result(
            exit_code=exit_code,
            tasks={
                name: (task.status, len(task.attempts), task.charged, landed.get(task.commit or "", ("", ""))[1])
                for name, task in state.tasks.items()
            },
            landed=tuple(text for _, text in landed.values()),
            tree=list(landed.values())[-1][0],
            plan=(self.root / "tasks.md").read_text(),
            phases=tuple(sorted(path.name for path in (self.root / ".unstuck" / "phases").iterdir())),
            user_log=self.git("log", "--reverse", "--format=%s"),
            user_tree=self.git("rev-parse", "HEAD^{tree}"),
        )

    def _journal(self) -> "_Opened":
        return _Opened(self.root / ".git" / "unstuck" / "journal.db")


@dataclass(slots=True)
class _Opened:
    path: Path
    journal: SqliteJournal | None = None

    def __enter__(self) -> SqliteJournal | None:
        self.journal = SqliteJournal(self.path) if self.path.exists() else None
        return self.journal

    def __exit__(self, *_: object) -> None:
        if self.journal is not None:
            self.journal.close()


def _environment(place: Path) -> tuple[bytes, ...]:
    try:
        return tuple((place / "environ").read_bytes().split(b"\0"))
    except OSError:
        return ()


# --- making worlds -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folders for PATH: `plain`, and `counting`, which has our git, too."""
    folder = tmp_path_factory.mktemp("commands")
    for kind in ("plain", "counting"):
        for name, text in COMMANDS.items():
            _executable(folder / kind / name, f"#!/bin/sh\n{text}")
    _executable(folder / "counting" / "git", COUNTING_GIT)
    (folder / "gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")
    return folder


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, commands: Path, fork_server: ForkServer) -> World:
    """Make a repository whose user is in the middle of something: staged, changed and new files, a stash, a branch."""
    root = tmp_path_factory.mktemp("template") / "repo"
    root.mkdir()
    world = World(root, _environment_of(root, commands), fork_server)
    files = {"tasks.md": PLAN, "unstuck.toml": CONFIG, "one": "1\n", "two": "2\n", "three": "3\n"}
    world.git("init", "--quiet", "--template=")
    for name, text in files.items():
        (root / name).write_text(text)
    world.git("add", "-A")
    world.git("commit", "--quiet", "-m", "first")
    world.git("branch", "side")
    (root / "one").write_text("stashed\n")
    world.git("stash", "--quiet")
    (root / "one").write_text("staged\n")
    (root / "two").write_text("staged\n")
    world.git("add", "one", "two")
    (root / "two").write_text("changed after staging\n")
    (root / "three").write_text("changed\n")
    (root / "new\nfile").write_text("untracked\n")
    return world


@pytest.fixture(scope="session")
def make_world(template: World, commands: Path, fork_server: ForkServer) -> Callable[..., World]:
    """Return a function that makes a fresh copy of the template."""

    def make(folder: Path, *, counting: bool = False) -> World:
        root = folder / "repo"
        shutil.copytree(template.root, root, symlinks=True)
        world = World(root, _environment_of(root, commands, counting=counting), fork_server)
        world.git("update-index", "-q", "--refresh", "--", "tasks.md", "unstuck.toml")
        return world

    return make


@pytest.fixture
def world(tmp_path: Path, make_world: Callable[..., World]) -> Iterator[World]:
    """Make a world; whatever still runs in it afterwards is ended, so that a failing test leaves nothing."""
    made = make_world(tmp_path)
    yield made
    made.end_processes()


@pytest.fixture
def poll() -> Callable[[Callable[[], object], str], None]:
    """Return a function that waits until something is true."""
    return wait_until


def finished(started: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    """Wait for the end of a command."""
    out, err = started.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(started.args, started.returncode, out, err)


def _executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _environment_of(root: Path, commands: Path, *, counting: bool = False) -> dict[str, str]:
    """Return an environment of our own making: nothing of whoever runs the tests."""
    return {
        "PATH": f"{commands / ('counting' if counting else 'plain')}:{os.environ['PATH']}",
        "HOME": str(commands),
        "XDG_STATE_HOME": str(root.parent / "state"),
        "GIT_CONFIG_GLOBAL": str(commands / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        "NO_COLOR": "1",
        "WORLD": str(root),
        "MEETING": str(root.parent / "meeting"),
        "CALLS": str(root.parent / "calls"),
    }
