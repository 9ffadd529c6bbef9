"""Edge: Run checks in a clean checkout, as often as it takes to know: from memory, once, or again in a fresh one.

Law: a check says something about a tree only if it leaves that tree as it was, and only a run that begins in a fresh
checkout shows that another one wavered.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from unstuck.diagnosis import KINDS, Diagnosis, Evidence, Failure, Kind, is_own_module, is_unwritten, read, red
from unstuck.journal import CheckResult, Counts, Ended
from unstuck.line import Bench, Interrupted, set_up
from unstuck.orders import Subject
from unstuck.plans import Check
from unstuck.tools import can_fail, is_plain_run, manifest_files, programs, selecting
from unstuck.verify.check_memory import NoMemory

CANNOT_FAIL = "`{}` ends with exit code 0 whatever the work is like"
NOT_EXECUTABLE, NOT_FOUND = 126, 127
MAY_WAVER = ("verify", "test")
"""Kinds of checks that can go one way and then another; linters and compilers do not."""
READERS = ("lint", "format", "types")
"""Kinds of gates that read sources: they rarely need what a build or a test run leaves behind."""
STEADY = frozenset(
    (
        *("test", "[", "[[", "grep", "egrep", "fgrep", "cat", "ls", "diff", "cmp", "wc", "jq", "stat"),
        *("cd", "echo", "printf", "true", "false", "exit", ":"),
    )
)
"""Programs that say the same about the same files, and read no settings."""
LOOKS_OUTSIDE = frozenset(
    (
        *("curl", "wget", "http", "nc", "ping", "ssh", "gh", "git", "docker", "docker-compose", "podman", "kubectl"),
        *("psql", "mysql", "redis-cli", "ps", "pgrep", "pkill", "kill", "lsof", "ss", "systemctl", "date"),
    )
)
"""Programs whose answer does not follow from the files: never answered from memory."""
ASKS_FOR_US = "UNSTUCK_"
"""A command with a variable of ours in it may say something else for every task."""
TO_BE_WRITTEN = {
    Kind.DEPENDENCY_MISSING: Kind.MODULE_MISSING,
    Kind.PACKAGE_NOT_FOUND: Kind.MODULE_MISSING,
    Kind.COMMAND_NOT_FOUND: Kind.FILE_NOT_FOUND,
}
"""What is missing on the machine → what it is where the plan says that an agent writes it."""
OWN_WORDS = frozenset(("auth", "http", "words", "perhaps"))
"""Families of rules whose words of a refused login may be the product's own; those of a known tool never are."""
NO_ANSWER = frozenset(kind for kind, facts in KINDS.items() if facts.blame == "environment") - {Kind.PERMISSION_DENIED}
"""What a check says that the machine keeps from saying anything of the tree; a mode bit is the tree's own."""
_PASSING = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{7,}\b|/tmp/\S+|[\d.:]+")
"""What differs between two runs that say the same: addresses, hashes, folders of the moment, times."""


class NotSetUp(Exception):
    """The clean checkout could not be set up; the failure says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.summary)
        self.failure = failure


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of a check: how it ended, which tests fail, and which files of the tree it changed."""

    ended: Ended
    tests: tuple[str, ...]
    repaired: tuple[str, ...]

    def says(self) -> object:
        """Return what two runs must have in common to say the same."""
        return self.ended.exit_code, frozenset(self.tests) or _PASSING.sub("N", self.ended.tail)


@dataclass(slots=True, kw_only=True)
class Site:
    """The clean checkout of one verification. It is made when something must really be run, and moves from tree to tree."""

    bench: Bench
    name: str
    slot: int
    stands_on: tuple[str, str | None] | None = None
    altered: frozenset[str] = frozenset()
    """Files that the set-up changed before any check ran."""

    def stand(self, base: str, tree: str | None = None) -> None:
        """Hold this commit, with the tree's files on top when given, and nothing that an agent left lying about."""
        if self.stands_on == (base, tree):
            return
        self.stands_on = None
        bench = self.bench
        folder = bench.workspace.prepare(self.slot, base, tree, clean=True)
        self.altered = frozenset()
        if bench.config.workspace.setup:
            needs = "\n".join(bench.desk.read(folder / name) or "" for name in manifest_files())
            if (failure := set_up(bench, self.name, self.slot, needs=needs)) is not None:
                raise NotSetUp(failure)
            self.altered = frozenset(bench.workspace.altered(self.slot))
        self.stands_on = (base, tree)

    def once(self, check: Check, base: str, tree: str | None = None) -> CheckResult:
        """Run a check a single time on a tree: one run of any colour says enough. Asked once for a tree."""
        key = f"{tree or self.bench.workspace.tree_of(base)} once"
        known = self.bench.memory.recall(key, check)
        if known is None:
            self.stand(base, tree)
            known = _told(self, check, [self._run(check)])
            self.bench.memory.remember(key, check, known)
        return known

    def beside(self, check: Check, base: str, tree: str | None, written: Mapping[str, str]) -> CheckResult:
        """Run a check on a tree with these texts at the ends of its files; nothing of it is remembered."""
        self.stand(base, tree)
        folder = self.bench.workspace.path(self.slot)
        for path, text in written.items():
            if (old := self.bench.desk.read(folder / path)) is not None:
                self.bench.desk.put(folder / path, old + text)
        result = _told(self, check, [self._run(check)])
        self.stands_on = None
        return result

    def run(self, check: Check, base: str, tree: str | None) -> CheckResult:
        """Run a check on a tree; where it fails and might not, again in a fresh checkout, until two runs say the same."""
        self.stand(base, tree)
        runs = [self._run(check)]
        while self._worth_another(check, runs):
            part = self._failing_part(check, runs)
            self.stands_on = None
            self.stand(base, tree)
            if part is not None:
                again = self._run(part)
                if not again.ended.ok and set(again.tests) == set(runs[0].tests):
                    break  # the same tests fail alone: nothing wavers, and the whole is not run again
                self.stands_on = None
                self.stand(base, tree)
            runs.append(self._run(check))
        return _told(self, check, runs)

    def _run(self, check: Check) -> _Run:
        bench = self.bench
        bench.seen(self.name, f"check: {check.command}")
        command = bench.command(self.name, check.command, self.slot, timeout=check.timeout)
        ended = _from_the_root(bench.processes.run(command, stop=bench.stop), str(bench.workspace.path(self.slot)))
        if ended.ending == "stopped":
            raise Interrupted
        how = "passed" if ended.ok else f"exit code {ended.exit_code}" if ended.ending == "exited" else "did not end"
        bench.seen(self.name, f"check: {check.command} ({how}, {ended.seconds:.1f} s)")
        repaired: tuple[str, ...] = ()
        if self.stands_on is not None:
            repaired = tuple(path for path in bench.workspace.altered(self.slot) if path not in self.altered)
            if repaired:
                self.stands_on = None  # what comes next must see the tree, not what became of it
        return _Run(ended=ended, tests=failing_tests(bench, check, ended), repaired=repaired)

    def _worth_another(self, check: Check, runs: Sequence[_Run]) -> bool:
        """Whether another run might go better, and takes no longer than the check may."""
        last = runs[-1].ended
        if last.ok or len(runs) > self.bench.config.verify.reruns or check.kind not in MAY_WAVER:
            return False
        if last.ending != "exited" or last.exit_code in (NOT_EXECUTABLE, NOT_FOUND):
            return False
        if program_names(check) <= STEADY or any(runs[-1].says() == run.says() for run in runs[:-1]):
            return False
        return not check.timeout or sum(run.ended.seconds for run in runs) + last.seconds <= check.timeout

    def _failing_part(self, check: Check, runs: Sequence[_Run]) -> Check | None:
        """Return the check for the failing test files alone, once, where the runner names them and can be asked."""
        files = {test.partition("::")[0] for test in runs[0].tests if "::" in test}
        if len(runs) > 1 or not files or not is_plain_run(check.command):
            return None
        line = selecting([check.command], sorted(files))
        return replace(check, command=line, kind="test") if line else None


def check_on(site: Site, check: Check, base: str, tree: str | None, tree_id: str) -> CheckResult:
    """Say how a check goes on a tree: by memory where it passed there before, else by running it."""
    if not can_fail(check.command):
        nothing = Ended(ending="not_started")
        return CheckResult(
            command=check.command, kind=check.kind, ended=nothing, runs=0, idle=CANNOT_FAIL.format(check.command)
        )
    follows = program_names(check).isdisjoint(LOOKS_OUTSIDE) and ASKS_FOR_US not in check.command
    memory = site.bench.memory if follows else NoMemory()
    known = memory.recall(tree_id, check)
    if known is not None and known.status == "pass":
        return replace(known, cached=True)
    result = site.run(check, base, tree)
    if not result.flaky:
        memory.remember(tree_id, check, result)
    return result


def on_base(site: Site, check: Check, base: str) -> CheckResult:
    """Say how a check goes on the commit that the task began with; asked once for a tree, unless it could not run."""
    bench = site.bench
    tree = bench.workspace.tree_of(base)
    known = bench.baselines.recall(tree, check) or bench.memory.recall(tree, check)
    if known is None or (not check.found and hindered(bench, check, known, tree)):  # it may have been mended since
        known = site.run(check, base, None)
        bench.baselines.remember(tree, check, known)
        if not known.flaky:
            bench.memory.remember(tree, check, known)
    return known


def hindered(bench: Bench, check: Check, result: CheckResult, tree: str) -> Failure | None:
    """Say what kept a check from saying anything of a tree: its tool is not here, or the machine stood in its way."""
    found = None if result.ended.ok else diagnosed(bench, evidence(check, result.ended), tree)
    failure = None if found is None or found.guessed else red(result, found)
    return failure if failure is not None and failure.kind in NO_ANSWER else None


def diagnosed(bench: Bench, seen: Evidence, tree: str) -> Diagnosis | None:
    """Say what went wrong; a module that the plan or the tree holds is the agent's to write, and nobody's to install.

    A login that a tool is refused in a check is the machine's to have.
    """
    found = bench.judge.diagnose(seen)
    if found is None:
        return None
    if found.kind is Kind.AUTH_FAILED and seen.command and found.rule.partition(".")[0] not in OWN_WORDS:
        return replace(found, kind=Kind.ENVIRONMENT_MISSING)
    if found.kind not in TO_BE_WRITTEN:
        return found
    names = [value for key, value in found.names if key in ("package", "module", "name")]
    planned = [path for task in bench.tasks.values() for path in task.files]
    there = bench.workspace.files(tree)
    own = any(is_own_module(name, planned, there) for name in names) or is_unwritten(found.message, planned, set(there))
    return replace(found, kind=TO_BE_WRITTEN[found.kind]) if own else found


def failing_tests(bench: Bench, check: Check, ended: Ended) -> tuple[str, ...]:
    """Name the tests that fail, as far as their runner does."""
    if ended.ok:
        return ()
    found = bench.judge.diagnose(evidence(check, ended))
    return found.tests if found else ()


def evidence(check: Check, ended: Ended) -> Evidence:
    """Return a run of a check as something to diagnose."""
    kind = None if check.kind == "verify" else check.kind
    return Evidence(stdout=ended.tail, exit_code=ended.exit_code, command=check.command, check=kind)


def program_names(check: Check) -> set[str]:
    """Return the programs that a check calls."""
    return {part.split(" ", 1)[0] for part in programs(check.command)}


def _told(site: Site, check: Check, runs: Sequence[_Run]) -> CheckResult:
    last = runs[-1]
    red = [run for run in runs if not run.ended.ok]
    always = tuple(test for test in last.tests if all(test in run.tests for run in red))
    all_differ = len({run.says() for run in runs}) == len(runs)
    return CheckResult(
        command=check.command,
        kind=check.kind,
        ended=last.ended,
        runs=len(runs),
        flaky=len(runs) > 1 and (last.ended.ok or (all_differ and not always)),
        repaired=last.repaired,
        tests=always or last.tests,
        counts=_counts(last.ended.tail),
        log=str(site.bench.layout.log(site.name)),
    )


def _from_the_root(ended: Ended, slot: str) -> Ended:
    """Name the project's files as the project does: which slot a check ran in says nothing, and differs from its base's."""
    tail = ended.tail.replace(f"{slot}/", "")
    return replace(ended, tail=tail, output_bytes=ended.output_bytes - len(ended.tail.encode()) + len(tail.encode()))


def _counts(output: str) -> Counts | None:
    """Return how many tests a runner says it ran; a go package without its tests' names says nothing of that."""
    reading = read(output)
    if reading.ran is None and not reading.red:
        return None
    return Counts(passed=reading.passed, failed=reading.red, skipped=reading.skipped)


@contextmanager
def looking_aside(site: Site, subject: Subject) -> Iterator[Callable[[Check], CheckResult | None]]:
    """Begin with the readers among the gates; the function given says how one went, if it is green.

    One that is red is asked again in its turn: it may have needed what the checks before it make.
    """
    gates, beside = site.bench.gates, site.bench.beside
    readers = [gate for gate in gates if gate.kind in READERS]
    others = len(subject.task.checks) + len(gates) - len(readers)
    # Where a set-up is needed, a second checkout would cost more than it saves.
    if beside is None or not readers or not others or site.bench.config.workspace.setup:
        yield lambda _gate: None
        return
    second = Site(bench=site.bench, name=site.name, slot=site.slot + beside)
    with ThreadPoolExecutor(max_workers=1) as pool:
        looked: Future[Mapping[Check, CheckResult]] = pool.submit(_look, second, subject, readers)
        yield lambda gate: looked.result().get(gate) if gate in readers else None


def _look(site: Site, subject: Subject, readers: Sequence[Check]) -> Mapping[Check, CheckResult]:
    results = {gate: check_on(site, gate, subject.base, subject.tree, subject.tree) for gate in readers}
    return {gate: result for gate, result in results.items() if result.status == "pass"}
