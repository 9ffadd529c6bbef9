"""A small world with a fleet: one Postgres, one bare repository, a user's checkout, and workers in processes of their own.

Nothing depends on time: agents say where they are in files, and wait for files.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.waiting import wait_until

psycopg = pytest.importorskip("psycopg", reason="a fleet needs psycopg: pip install 'unstuck[fleet]'")

from benchmarks.postgres_server import NoPostgres, Server, shared  # noqa: E402  # after the skip
from tests.fork_server import BackgroundProcess, ForkServer  # noqa: E402

from unstuck.fleet.postgres_journal import PostgresJournal  # noqa: E402
from unstuck.journal.run_state import RunState, fold  # noqa: E402

GIT = shutil.which("git") or ""
PATIENCE = 240.0
LEASE = "2"

PLAN = """\
# Tasks: two letters

- [ ] 1.1 Write a
  - **Verify**: `reach check && grep -qx a a`
  - **Commit**: `feat: write a`
- [ ] 1.2 Write b
  - **Verify**: `grep -qx b b && grep -qx a a`
  - **Commit**: `feat: write b`
"""

CONFIG = """\
agent = ["play"]
parallel = 2
[verify]
detect = false
[limits]
drain = 5
"""

COMMANDS = {
    # The agent: what it leaves half done is never green, and a later session of the same attempt finds it.
    "play": """\
case "$UNSTUCK_TASK" in
1.1) echo half >a; reach agent; echo a >a ;;
1.2) echo b >b; reach second-agent ;;
*) echo "$UNSTUCK_TASK" >"$UNSTUCK_TASK" ;;
esac
echo "session $UNSTUCK_SESSION" >>"$MET/sessions"
echo "the token is ${WORKERS_TOKEN:-none}"
reach late-agent
""",
    # The worker that works here, or the supervisor, dies or freezes, if this is the place. Once: who comes after it goes on.
    "reach": """\
test "$DIE_AT" = "$1" || test "$FREEZE_AT" = "$1" || test "$HOLD_AT" = "$1" || exit 0
mkdir "$MET/$1" 2>/dev/null || exit 0
test "$HOLD_AT" != "$1" || { while ! test -e "$MET/free"; do sleep 0.02; done; exit 0; }
test "$DIE_AT" != "$1" || { kill -9 "$MEMBER_PID"; exec sleep 1000; }
kill -STOP "$MEMBER_PID"
""",
}

DYING_GIT = f"""\
#!/bin/sh
# Git as a worker or a supervisor calls it: every call of the other side is a place to die, before it, in it and after it.
skip= name=
for word do
    if [ "$skip" ]; then skip=; continue; fi
    case "$word" in -c) skip=yes ;; *) name=$word; break ;; esac
done
if [ "$PPID" = "$MEMBER_PID" ]; then case "$name" in push | fetch | ls-remote)
    number=1
    while test -d "$MET/$ROLE $name $number" || ! mkdir "$MET/$ROLE $name $number" 2>/dev/null; do
        number=$((number + 1))  # looked for first: each try to make it is a process
    done
    case "$DIE_AT $name $number" in
    "before git $name $number $name $number") kill -9 "$MEMBER_PID"; exit 1 ;;
    "after git $name $number $name $number") {GIT} "$@"; kill -9 "$MEMBER_PID"; exit 1 ;;
    esac
    case "$FREEZE_AT $name $number" in
    "before git $name $number $name $number") kill -STOP "$MEMBER_PID"; while ! test -e "$MET/thawed"; do sleep 0.02; done ;;
    "after git $name $number $name $number") {GIT} "$@"; code=$?; kill -STOP "$MEMBER_PID"; exit $code ;;
    esac
    test ! -e "$MET/cut-off" || {{ echo "fatal: unable to access the remote" >&2; exit 128; }} ;;
esac; fi
exec {GIT} "$@"
"""


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    try:
        with shared(folder / "postgres") as server:
            yield server
    except NoPostgres as error:
        pytest.skip(f"no Postgres can be run here: {error}")


@pytest.fixture
def store(postgres: Server) -> str:
    """Make an empty database, and return its address."""
    return make_store(postgres)


def make_store(server: Server) -> str:
    name = f"t{uuid4().hex}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.url(name)


@pytest.fixture(scope="session")
def networks(postgres: Server) -> "Iterator[Networks | None]":
    """Make a network for each member of a fleet, all with a way to Postgres; None where that is not allowed."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        yield None
        return
    mark = os.getpid() % 60000
    made = Networks(tuple(f"u{mark}{role}" for role in "swx"), f"10.{200 + mark // 250 % 50}.{mark % 250}")
    try:
        if made.make():
            with relayed(postgres.port, f"{made.prefix}.1") as (_, port):
                yield replace(made, port=port)
        else:
            yield None
    finally:
        made.remove()


@dataclass(frozen=True, slots=True)
class Networks:
    """Namespaces on one bridge: of supervisors, and of two workers."""

    names: tuple[str, ...]
    prefix: str
    port: int = 0
    """Where Postgres is, at the bridge's own address."""

    def make(self) -> bool:
        bridge = f"b{self.names[0]}"
        steps = [
            f"ip link add {bridge} type bridge",
            f"ip addr add {self.prefix}.1/24 dev {bridge}",
            f"ip link set {bridge} up",
        ]
        for number, name in enumerate(self.names, 2):
            steps += [
                f"ip netns add {name}", f"ip link add {name}h type veth peer name {name}n netns {name}",
                f"ip link set {name}h master {bridge} up", f"ip netns exec {name} ip link set lo up",
                f"ip netns exec {name} ip addr add {self.prefix}.{number}/24 dev {name}n",
                f"ip netns exec {name} ip link set {name}n up",
            ]  # fmt: skip
        return all(subprocess.run(step.split(), capture_output=True, check=False).returncode == 0 for step in steps)

    def remove(self) -> None:
        for step in (*(f"ip netns delete {name}" for name in self.names), f"ip link delete b{self.names[0]}"):
            subprocess.run(step.split(), capture_output=True, check=False)


@contextlib.contextmanager
def relayed(target: int, host: str = "127.0.0.1") -> "Iterator[tuple[subprocess.Popen[str], int]]":
    """Put a relay before Postgres; return it and its port."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("relay.py")), host, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as relay:
        assert relay.stdout is not None
        try:
            yield relay, int(relay.stdout.readline())
        finally:
            relay.kill()


@dataclass(slots=True)
class Town:
    """Everything of one test."""

    root: Path
    remote: Path
    url: str
    env: Mapping[str, str] = field(repr=False)
    networks: tuple[str, ...] = ()
    """Whose member is where: supervisors, and workers in turn."""
    fork_server: ForkServer = field(repr=False, kw_only=True)
    started: list[BackgroundProcess] = field(default_factory=list, repr=False)

    @property
    def met(self) -> Path:
        return Path(self.env["MET"])

    def start(self, module: str, *arguments: str, env: Mapping[str, str], cwd: Path | None = None) -> BackgroundProcess:
        """Start a module with its arguments."""
        process = self.fork_server.start(
            module,
            arguments,
            env={**self.env, **env},
            cwd=cwd or self.root,
            log=self.met / f"log-{len(self.started)}",
            network=env.get("IN_NETWORK") or self._network(env["ROLE"]),
        )
        self.started.append(process)
        return process

    def _network(self, role: str) -> str:
        if not self.networks:
            return ""
        workers = sum("worker" in process.arguments for process in self.started)
        return self.networks[0 if role == "supervisor" else 1 + workers % 2]

    def worker(self, *options: str, **env: str) -> BackgroundProcess:
        fixed = ("worker", "--store", self.url, "--repo", str(self.remote), "--agents", "play", "--lease", LEASE)
        return self.start("unstuck", *fixed, *options, env={"ROLE": "worker", **env})

    def supervisor(self, *options: str, cwd: Path | None = None, **env: str) -> BackgroundProcess:
        fixed = ("run", "tasks.md", "--store", self.url)
        return self.start("unstuck", *fixed, *options, cwd=cwd, env={"ROLE": "supervisor", **env})

    def ended(self, process: BackgroundProcess) -> int:
        """Wait for a process; what it said is told if it takes too long."""
        try:
            return process.wait(PATIENCE)
        except TimeoutError:
            pytest.fail(f"Process {process.pid} did not end.\n{self.said()}")

    def said(self) -> str:
        logs = sorted(log for log in self.met.glob("log-*") if not log.suffix)
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')}" for log in logs)

    def connect(self) -> Any:
        return psycopg.connect(self.url, autocommit=True)

    def query(self, statement: str) -> list[tuple[object, ...]]:
        with self.connect() as connection:
            rows: list[tuple[object, ...]] = connection.execute(statement.encode()).fetchall()
            return rows

    def journal(self, checkout: str = "nobody") -> PostgresJournal:
        return PostgresJournal(self.url, git(self.root, "rev-list", "--max-parents=0", "HEAD"), checkout)

    def state(self) -> RunState:
        journal = self.journal()
        try:
            runs = journal.runs()
            return fold(journal.read(runs[-1])) if runs else RunState()
        finally:
            journal.close()

    def sound(self) -> list[str]:
        """Say what is wrong after a run: tasks that did not land once, repositories with faults, processes left over."""
        state, wrong = self.state(), []
        assert state.started is not None
        branch = f"refs/unstuck/{state.started.run}/@tip"
        landed = git(
            self.remote, "log", "--format=%(trailers:key=Unstuck-Task,valueonly,separator=%x2C)", branch
        ).split()
        wrong += [] if sorted(landed) == ["1.1", "1.2"] else [f"landed: {landed}"]
        charged = {name: task.charged for name, task in state.tasks.items() if task.charged}
        wrong += [f"charged: {charged}"] if charged else []
        for repository in (self.root, self.remote):
            done = subprocess.run(
                [GIT, "fsck", "--full", "--no-dangling", "--no-progress"],
                cwd=repository,
                capture_output=True,
                text=True,
                check=False,
            )
            wrong += [done.stdout + done.stderr] if done.returncode else []
        left = self.query("SELECT task, state FROM unstuck.jobs WHERE state IN ('queued', 'running')")
        wrong += [f"jobs left: {left}"] if left else []
        return wrong

    def orphans(self) -> list[int]:
        """List processes of sessions and checks; a shim below a living member, which may wait for its next job, is none."""
        mark = os.fsencode(f"MET={self.met}")
        living = {process.pid for process in self.started if process.poll() is None}
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parts = (place / "environ").read_bytes().split(b"\0")
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                ready = b"UNSTUCK_SHIM=1" in parts and parent in living
                if mark in parts and not ready and any(part.startswith(b"UNSTUCK_RUN=") for part in parts):
                    found.append(int(place.name))
        return found

    def end(self) -> None:
        """End everything that is left, and see that nothing stays."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait(PATIENCE)


@pytest.fixture(scope="session")
def fleet_server() -> Iterator[ForkServer]:
    opened = ForkServer("unstuck.fleet")
    yield opened
    opened.close()


@pytest.fixture
def town(tmp_path: Path, store: str, fleet_server: ForkServer) -> Iterator[Town]:
    with living(make_town(tmp_path, store, fleet_server)) as made:
        yield made


@pytest.fixture
def wide_town(tmp_path: Path, store: str, fleet_server: ForkServer, networks: Networks | None) -> Iterator[Town]:
    """A town whose members have a network of their own each, where that is allowed."""
    if networks is not None:
        store = re.sub(r"127\.0\.0\.1:\d+", f"{networks.prefix}.1:{networks.port}", store)
    town = make_town(tmp_path, store, fleet_server)
    town.networks = networks.names if networks is not None else ()
    with living(town) as made:
        yield made


@contextlib.contextmanager
def living(town: Town) -> Iterator[Town]:
    """Lend a town; when its members are ended, no session of theirs may be left."""
    yield town
    town.end()
    wait_until(lambda: not town.orphans(), "the end of all sessions")


def make_town(folder: Path, url: str, fleet_server: ForkServer) -> Town:
    commands, met = folder / "bin", folder / "met"
    for place in (commands, met):
        place.mkdir()
    for name, text in COMMANDS.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}")
    (commands / "git").write_text(DYING_GIT)
    for program in commands.iterdir():
        program.chmod(0o755)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PG", "UNSTUCK"))},
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MET": str(met),
        "XDG_STATE_HOME": str(folder / "state"),
        **dict.fromkeys(("DIE_AT", "FREEZE_AT", "HOLD_AT", "ROLE", "MEMBER_PID"), ""),
    }
    root, remote = folder / "cart", folder / "shared.git"
    root.mkdir()
    git(root, "init", "--quiet")
    (root / "tasks.md").write_text(PLAN)
    (root / "unstuck.toml").write_text(f'{CONFIG}[store]\nremote = "{remote}"\n')
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", f"first, for {folder.name}")
    git(folder, "clone", "--quiet", "--bare", str(root), str(remote))
    return Town(root=root, remote=remote, url=url, env=env, fork_server=fleet_server)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run([GIT, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at how many places a member of a fleet was killed or frozen in this run, and how often all was well after it."""
    rows = [
        (outcome, report)
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call" and "test_fleet_kills.py" in report.nodeid and "[" in report.nodeid
    ]
    if rows:
        well = sum(outcome == "passed" for outcome, _ in rows)
        terminalreporter.write_line(f"kill matrix of the fleet: {len(rows)} points, {well} of them well")
