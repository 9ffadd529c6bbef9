"""Measure slots against what git itself offers: made, used again and landed from, beside a linked worktree in the same run."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.report import Report, Target
from unstuck.git.repository import RepositoryChanges, find_repository
from unstuck.git.shared_objects import SharedObjects
from unstuck.git.workspace import GitWorkspace
from unstuck.model.landing import Landing

FILES, COMMITS = 50_000, 25_000
"""A repository with many files, and one with much history: four objects per commit."""
ROUNDS, USES = 5, 5
"""Folders that are made each way, and how often each is used: what takes milliseconds is told by more than five readings."""
RATIO = 1.0
Step = Callable[[], object]


def measure(
    *, files: int = FILES, commits: int = COMMITS, rounds: int = ROUNDS, say: Callable[[str], None] = print
) -> Report:
    """Make both repositories, and do each step both ways, one after the other."""
    ratios: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        for name, lines in (
            (f"{files} files", many_files(files)),
            (f"{4 * commits} objects of history", much_history(commits)),
        ):
            say(f"Making a repository with {name} ...")
            root = Path(scratch, name.replace(" ", "-"))
            make_repository(root, lines)
            ratios |= {f"{step}, {name}": times for step, times in compare(root, rounds).items()}
    lines_told = [f"  {'slot':>8}  {'worktree':>8}  ratio"]
    lines_told += [
        f"  {ours:5.0f} ms  {git:5.0f} ms  {ours / git:5.2f}  {name}" for name, (ours, git) in ratios.items()
    ]
    targets = (Target(name="slot / worktree", value=max(ours / git for ours, git in ratios.values()), at_most=RATIO),)
    return Report(figures={"milliseconds": ratios}, lines=tuple(lines_told), targets=targets)


def compare(root: Path, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median milliseconds of each step: ours, and that of a linked worktree."""
    repository = find_repository(root)
    work = GitWorkspace(
        run="bench",
        identity=repository.identity(),
        slots=root.parent / f"{root.name}-slots",
        shared=SharedObjects(repository),
        repository_changes=RepositoryChanges(repository),
    )
    work.open_branch(repository.head)
    work.shared.git_folder_template()
    times: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        linked, apart = root.parent / f"{root.name}-linked{number}", root.parent / f"{root.name}{number}.index"
        by_git = Linked(root, linked, apart)
        for use in range(USES):
            for name, (ours, git) in steps(work, number, linked, by_git, new=not use).items():
                ours_first = (number + use) % 2  # whoever comes second finds a warm cache
                spent = [_seconds(step) for step in ((ours, git) if ours_first else (git, ours))]
                times.setdefault(name, []).append((spent[0], spent[1]) if ours_first else (spent[1], spent[0]))
    return {
        name: (1000 * statistics.median(pair[0] for pair in pairs), 1000 * statistics.median(pair[1] for pair in pairs))
        for name, pairs in times.items()
    }


def steps(work: GitWorkspace, slot: int, linked: Path, git: "Linked", *, new: bool) -> Mapping[str, tuple[Step, Step]]:
    """Return each step in both ways: make a new folder, land what is in it, use it again after an agent."""
    base = work.tip()

    def change() -> None:
        for folder in (work.path(slot), linked):
            (folder / "new.txt").write_text(f"{slot} {base}\n")

    def land() -> str | None:
        change()
        return work.land(Landing(tree=work.write_tree(slot, base).id, base=base, message="Land it\n", at=0.0))

    def land_by_git() -> None:
        change()
        git.land(base)

    return {
        **({"made": (lambda: work.prepare(slot, base), git.make)} if new else {}),
        "landed": (land, land_by_git),
        "used again": (lambda: work.prepare(slot, base), git.reset),
    }


class Linked:
    """The same steps with `git worktree`, and with the private index without which an agent decides what lands."""

    def __init__(self, root: Path, folder: Path, index: Path) -> None:
        self.root = root
        self.folder = folder
        self._env = {"GIT_INDEX_FILE": str(index)}

    def make(self) -> None:
        _git(self.root, "worktree", "add", "--quiet", "--detach", "--no-checkout", str(self.folder))
        self.reset()

    def land(self, base: str) -> None:
        _git(self.folder, "add", "-A", "--", ":/", env=self._env)
        _git(self.folder, "diff-index", "--cached", "--raw", "-z", base, env=self._env)
        tree = _git(self.folder, "write-tree", env=self._env)
        _git(self.root, "update-ref", "refs/unstuck/held", tree)  # no index of the worktree's keeps it from `git gc`
        commit = _git(self.root, "commit-tree", tree, "-p", base, "-m", "Land it")
        _git(self.root, "update-ref", "refs/heads/linked", commit)

    def reset(self) -> None:
        _git(self.folder, "checkout", "--quiet", "--force", "--detach", "HEAD", env=self._env)
        _git(self.folder, "clean", "-ffd", env=self._env)
        _git(self.folder, "ls-tree", "-r", "-d", "-z", "HEAD")


def many_files(count: int) -> Iterator[str]:
    """Yield one commit of so many small files, as `git fast-import` reads it."""
    yield from ("commit refs/heads/main", "committer Bench <bench@localhost> 0 +0000", "data 0")
    for number in range(count):
        yield from (f"M 644 inline d{number % 500}/f{number}.txt", f"data {len(str(number))}", str(number))


def much_history(commits: int) -> Iterator[str]:
    """Yield so many commits of one file two folders deep: a commit, two trees and a blob each."""
    for number in range(commits):
        yield from ("commit refs/heads/main", "committer Bench <bench@localhost> 0 +0000", "data 0")
        text = f"{number} in a long history"
        yield from (f"M 644 inline d{number % 100}/f.txt", f"data {len(text)}", text)


def make_repository(root: Path, lines: Iterator[str]) -> None:
    root.mkdir()
    _git(root, "init", "--quiet", "--initial-branch=main")
    _git(root, "fast-import", "--quiet", stdin="\n".join([*lines, ""]))
    _git(root, "reset", "--quiet", "--hard")


def _seconds(step: Step) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def _git(root: Path, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    who = {f"GIT_{role}_{part}": "bench@localhost" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    settings = (
        "-c",
        "core.fsync=committed,reference",
        "-c",
        "core.fsyncMethod=batch",
        "-c",
        "core.hooksPath=/dev/null",
    )
    done = subprocess.run(
        ["git", *settings, *arguments],
        cwd=root,
        input=stdin,
        env={**os.environ, **who, **(env or {})},
        text=True,
        check=True,
        capture_output=True,
    )
    return done.stdout.strip()
