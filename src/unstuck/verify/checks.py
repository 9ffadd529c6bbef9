"""Run checks in a clean checkout, as often as it takes to know: from memory, once, or again where one fails."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unstuck.diagnosis import Evidence, Failure, read_counts
from unstuck.journal import CheckResult, Ended
from unstuck.line import Bench, Interrupted, set_up
from unstuck.plans import Check
from unstuck.tools import can_fail, programs
from unstuck.verify.checkout import NoMemory

CANNOT_FAIL = "`{}` ends with exit code 0 whatever the work is like"
NOT_EXECUTABLE, NOT_FOUND = 126, 127
MAY_WAVER = ("verify", "test")
"""Kinds of checks that can go one way and then another; linters and compilers do not."""
STEADY = frozenset(("test", "[", "[[", "grep", "egrep", "fgrep", "cat", "ls", "diff", "cmp", "wc", "jq", "stat"))
"""Programs that say the same about the same files."""
LOOKS_OUTSIDE = frozenset(
    (
        *("curl", "wget", "http", "nc", "ping", "ssh", "gh", "git", "docker", "docker-compose", "podman", "kubectl"),
        *("psql", "mysql", "redis-cli", "ps", "pgrep", "pkill", "kill", "lsof", "ss", "systemctl", "date"),
    )
)
"""Programs whose answer does not follow from the files: never answered from memory."""
ASKS_FOR_US = "UNSTUCK_"
"""A command with a variable of ours in it may say something else for every task."""
MANIFESTS = (
    *("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "pyproject.toml", "uv.lock"),
    *("poetry.lock", "pdm.lock", "requirements.txt", "requirements-dev.txt", "setup.py", "setup.cfg", "go.sum"),
    *("Cargo.lock", "Gemfile.lock", "composer.lock", "pom.xml", "build.gradle", "build.gradle.kts"),
)
"""Where projects say what they need: a clean checkout is set up anew when one of them changes."""


class NotSetUp(Exception):
    """The clean checkout could not be set up; the failure says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.summary)
        self.failure = failure


@dataclass(slots=True, kw_only=True)
class Site:
    """The clean checkout of one verification. It is made when something must really be run, and moves from tree to tree."""

    bench: Bench
    name: str
    slot: int
    stands_on: tuple[str, str | None] | None = None

    def stand(self, base: str, tree: str | None = None) -> None:
        """Hold this commit, with the tree's files on top when given, and nothing that an agent left lying about."""
        if self.stands_on == (base, tree):
            return
        self.stands_on = None
        bench = self.bench
        folder = bench.workspace.prepare(self.slot, base, tree, clean=True)
        if bench.config.workspace.setup:
            needs = "\n".join(bench.desk.read(folder / name) or "" for name in MANIFESTS)
            if (failure := set_up(bench, self.name, self.slot, needs=needs)) is not None:
                raise NotSetUp(failure)
        self.stands_on = (base, tree)

    def disturb(self, tree: str, paths: Sequence[str]) -> None:
        """Put other forms of some files in; the next `stand` begins anew."""
        self.stands_on = None
        self.bench.workspace.put(self.slot, tree, paths)

    def run(self, check: Check) -> CheckResult:
        """Run a check where we stand, and again if it fails and might not."""
        runs = [run_once(self.bench, self.name, check, self.slot)]
        while _worth_another(check, runs, self.bench.config.verify.reruns):
            runs.append(run_once(self.bench, self.name, check, self.slot))
        return _told(self.bench, self.name, check, runs)


def check_on(site: Site, check: Check, base: str, tree: str | None, tree_id: str) -> CheckResult:
    """Say how a check goes on a tree: by memory where it passed there before, else by running it."""
    if not can_fail(check.command):
        nothing = Ended(ending="not_started")
        return CheckResult(
            command=check.command, kind=check.kind, ended=nothing, runs=0, idle=CANNOT_FAIL.format(check.command)
        )
    follows = _programs(check).isdisjoint(LOOKS_OUTSIDE) and ASKS_FOR_US not in check.command
    memory = site.bench.memory if follows else NoMemory()
    known = memory.recall(tree_id, check)
    if known is not None and known.ended.ok:
        return replace(known, cached=True)
    site.stand(base, tree)
    result = site.run(check)
    if not result.flaky:
        memory.remember(tree_id, check, result)
    return result


def run_once(bench: Bench, name: str, check: Check, slot: int) -> Ended:
    """Run one check to its end."""
    bench.seen(name, f"check: {check.command}")
    ended = bench.processes.run(bench.command(name, check.command, slot, timeout=check.timeout), stop=bench.stop)
    if ended.ending == "stopped":
        raise Interrupted
    return ended


def failing_tests(bench: Bench, check: Check, ended: Ended) -> tuple[str, ...]:
    """Name the tests that fail, as far as their runner does."""
    if ended.ok:
        return ()
    found = bench.judge.diagnose(_evidence(check, ended))
    return found.tests if found else ()


def _evidence(check: Check, ended: Ended) -> Evidence:
    kind = None if check.kind == "verify" else check.kind
    return Evidence(stdout=ended.tail, exit_code=ended.exit_code, command=check.command, check=kind)


def _worth_another(check: Check, runs: Sequence[Ended], reruns: int) -> bool:
    """Whether another run might go better, and takes no longer than the check may."""
    last = runs[-1]
    if last.ok or len(runs) > reruns or check.kind not in MAY_WAVER:
        return False
    if last.ending != "exited" or last.exit_code in (NOT_EXECUTABLE, NOT_FOUND):
        return False
    if _programs(check) <= STEADY:
        return False
    return not check.timeout or sum(run.seconds for run in runs) + last.seconds <= check.timeout


def _programs(check: Check) -> set[str]:
    return {part.split(" ", 1)[0] for part in programs(check.command)}


def _told(bench: Bench, name: str, check: Check, runs: Sequence[Ended]) -> CheckResult:
    last = runs[-1]
    red = [failing_tests(bench, check, run) for run in runs if not run.ok]
    always = tuple(test for test in (red[-1] if red else ()) if all(test in tests for tests in red))
    wavered = len(runs) > 1 and (last.ok or (all(red) and not always))
    return CheckResult(
        command=check.command,
        kind=check.kind,
        ended=last,
        runs=len(runs),
        flaky=wavered,
        tests=() if last.ok else always or (red[-1] if red else ()),
        counts=read_counts(last.tail),
        log=str(bench.layout.log(name)),
    )
