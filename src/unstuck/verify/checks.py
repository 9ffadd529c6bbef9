"""Edge: Run checks in a clean checkout, as often as it takes to know: from memory, once, or again in a fresh one.

Law: a check says something about a tree only if it leaves that tree as it was and reads nothing that another left beside
it for its tools, and only a run that begins in a fresh checkout shows that another one wavered.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from unstuck.diagnosis.classifying import red
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.missing import is_own_module, is_unwritten
from unstuck.diagnosis.output.tool_output import read_output
from unstuck.model.errors import Interrupted
from unstuck.model.failure import KINDS, Failure, Kind
from unstuck.model.orders import Subject
from unstuck.model.outcome import Ended
from unstuck.model.verdict import Check, CheckResult, Counts
from unstuck.toolchain.command_roles import role
from unstuck.toolchain.shell import can_fail, programs, words
from unstuck.toolchain.toolchains import is_plain_run, manifest_files, selecting_command
from unstuck.verify.change import known, part_of, pattern
from unstuck.verify.check_context import CheckContext
from unstuck.verify.set_up import set_up

DID_NOTHING = "`{}` says that there is nothing to do"
CANNOT_FAIL = "`{}` ends with exit code 0 whatever the work is like"
NOT_EXECUTABLE, NOT_FOUND = 126, 127
MAY_WAVER = ("verify", "test")
"""Kinds of checks that can go one way and then another; linters and compilers do not."""
READERS = ("lint", "format", "types")
"""Kinds of gates that read sources: they rarely need what a build or a test run leaves behind."""
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
_OF_MAKE = re.compile(
    r"^(?:-[CfIoWj]|--(?:directory|file|makefile|include-dir|old-file|what-if|jobs)) | (?:-|\w+[:?+]?=)"
)
"""An option of make's or what belongs to one, with what stands before it: no goal."""
Rewritten = Callable[[str], str]
"""What becomes of the text of a file."""
_PASSING = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{7,}\b|/tmp/\S+|[\d.:]+")
"""What differs between two runs that say the same: addresses, hashes, folders of the moment, times."""


class SetupFailed(Exception):
    """The clean checkout could not be set up; the failure says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.summary)
        self.failure = failure


@dataclass(slots=True, kw_only=True)
class CleanCheckout:
    """The clean checkout of one verification. It is made when something must really be run, and moves from tree to tree."""

    context: CheckContext
    name: str
    slot: int
    stands_on: tuple[str, str | None] | None = None
    used: bool = False
    """A check has run in it since anybody looked at what lies about."""

    def stand(self, base: str, tree: str | None = None, *, anew: bool = False) -> None:
        """Hold this commit, with the tree's files on top when given, and nothing that an agent left lying about."""
        if self.stands_on == (base, tree) and not anew and not self._misled():
            return
        self.stands_on = None
        context = self.context
        folder = context.workspace.prepare(self.slot, base, tree, clean=True)
        if context.settings.workspace.setup:
            needs = "\n".join(context.own_files.read(folder / name) or "" for name in manifest_files())
            if (failure := set_up(context, self.name, self.slot, needs=needs)) is not None:
                raise SetupFailed(failure)
            if context.workspace.altered_files(self.slot):  # what a check reads of the tree is the tree
                context.workspace.prepare(self.slot, base, tree, clean=True)
        self.stands_on = (base, tree)

    def _misled(self) -> bool:
        """Whether a check has left what the next one's tools would read, though it is none of the tree."""
        used, self.used = self.used, False
        return used and any(map(is_read_unasked, self.context.workspace.untracked_files(self.slot)))

    def run(self, check: Check, base: str, tree: str | None = None) -> CheckResult:
        """Run a check on a tree; where it fails and might not, again in a fresh checkout, until two runs say the same."""
        self.stand(base, tree)
        runs = [self._run(check)]
        while self._worth_another(check, runs):
            self.stand(base, tree, anew=True)
            files = {test.partition("::")[0] for test in runs[0].tests if "::" in test}
            if len(runs) == 1 and is_plain_run(check.command) and (part := narrowed([check], files)) is not None:
                again = self._run(part)
                if not again.ended.ok and set(again.tests) == set(runs[0].tests):
                    break  # the same tests fail alone: nothing wavers, and the whole is not run again
                self.stand(base, tree, anew=True)
            runs.append(self._run(check))
        last, red = runs[-1], [run for run in runs if not run.ended.ok]
        always = tuple(test for test in last.tests if all(test in run.tests for run in red))
        all_differ = len({_says(run) for run in runs}) == len(runs)
        flaky = len(runs) > 1 and (last.ended.ok or (all_differ and not always))
        return replace(last, runs=len(runs), flaky=flaky, tests=always or last.tests)

    def once(self, check: Check, base: str, tree: str | None = None) -> CheckResult:
        """Run a check a single time on a tree: one run of any colour says enough. Asked once for a tree."""
        key = f"{tree or self.context.workspace.tree_of(base)} once"
        return _recalled(self, check, key, lambda: self.beside(check, base, tree, {}), red=True)

    def beside(self, check: Check, base: str, tree: str | None, written: Mapping[str, Rewritten]) -> CheckResult:
        """Run a check a single time on a tree of whose files some are written in another way."""
        olds = self.read(written, base, tree)
        return self.instead(check, base, tree, {path: written[path](old) for path, old in olds.items()})

    def instead(self, check: Check, base: str, tree: str | None, written: Mapping[str, str]) -> CheckResult:
        """Run a check a single time on a tree with these texts in the place of its files."""
        self.stand(base, tree)
        folder = self.context.workspace.path(self.slot)
        for path, text in written.items():
            self.context.own_files.put(folder / path, text)
        return self._run(check)

    def read(self, paths: Iterable[str], base: str, tree: str | None = None) -> dict[str, str]:
        """Return the texts of files of a tree; those that it has not are left out."""
        self.stand(base, tree)
        folder = self.context.workspace.path(self.slot)
        texts = {path: self.context.own_files.read(folder / path) for path in paths}
        return {path: text for path, text in texts.items() if text is not None}

    def _run(self, check: Check) -> CheckResult:
        context = self.context
        context.show_activity(self.name, f"check: {check.command}")
        command = context.command(self.name, check.command, self.slot, timeout=check.timeout)
        ended = _from_the_root(
            context.processes.run(command, stop=context.stop), str(context.workspace.path(self.slot))
        )
        if ended.ending == "stopped":
            raise Interrupted
        how = "passed" if ended.ok else f"exit code {ended.exit_code}" if ended.ending == "exited" else "did not end"
        context.show_activity(self.name, f"check: {check.command} ({how}, {ended.seconds:.1f} s)")
        repaired, self.used = context.workspace.altered_files(self.slot), True
        if repaired:
            self.stands_on = None  # what comes next must see the tree, not what became of it
        found = None if ended.ok else context.judge.diagnose(evidence(check, ended))
        return CheckResult(
            not_meaningful_because=DID_NOTHING.format(check.command) if ended.ok and _did_nothing(check, ended) else "",
            command=check.command,
            kind=check.kind,
            ended=ended,
            repaired=repaired,
            tests=found.tests if found else (),
            counts=_counts(ended.tail),
            log=str(context.layout.log(self.name)),
        )

    def _worth_another(self, check: Check, runs: Sequence[CheckResult]) -> bool:
        """Whether another run might go better, and takes no longer than the check may."""
        last = runs[-1].ended
        if last.ok or len(runs) > self.context.settings.verify.reruns or check.kind not in MAY_WAVER:
            return False
        if last.ending != "exited" or last.exit_code in (NOT_EXECUTABLE, NOT_FOUND):
            return False
        if only_looks(check) or any(_says(runs[-1]) == _says(run) for run in runs[:-1]):
            return False
        return not check.timeout or sum(run.ended.seconds for run in runs) + last.seconds <= check.timeout


def check_on(site: CleanCheckout, check: Check, base: str, tree: str | None = None) -> CheckResult:
    """Say how a check goes on a tree. One that was red there is asked again: what made it so may lie outside of the tree."""
    key = tree or site.context.workspace.tree_of(base)
    return _recalled(site, check, key, lambda: site.run(check, base, tree), red=False)


def on_base(site: CleanCheckout, check: Check, base: str) -> CheckResult:
    """Say how a check goes on the commit that the task began with; asked once for a tree, unless it could not run there."""
    key, context = site.context.workspace.tree_of(base), site.context
    known = _recalled(site, check, key, lambda: site.run(check, base), red=True)
    if not known.cached or check.detected or not hindered(context, check, known, base):
        return known
    context.base_results.remember(key, check, mended := site.run(check, base))
    return mended


def _recalled(site: CleanCheckout, check: Check, key: str, run: Callable[[], CheckResult], *, red: bool) -> CheckResult:
    """Say how a check goes by memory, where `red` ones are believed as well, else by running it."""
    if not can_fail(check.command):
        idle = CANNOT_FAIL.format(check.command)
        return CheckResult(
            command=check.command,
            kind=check.kind,
            ended=Ended(ending="not_started"),
            runs=0,
            not_meaningful_because=idle,
        )
    outside = ASKS_FOR_US in check.command or any(map(pattern("judge", "outside").fullmatch, program_names(check)))
    of_the_run = (site.context.base_results,) if red else ()
    memories = (*of_the_run, *(() if outside else (site.context.check_cache,)))
    recalled = (memory.recall(key, check) for memory in memories)
    known = next((one for one in recalled if one is not None and (red or one.status == "pass")), None)
    result = run() if known is None else replace(known, cached=True)
    for memory in memories if known is None else of_the_run:
        memory.remember(key, check, result)
    return result


def hindered(context: CheckContext, check: Check, result: CheckResult, base: str, but: str = "") -> Failure | None:
    """Say what kept a check from saying anything of a commit: a tool that no task is to bring, or the machine; `but`: this task."""
    found = (
        None if result.ended.ok else diagnosed(context, evidence(check, result.ended), context.workspace.tree_of(base))
    )
    failure = None if found is None or found.is_guess else red(result, found)
    texts = [
        f"{task.title}\n{task.body}".lower() for task in context.tasks.values() if not task.done and task.id != but
    ]
    brought = any(name.lower() in text for name in (failure.names if failure else ()) for text in texts)
    return failure if failure is not None and failure.kind in NO_ANSWER and not brought else None


def diagnosed(context: CheckContext, seen: Evidence, tree: str) -> Diagnosis | None:
    """Say what went wrong; a module that the plan or the tree holds is the agent's to write, and nobody's to install.

    A login that a tool is refused in a check is the machine's to have.
    """
    found = context.judge.diagnose(seen)
    if found is None:
        return None
    if found.kind is Kind.AUTH_FAILED and seen.command and found.rule.partition(".")[0] not in OWN_WORDS:
        return replace(found, kind=Kind.ENVIRONMENT_MISSING)
    if found.kind not in TO_BE_WRITTEN:
        return found
    names = [value for key, value in found.names if key in ("package", "module", "name")]
    planned = [path for task in context.tasks.values() for path in task.files]
    there = context.workspace.tree_files(tree)
    own = any(is_own_module(name, planned, there) for name in names) or is_unwritten(found.message, planned, set(there))
    return replace(found, kind=TO_BE_WRITTEN[found.kind]) if own else found


def evidence(check: Check, ended: Ended) -> Evidence:
    """Return a run of a check as something to diagnose."""
    kind = None if check.kind == "verify" else check.kind
    return Evidence(stdout=ended.tail, exit_code=ended.exit_code, command=check.command, check=kind)


def program_names(check: Check) -> list[str]:
    """Return the programs that a check calls."""
    return [part.split(" ", 1)[0] for part in programs(check.command)]


def _did_nothing(check: Check, ended: Ended) -> bool:
    """Whether it is make alone, and made nothing: a file or a folder has the name of each of its goals."""
    said = [pattern("judge", "did_nothing").match(line) for line in ended.tail.splitlines() if line.strip()]
    if set(program_names(check)) != {"make"} or not all(said):
        return False
    told = {one["there"] or one["done"] for one in said if one}
    given = [words(part)[1:] for part in programs(check.command)]
    goals = {one for some in given for before, one in pairwise(["", *some]) if not _OF_MAKE.search(f"{before} {one}")}
    return bool(told) and goals <= told


def stands_for_another(path: str) -> bool:
    """Whether a new module at the top is found in the place of one that Python, or a runner of it, is made of."""
    name, _, rest = path.removesuffix(".py").partition("/")
    top = path.endswith(".py") and rest in {"", "__init__"}
    return top and (name in sys.stdlib_module_names or name in known()["shadow"]["parts"])


def is_read_unasked(path: str) -> bool:
    """Tell whether runners read a file, or a folder at the top, that lies about though no command names it."""
    parts = {"settings", "commands", "support", "test"}
    return part_of(path) in parts or stands_for_another(path) or stands_for_another(f"{path}/__init__.py")


def only_looks(check: Check) -> bool:
    """Whether a check only looks at files: it says the same about the same ones, and no settings can bend it."""
    return all(map(pattern("judge", "steady").fullmatch, program_names(check)))


def is_test_run(check: Check) -> bool:
    """Whether a check runs tests: a kind that somebody gave it says so better than its words."""
    by_name = pattern("check", "tests").search(check.command) is not None
    return by_name or role(check.command, check=check.kind) == "test"


def narrowed(checks: Sequence[Check], files: Collection[str]) -> Check | None:
    """Return a check for these test files alone, after the first of the checks whose runner can be asked for them."""
    line = selecting_command([check.command for check in checks], sorted(files)) if files else None
    return Check(command=line, kind="test", timeout=checks[0].timeout) if line else None


def _says(run: CheckResult) -> object:
    """Return what two runs must have in common to say the same."""
    return run.ended.exit_code, frozenset(run.tests) or steady(run.ended.tail)


def steady(text: str) -> str:
    """Return what was said without what differs between two runs that say the same."""
    return _PASSING.sub("N", text)


def _from_the_root(ended: Ended, slot: str) -> Ended:
    """Name the project's files as the project does: which slot a check ran in says nothing, and differs from its base's."""
    tail = ended.tail.replace(f"{slot}/", "")
    return replace(ended, tail=tail, output_bytes=ended.output_bytes - len(ended.tail.encode()) + len(tail.encode()))


def _counts(output: str) -> Counts | None:
    """Return how many tests a runner says it ran; a go package without its tests' names says nothing of that."""
    reading = read_output(output)
    if reading.ran is None and not reading.red:
        return None
    unloaded = sum(not one.name for one in reading.failures)  # what fails in several parts is one test that ran
    most = reading.red if reading.ran is None else max(0, reading.ran - reading.passed) + unloaded
    return Counts(passed=reading.passed, failed=min(reading.red, most), skipped=reading.skipped)


@contextmanager
def begun_aside(site: CleanCheckout, subject: Subject) -> Iterator[Mapping[Check, "Future[CheckResult]"]]:
    """Begin with the readers among the gates in a second checkout, where the machine has room and there is other work."""
    gates, beside = site.context.gates, site.context.second_checkout_offset
    readers = [gate for gate in gates if gate.kind in READERS]
    others = len(subject.task.checks) + len(gates) - len(readers)
    # Where a set-up is needed, a second checkout would cost more than it saves.
    if beside is None or not readers or not others or site.context.settings.workspace.setup:
        yield {}
        return
    second = CleanCheckout(context=site.context, name=site.name, slot=site.slot + beside)
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield {gate: pool.submit(check_on, second, gate, subject.base, subject.tree) for gate in readers}
