"""Measure the audit: how many weakened tests it catches, and how many honest changes it stops.

    python benchmarks/tamper.py [FOLDER...]              mutations of the test files in the folders (default: our samples)
    python benchmarks/tamper.py REPO... --commits N      the last N commits of each repository that touch tests with source
        --run "python -m pytest -q {tests}"              and what running the base's tests makes of those that are doubted
        --seconds S --only PATTERN                       so long each of these runs may take; the tests that are fit to be run
    python benchmarks/tamper.py OLD NEW --releases       two releases of one project, taken for a commit
    python benchmarks/tamper.py --rounds                 adversarial diffs written by hand

Each change is judged twice: as if the task named the tests in its Files, and as if it did not. Where they are not named,
a doubt about the judge is decided by running the base's, so without `--run` it counts as doubted, not as stopped; a
weakening that the reader doubts counts as caught. With `--run` such a commit is verified as `unstuck verify` does it: it
passes, or a test of the base is really red and a person is asked with the test and the assertion, or it is stopped. The
tests that are run are those of the base that the commit changes, else some that speak of what it changes. Each commit is
told as it is judged, and an interrupted bench shows what it saw.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import click

if __package__ in {None, ""}:  # started as a file: the package is the folder that it stands in
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.mutations import mutations
from benchmarks.report import Report, Target
from benchmarks.rounds import judge_rounds
from unstuck.app.verify_command import verify_by_hand
from unstuck.engine.stops import RunStop
from unstuck.model.changes import Change
from unstuck.model.verdict import Remark, Verdict
from unstuck.verify.audit.auditing import audit
from unstuck.verify.audit.grammars import grammar_of
from unstuck.verify.change import is_judge, part_of, pattern, rule_of

SAMPLES = Path(__file__).parent / "corpora" / "samples"
PRODUCT = Change(path="src/product.py", old="LIMIT = 1\n", new="LIMIT = 2\n")
LONGEST = 60_000
MOST_FILES = 400
MISSED, MISSED_NAMED = 3.0, 10.0
"""At most so many per cent of the mutations of a language are missed where the task does not name the tests, and where it does."""
LARGEST = 300_000
RUN_SECONDS, MOST_TESTS = 60.0, 8
FATES = ("lands", "doubted", "asked", "stopped", "red here", "too slow")
"""What can become of an honest change: doubted is what a run of the base's tests decides, asked where such a test is really
red, red here where its own tests fail on this machine, too slow where they did not end in time."""


@dataclass(frozen=True)
class Judged:
    """One change, judged with its tests named in Files and without."""

    title: str
    language: str
    kind: str
    named: tuple[Remark, ...]
    unnamed: tuple[Remark, ...]
    ran: Verdict | None = None
    """What verification says of it with the tests not named, where it was run."""

    @property
    def stopped(self) -> tuple[bool, bool]:
        return any(one.severity != "warn" for one in self.named), any(one.severity != "warn" for one in self.unnamed)

    @property
    def fate(self) -> str:
        """Say what becomes of it with its tests not named."""
        if self.ran is None:
            stops = [one for one in self.unnamed if one.severity != "warn"]
            run_decides = all(is_judge(one.path) and not rule_of(one.rule).fixed for one in stops)
            return "lands" if not stops else "doubted" if run_decides else "stopped"
        if any(one.ended.ending != "exited" for one in self.ran.results):
            return "too slow"
        held = {one.rule for one in self.ran.remarks if one.severity != "warn"}
        if self.ran.status == "fail" and not held:
            return "red here"
        return "lands" if not held else "asked" if "old-test-fails" in held else "stopped"

    @property
    def told(self) -> bool:
        return bool(self.named)


def judge(title: str, language: str, kind: str, changes: Sequence[Change]) -> Judged:
    """Judge one change both ways."""
    product = [one.path for one in changes if part_of(one.path) in {"product", "docs"}] or [PRODUCT.path]
    named, unnamed = audit(changes, [one.path for one in changes]), audit(changes, product)
    return Judged(title, language, kind, named, unnamed)


def mutated(folders: Sequence[Path], per_language: int = MOST_FILES, every: int = 1) -> Iterator[Judged]:
    """Weaken the tests of folders, one edit at a time; take all edits, or one in so many."""
    turn = 0
    files: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            place = path.relative_to(folder).as_posix()
            grammar = grammar_of(place)
            if path.is_file() and grammar is not None and (part_of(place) == "test" or place.endswith(".rs")):
                files[grammar.language].append((path, place))
    for language, found in sorted(files.items()):
        step = max(1, len(found) // per_language)
        for path, place in found[::step][:per_language]:
            text = path.read_text(encoding="utf-8", errors="replace")
            if len(text) > LONGEST:
                continue
            for kind, edit in mutations(place, text):
                turn += 1
                if turn % every:
                    continue
                changes = [Change(path=one, old=text if one == place else None, new=new) for one, new in edit.items()]
                yield judge(f"{place}: {kind}", language, kind, [*changes, PRODUCT])


def committed(
    repository: Path, most: int, command: str = "", seconds: float = RUN_SECONDS, only: str = ""
) -> Iterator[Judged]:
    """Judge the last commits that touch tests or settings along with source; run those that are doubted."""
    for commit in _git(repository, "log", "--no-merges", "--format=%H", f"-{most * 6}").split():
        changes = list(_changes_of(repository, commit))
        if is_mixed(changes):
            subject = _git(repository, "log", "-1", "--format=%h %s", commit).strip()
            judged = judge(f"{repository.name} {subject}", _language(changes), "commit", changes)
            affected = _affected(repository, commit, changes) if command and judged.fate == "doubted" else []
            if tests := [path for path in affected if re.search(only, path)]:
                judged = replace(judged, ran=_verified(repository, commit, changes, command, tests, seconds))
            yield judged
            most -= 1
        if most == 0:
            return


def _affected(repository: Path, commit: str, changes: Sequence[Change]) -> list[str]:
    """Return the test files of the base that a commit changes; if none, some that speak of what it changes, or any."""

    def runnable(paths: Iterable[str]) -> list[str]:
        return [path for path in paths if part_of(path) == "test" and pattern("judge", "cases").search(path)]

    if changed := runnable(one.path for one in changes if one.old is not None):
        return changed
    names = {PurePath(one.path).stem for one in changes if not is_judge(one.path)} - {"__init__", "index", "README"}
    asked = [word for name in sorted(names) for word in ("-e", name)]
    listed = _git(repository, "grep", "-lwF", *asked, f"{commit}^").splitlines() if asked else []
    near = runnable(line.partition(":")[2] for line in listed)
    return (near or runnable(_git(repository, "ls-tree", "-r", "--name-only", f"{commit}^").splitlines()))[:MOST_TESTS]


def _verified(
    repository: Path, commit: str, changes: Sequence[Change], command: str, tests: Sequence[str], seconds: float
) -> Verdict:
    """Verify a commit in a clone, as the work on a task that names its product files."""
    run = command.replace("{tests}", '"$@"')
    line = f"set -- $(ls -d {shlex.join(tests)} 2>/dev/null); test $# -eq 0 || {run}"
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        clone = Path(scratch) / repository.name
        subprocess.run(["git", "clone", "-q", "--shared", str(repository.absolute()), str(clone)], check=True)
        settings = f"[checks]\ntest = {json.dumps(line)}\n[verify]\nreruns = 0\ntimeouts = {{ test = {seconds} }}\n"
        (clone / "unstuck.toml").write_text(settings, encoding="utf-8")
        files = [one.path for one in changes if not is_judge(one.path)]
        run_stop = RunStop(drain_seconds=0.0)
        return verify_by_hand(clone, commit, files, run_stop, lambda _what, _how: None, cache=False).verdict


def released(old: Path, new: Path) -> Iterator[Judged]:
    """Take two releases of one project for a commit."""
    before, after = _texts(old), _texts(new)
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    changes = [Change(path=path, old=before.get(path), new=after.get(path)) for path in paths]
    if is_mixed(changes):
        yield judge(f"{old.name} → {new.name}", _language(changes), "release", changes)


def is_mixed(changes: Sequence[Change]) -> bool:
    """Tell whether a change touches product and judge."""
    parts = {part_of(one.path) for one in changes if one.old is not None}
    return bool(parts & {"product"}) and bool(parts & {"test", "support", "snapshot", "settings", "commands"})


def _changes_of(repository: Path, commit: str) -> Iterator[Change]:
    listed = _git(repository, "diff-tree", "-r", "--no-commit-id", "--no-renames", "-z", commit).split("\0")
    rows = [(*head.lstrip(":").split(" ")[:4], path) for head, path in zip(listed[::2], listed[1::2], strict=False)]
    texts = _blobs(repository, {name for row in rows for name in row[2:4]})
    for old_mode, new_mode, old, new, path in rows:
        binary = any("\0" in texts.get(name, "") for name in (old, new))
        before, after = ("" if binary and name in texts else texts.get(name) for name in (old, new))
        yield Change(
            path=path, old=before, new=after, old_mode=int(old_mode, 8), new_mode=int(new_mode, 8), binary=binary
        )


def _blobs(repository: Path, names: Collection[str]) -> dict[str, str]:
    """Read the contents of blobs in one go; a name of zeros is none."""
    wanted = sorted(name for name in names if set(name) != {"0"})
    command = ["git", "-C", str(repository), "cat-file", "--batch"]
    given = "".join(f"{name}\n" for name in wanted).encode()
    told = subprocess.run(command, input=given, check=False, capture_output=True).stdout
    texts: dict[str, str] = {}
    for name in wanted:
        head, _, told = told.partition(b"\n")
        if not head.endswith(b" missing"):  # a submodule's commit is not here
            size = int(head.split()[2])
            texts[name], told = told[:size].decode("utf-8", errors="replace"), told[size + 1 :]
    return texts


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *arguments], check=False, capture_output=True)
    return done.stdout.decode("utf-8", errors="replace")


def _texts(folder: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in {".git", "node_modules", ".pc"}]
        for name in names:
            path = Path(root, name)
            if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGEST:
                raw = path.read_bytes()
                if b"\0" not in raw:
                    texts[path.relative_to(folder).as_posix()] = raw.decode("utf-8", errors="replace")
    return texts


def _language(changes: Sequence[Change]) -> str:
    found = Counter(grammar.language for one in changes if (grammar := grammar_of(one.path)) is not None)
    return found.most_common(1)[0][0] if found else "other"


def measure(*, files: int = MOST_FILES, say: Callable[[str], None] = click.echo) -> Report:
    """Weaken our own samples in every language, and judge the adversarial diffs."""
    say("Weakening the samples, and reading the adversarial diffs ...")
    results = list(mutated([SAMPLES], files))
    written = judge_rounds()
    return Report(
        figures={
            "mutations": len(results),
            "languages": {
                name: {
                    "mutations": len(group),
                    "caught": sum(one.stopped[1] for one in group),
                    "told_named": sum(one.told for one in group),
                }
                for name, group in _groups(results, lambda one: one.language)
            },
            "rounds": written.figures,
        },
        lines=(*mutation_lines(results), "", *written.lines),
        targets=tuple(_targets(results)),
    )


def _targets(results: Sequence[Judged]) -> Iterator[Target]:
    for name, group in _groups(results, lambda one: one.language):
        missed, missed_named = (100 - rate for rate in (_rates(group)[0], _rates(group)[2]))
        yield Target(name=f"missed, {name}, tests not named, %", value=missed, at_most=MISSED)
        yield Target(name=f"missed, {name}, tests named, %", value=missed_named, at_most=MISSED_NAMED)


def _groups(results: Sequence[Judged], key: Callable[[Judged], str]) -> Iterator[tuple[str, list[Judged]]]:
    for name in sorted({key(one) for one in results}):
        yield name, [one for one in results if key(one) == name]


def _rates(group: Sequence[Judged]) -> tuple[float, float, float]:
    """Give per cent: caught with the tests not named, caught with them named, caught or told with them named."""
    counts = [
        sum(one.stopped[1] for one in group),
        sum(one.stopped[0] for one in group),
        sum(one.told for one in group),
    ]
    first, second, third = (100 * count / len(group) for count in counts)
    return first, second, third


def mutation_lines(results: Sequence[Judged]) -> Iterator[str]:
    """Say what was caught per language and kind, and what was missed."""
    sorts: dict[str, Callable[[Judged], str]] = {
        "by language": lambda one: one.language,
        "by kind": lambda one: one.kind,
    }
    for title, key in sorts.items():
        yield f"{title:24} mutations   caught, not named   caught, named   caught or told, named"
        for name, group in _groups(results, key):
            rates = _rates(group)
            yield f"{name:24} {len(group):9}   {rates[0]:16.1f}%   {rates[1]:12.1f}%   {rates[2]:20.1f}%"
        yield ""
    yield from (f"missed: {one.title}" for one in results if not one.stopped[1])


def show_honest(results: Sequence[Judged], say: Callable[[str], None] = click.echo) -> None:
    """Print what becomes of honest changes, and list those that do not just land."""
    say(f"\n{'':24}          named   not named: per cent of the changes")
    say(f"{'honest changes':24} number  stopped   " + "".join(f"{fate:>9}" for fate in FATES))
    for name, group in (*_groups(results, lambda one: one.language), ("all", list(results))):
        if group:
            shares = [100 * sum(one.fate == fate for one in group) / len(group) for fate in FATES]
            named = 100 * sum(one.stopped[0] for one in group) / len(group)
            say(f"{name:24} {len(group):6} {named:7.1f}%   " + "".join(f"{share:8.1f}%" for share in shares))
    for one in results:
        if one.stopped[0]:
            say(f"stopped, named: {one.title}")
            _show_findings(one.named, say)
        if one.fate != "lands":
            say(f"{one.fate}, not named: {one.title}")
            _show_findings(one.ran.remarks if one.ran is not None else one.unnamed, say)


def _show_findings(findings: Sequence[Remark], say: Callable[[str], None]) -> None:
    for finding in [one for one in findings if one.severity != "warn"][:3]:
        say(f"    {finding.rule} {finding.path}:{finding.line} {finding.says}")


def watched(results: Iterator[Judged], say: Callable[[str], None] = click.echo) -> Iterator[Judged]:
    """Tell of each change as it is judged; whoever interrupts it sees what it has so far."""
    began = time.monotonic()
    try:
        for number, one in enumerate(results, 1):
            say(f"{number:4} {time.monotonic() - began:6.1f} s  {one.fate:8}  {one.title}")
            yield one
            began = time.monotonic()
    except KeyboardInterrupt:
        say("Interrupted; this is what was seen.")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--commits", type=int, metavar="N", help="judge the last N mixed commits of each repository")
    parser.add_argument("--run", default="", metavar="COMMAND", help="run the tests of commits that are doubted")
    parser.add_argument("--seconds", type=float, default=RUN_SECONDS, metavar="S", help="at most so long for each run")
    parser.add_argument("--only", default="", metavar="PATTERN", help="run only tests whose path fits")
    parser.add_argument("--releases", action="store_true", help="take pairs of folders for commits")
    parser.add_argument("--rounds", action="store_true", help="judge the adversarial diffs written by hand")
    parser.add_argument("--files", type=int, default=MOST_FILES, help="test files per language that are mutated")
    chosen = parser.parse_args(arguments)
    if chosen.rounds:
        click.echo("\n".join(judge_rounds().lines))
        return 0
    if chosen.commits:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # `python` is this one
        asked = (committed(one, chosen.commits, chosen.run, chosen.seconds, chosen.only) for one in chosen.folders)
        show_honest(list(watched(one for repository in asked for one in repository)))
        return 0
    if chosen.releases:
        show_honest(
            [
                one
                for old, new in zip(chosen.folders[::2], chosen.folders[1::2], strict=True)
                for one in released(old, new)
            ]
        )
        return 0
    results = list(mutated(chosen.folders or [SAMPLES], chosen.files))
    click.echo("\n".join(mutation_lines(results)))
    return 0 if all(target.met for target in _targets(results)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
