"""The kill matrix: SIGKILL the supervisor anywhere, take the run up again, and nobody can tell the difference.

Real processes, git and SQLite. Every row is a supervisor that dies at one place, and one that goes on to the end.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.engine.conftest import Result, World

ATTEMPT = ("attempt_started", "session_started", "session_ended", "verified", "classified", "decided", "acted")
MERGED_AGAIN = ("rebased", "verified", "classified", "decided")

APPENDS = [
    "run_started run 1",
    *(f"{event} 1.1 1" for event in ATTEMPT),
    *(f"{event} 1.1 2" for event in ATTEMPT),
    *(f"{event} 1.2 1" for event in ATTEMPT),
    *(f"{event} 1.3 1" for event in ATTEMPT),
    *(f"{event} 1.3 {1 if event == 'rebased' else 2}" for event in MERGED_AGAIN),
    "brought_home run 1",
    "run_ended run 1",
]
"""Every append of an undisturbed run; a test below compares this with a real one."""

GIT_CALLS = (
    "run-branch 1",
    "slot-made 1",
    *("slot-filled 1", "second-slot-filled 1"),
    *("work-staged 1", "tree-written 1", "tree-kept 1", "commit-written 1"),
    "snapshot 1",
    "rollback 1",
    "slot-emptied 1",
    *("landing 1", "landing 2", "landing 3"),
    "siblings-merged 1",
    "run-merged 1",
    *("plan-written 1", "plan-staged 1", "plan-staged 2", "index-refreshed 1", "plan-tree 1", "plan-commit 1"),
    *(f"question {number}" for number in range(1, 80, 8)),
)
"""Git calls of an undisturbed run by what they are for; see GIT_FACTS."""

CUT_SHORT = (
    *("slot-filled 1", "rollback 1", "work-staged 1", "snapshot 1"),
    *("landing 1", "run-merged 1", "plan-staged 1"),
)
LATE = ("rollback 1", "snapshot 1", "landing 1", "run-merged 1")

IN_COMMANDS = {
    "set-up": "while a slot is set up",
    "agent": "while an agent works, with a daemon of its own",
    "agent+shim": "together with the process that guards the agent",
    "second-attempt": "while the agent makes its second attempt",
    "side-by-side": "while two agents work",
    "check": "while a check runs",
    "gate": "while a gate of the repository runs",
}

FILES = (
    "phase-1.1.json",
    "phase-1.3.json",
    "attempt_history.json",
    "build_commits.json",
    "tasks.md",
    "config.json",
    "w0.json",
    "w0.ready",
)

TWICE = [
    ("agent", "agent"),
    ("agent", "after append noted run 1"),
    ("agent+shim", "after append run_resumed run 1"),
    ("agent", "after append session_ended 1.1 1"),
    ("after append decided 1.1 1", "before append acted 1.1 1"),
    ("before append acted 1.1 2", "before append acted 1.1 1"),
    ("side-by-side", "before append run_resumed run 1"),
    ("before append rebased 1.3 1", "after append rebased 1.3 1"),
    ("before append brought_home run 1", "before append brought_home run 1"),
    ("after append brought_home run 1", "after append run_resumed run 1"),
]


UNFORCED = [
    *("after append attempt_started 1.1 2", "after append verified 1.1 1", "after append classified 1.1 2"),
    *("after append acted 1.1 1", "after append acted 1.1 2", "after append acted 1.2 1", "after append acted 1.3 1"),
    *("before append session_started 1.1 1", "before append decided 1.3 2", "before append brought_home run 1"),
    ("agent", "after append noted run 1"),
]
"""Places at which a power cut takes facts with it that were not forced to the disk: what was done stays done."""


def sampled(places: Sequence[Any], moments: Sequence[str] = ()) -> list[Any]:
    """Return the rows of the matrix; nine of ten are left to `make exhaustive`, so that every run of the tests kills
    at different kinds of places and still ends soon."""
    rows = [(place, moment) for place in places for moment in moments] if moments else [(place,) for place in places]
    names = ["-".join(str(part).replace(" ", "-") for part in row) for row in rows]
    return [
        pytest.param(*row, id=name, marks=() if number % 10 == number // 10 % 10 else pytest.mark.exhaustive)
        for number, (row, name) in enumerate(zip(rows, names, strict=True))
    ]


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a run comes to when nobody dies."""

    result: "Result"
    appends: tuple[str, ...]
    git_calls: frozenset[str]


@pytest.fixture(scope="session")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, make_world: Callable[..., "World"]
) -> Callable[[str], Undisturbed]:
    """Return a function that tells what a run with this commit mode comes to."""
    known: dict[str, Undisturbed] = {}

    def tell(commit: str) -> Undisturbed:
        if commit not in known:
            world = make_world(tmp_path_factory.mktemp("undisturbed"), counting=True)
            done = world.live(commit)
            known[commit] = Undisturbed(world.result(done.returncode), tuple(_appends(world)), world.git_calls())
        return known[commit]

    return tell


def test_the_table_of_appends_is_that_of_a_run(undisturbed: Callable[[str], Undisturbed]) -> None:
    """Notes about a task are left out: they tell of what else happens on the machine meanwhile, and decide nothing."""
    for commit in ("auto", "message-only"):
        appends = [one for one in undisturbed(commit).appends if not one.startswith("noted 1.")]
        assert sorted(appends) == sorted(APPENDS)


def test_a_run_makes_every_git_call_of_the_table(undisturbed: Callable[[str], Undisturbed]) -> None:
    assert undisturbed("auto").git_calls >= {*GIT_CALLS, *CUT_SHORT, *LATE}


def test_an_undisturbed_run_fails_once_and_lands_everything(undisturbed: Callable[[str], Undisturbed]) -> None:
    result = undisturbed("auto").result
    assert result.exit_code == 0
    assert result.tasks == {
        "1.1": ("complete", 2, 1, "feat: write a|1.1|2"),
        "1.2": ("complete", 1, 0, "feat: write b|1.2|1"),
        "1.3": ("complete", 1, 0, "feat: write c|1.3|1"),
    }
    assert result.landed == ("feat: write a|1.1|2", "feat: write b|1.2|1", "feat: write c|1.3|1")
    assert result.user_log == "first\nfeat: write a\nfeat: write b\nfeat: write c\nTick the plan\n"


@pytest.mark.parametrize(("append", "moment"), sampled(APPENDS, ("before", "after")))
def test_dying_at_an_append_changes_nothing(expect_survival: Callable[..., None], moment: str, append: str) -> None:
    expect_survival(f"{moment} append {append}", commit="message-only")


@pytest.mark.parametrize(
    ("append", "moment"), sampled(("acted 1.3 1", "brought_home run 1", "run_ended run 1"), ("before", "after"))
)
def test_dying_on_the_way_home_changes_nothing(expect_survival: Callable[..., None], moment: str, append: str) -> None:
    expect_survival(f"{moment} append {append}", commit="auto")


@pytest.mark.parametrize(("call", "moment"), sampled(GIT_CALLS, ("before", "during")))
def test_dying_at_a_git_call_changes_nothing(expect_survival: Callable[..., None], moment: str, call: str) -> None:
    expect_survival(f"{moment} git {call}", commit="auto", counting=True)


@pytest.mark.parametrize("call", sampled(CUT_SHORT))
def test_dying_together_with_git_changes_nothing(expect_survival: Callable[..., None], call: str) -> None:
    expect_survival(f"inside git {call}", commit="auto", counting=True)


@pytest.mark.parametrize("call", sampled(LATE))
def test_a_git_command_that_outlives_its_supervisor_changes_nothing(
    expect_survival: Callable[..., None], call: str
) -> None:
    expect_survival(f"late git {call}", commit="auto", counting=True)


@pytest.mark.parametrize("place", IN_COMMANDS)
def test_dying_while_a_command_runs_changes_nothing(expect_survival: Callable[..., None], place: str) -> None:
    expect_survival(place, commit="message-only")


@pytest.mark.parametrize(("name", "moment"), sampled(FILES, ("before", "after")))
def test_dying_while_a_file_is_put_changes_nothing(
    expect_survival: Callable[..., None], moment: str, name: str
) -> None:
    expect_survival(f"{moment} rename {name} 1", commit="message-only")


@pytest.mark.parametrize("place", sampled(UNFORCED))
def test_a_power_cut_that_takes_the_last_facts_changes_nothing(
    expect_survival: Callable[..., None], place: str | tuple[str, str]
) -> None:
    expect_survival(*((place,) if isinstance(place, str) else place), commit="auto", power_cut=True)


@pytest.mark.parametrize("places", sampled(TWICE))
def test_dying_twice_changes_nothing(expect_survival: Callable[..., None], places: tuple[str, str]) -> None:
    expect_survival(*places, commit="auto")


@pytest.fixture
def expect_survival(
    tmp_path: Path,
    make_world: Callable[..., "World"],
    undisturbed: Callable[[str], Undisturbed],
    fingerprint: Callable[[Path], Mapping[str, Any]],
) -> Iterator[Callable[..., None]]:
    """Return the whole story: die at each place in turn, go on, and compare with a run in which nobody died."""
    worlds: list[World] = []

    def live_through(*places: str, commit: str, counting: bool = False, power_cut: bool = False) -> None:
        world = make_world(tmp_path, counting=counting)
        worlds.append(world)
        before = fingerprint(world.root)
        for place in places:
            world.die(place, commit)
            world.await_no_processes(guarded="+shim" not in place)
            if power_cut and place == places[-1]:
                lost = world.lose_what_was_not_forced()
                assert lost or not place.startswith("after"), "nothing was forced since the last fact"
                assert not lost or "brought_home" not in place, "the plan's ticks say it, so it was forced before"
        done = world.go_on_together_with_late_git() if places[-1].startswith("late") else world.go_on(commit)
        assert done.returncode == 0, done.stderr
        assert world.processes() == ()
        assert world.result(done.returncode) == undisturbed(commit).result
        assert len(world.runs()) == 1
        assert world.litter() == ()
        assert world.fsck() == ""
        check = _check_untouched if commit == "message-only" else _check_brought_home
        check(world.root, before, fingerprint(world.root))

    yield live_through
    for world in worlds:
        world.end_processes()


def _check_untouched(root: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Check that nothing of the user's changed, except for the plan's ticks."""
    same = ("index", "HEAD", "config", "stash", "refs")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert _files(root, after) == _files(root, before)
    assert set(after["status"].split(b"\0")) == {*before["status"].split(b"\0"), b" M tasks.md"}


def _check_brought_home(root: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Check that the branch moved and the run's files were added, and that all the user was about is as it was."""
    same = ("HEAD", "config", "stash", "status")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert _files(root, after) == {**_files(root, before), b"a": b"a\n", b"b": b"b\n", b"c": b"c\n"}
    branches = [[line for line in one["refs"] if "refs/heads/main" not in line] for one in (before, after)]
    assert branches[0] == branches[1]


def _files(root: Path, fingerprint: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Return the content of all files but the plan, which is compared as a whole elsewhere."""
    top = os.fsencode(root) + b"/"
    files = {name.removeprefix(top): content for name, (_, content) in fingerprint["files"].items()}
    return {name: content for name, content in files.items() if name != b"tasks.md"}


def _appends(world: "World") -> Iterator[str]:
    count: Counter[str] = Counter()
    for entry in world.entries():
        name = f"{entry.event.type} {getattr(entry.event, 'task', None) or 'run'}"
        count[name] += 1
        yield f"{name} {count[name]}"
