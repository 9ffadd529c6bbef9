"""What remedies teach: the order swaps when the evidence says so, swaps back, and stands where there is none."""

import pytest

from unstuck.model.failure import Kind, RecentFailure
from unstuck.remedies.chain import read_catalog
from unstuck.remedies.learning import Counts, Lessons, order, pattern, proposals

CHAINS = read_catalog().chains


def lived(lessons: Lessons, works: str, times: int, context: str = "python") -> Lessons:
    """Walk the timeout chain as a real walk does, in a world in which one way works."""
    for _ in range(times):
        for way in order(CHAINS["timeout"].strategies, "timeout", context, lessons):
            lessons = lessons.after("timeout", way.name, context, worked=way.name == works)
            if way.name == works:
                break
    return lessons


def first(lessons: Lessons, context: str = "python") -> str:
    return order(CHAINS["timeout"].strategies, "timeout", context, lessons)[0].name


@pytest.mark.parametrize("name", CHAINS)
def test_without_evidence_the_listed_order_stands(name: str) -> None:
    chain = CHAINS[name]
    assert order(chain.strategies, name, "", Lessons()) == chain.strategies


def test_the_order_swaps_after_three_tries_of_each_and_not_before() -> None:
    assert first(lived(Lessons(), "increase_timeout", 2)) == "reduce_scope"
    assert first(lived(Lessons(), "increase_timeout", 3)) == "increase_timeout"


def test_the_order_swaps_back_when_the_world_changes() -> None:
    swapped = lived(Lessons(), "increase_timeout", 10)
    assert first(swapped) == "increase_timeout"
    changed = [first(lived(swapped, "reduce_scope", times)) for times in range(12)]
    assert changed[0] == "increase_timeout"
    assert changed.index("reduce_scope") == 3, "the documented number of walks"


@pytest.mark.parametrize(
    ("listed", "other", "leads"),
    [
        ((40.0, 0.0), (4.0, 0.0), "use_simpler_command"),
        ((5.0, 0.0), (4.0, 0.0), "fix_syntax"),
        ((1.0, 0.4), (90.0, 0.01), "use_simpler_command"),
        ((4.0, 0.0), (40.0, 0.0), "fix_syntax"),
    ],
    ids=["faster", "hardly faster", "cheaper though slower", "slower"],
)
def test_of_two_ways_that_work_as_often_the_one_that_takes_less_goes_first(
    listed: tuple[float, float], other: tuple[float, float], leads: str
) -> None:
    lessons = Lessons()
    for _ in range(3):
        for name, (seconds, cost) in (("fix_syntax", listed), ("use_simpler_command", other)):
            lessons = lessons.after("syntax_error", name, "", worked=True, seconds=seconds, cost=cost)
    assert order(CHAINS["syntax_error"].strategies, "syntax_error", "", lessons)[0].name == leads


def test_one_way_alone_never_changes_the_order() -> None:
    lessons = Lessons()
    for _ in range(50):
        lessons = lessons.after("syntax_error", "use_simpler_command", "", worked=True)
    assert order(CHAINS["syntax_error"].strategies, "syntax_error", "", lessons)[0].name == "fix_syntax"


def test_a_higher_confidence_further_down_is_no_evidence() -> None:
    """Forgekeeper lists `use_simpler_command` (0.9) behind `fix_syntax` (0.8): equal experience leaves it there."""
    lessons = Lessons()
    for _ in range(3):
        for name in ("fix_syntax", "use_simpler_command"):
            lessons = lessons.after("syntax_error", name, "", worked=True)
    assert order(CHAINS["syntax_error"].strategies, "syntax_error", "", lessons)[0].name == "fix_syntax"


def test_a_context_counts_by_itself_once_it_has_enough() -> None:
    lessons = lived(Lessons(), "increase_timeout", 5, context="node")
    assert first(lessons, "go") == "increase_timeout", "what is known elsewhere is better than nothing"
    lessons = lived(lessons, "reduce_scope", 5, context="python")
    assert first(lessons, "python") == "reduce_scope"


def test_few_tries_move_the_confidence_little_and_many_move_it_far() -> None:
    nothing, few, many = Counts(), Counts(), Counts()
    few = few.after(worked=False, steps=1, seconds=0.0)
    for _ in range(60):
        many = many.after(worked=True, steps=1, seconds=0.0)
    assert nothing.blended(0.6) == 0.6
    assert 0.45 < few.blended(0.6) < 0.6
    assert many.blended(0.6) > 0.8
    assert many.tries == many.successes == 60
    assert many.tried < 10.1, "old evidence fades"


def test_failures_count_as_much_as_successes() -> None:
    counts = Counts()
    for worked in [True] * 3 + [False]:
        counts = counts.after(worked=worked, steps=2, seconds=1.0)
    assert (counts.tries, counts.successes, counts.steps) == (4, 3, 8)
    assert counts.blended(0.9) < 0.9


@pytest.mark.parametrize("confidence", [0.4, 0.9, 1.0])
@pytest.mark.parametrize(
    "known", [(), (("python", "mypy"),), (("node", "tsc"), ("python", "mypy"))], ids=["new", "beside", "all"]
)
def test_a_success_never_lowers_a_confidence_and_a_failure_never_raises_it(
    confidence: float, known: tuple[tuple[str, str], ...]
) -> None:
    """Whatever is known of other tools and stacks: neither when their word counts, nor when it no longer does."""
    offenders = []
    for pattern_of in range(2**6):
        lessons, went = Lessons(), [bool(pattern_of >> place & 1) for place in range(6)]
        for context, tool in known:
            for _ in range(10):
                lessons = lessons.after("timeout", "reduce_scope", context, worked=not went[0], tool=tool)
        for worked in went:
            after = lessons.after("timeout", "reduce_scope", "python", worked=worked, tool="ruff")
            before, now = (
                one.rate("timeout", "reduce_scope", "python", "ruff", confidence) for one in (lessons, after)
            )
            if (worked and now < before - 1e-12) or (not worked and now > before + 1e-12):
                offenders.append((went, before, now))
            lessons = after
    assert offenders == []


def test_a_tool_counts_by_itself_once_it_has_enough_and_its_cost_is_kept() -> None:
    lessons = Lessons()
    for _ in range(3):
        lessons = lessons.after("timeout", "reduce_scope", "python", worked=True, tool="ruff", seconds=2.0, cost=0.01)
        lessons = lessons.after("timeout", "reduce_scope", "python", worked=False, tool="mypy")
    assert lessons.of("timeout", "reduce_scope", "python", "ruff").successes == 3
    assert lessons.of("timeout", "reduce_scope", "python", "mypy").successes == 0
    assert lessons.of("timeout", "reduce_scope", "python", "black").tries == 6, "its context, before that"
    assert lessons.of("timeout", "reduce_scope", "python", "ruff").cost == pytest.approx(0.03)


def test_preferences_are_proposed_and_never_assumed() -> None:
    lessons = Lessons()
    for _ in range(5):
        lessons = lessons.after("command_not_found", "manual_installation", "", worked=False)
    for _ in range(3):
        lessons = lessons.with_consent("caution")
    told = proposals(lessons)
    assert any("never" in one and "manual_installation" in one for one in told)
    assert any('allow = "caution"' in one for one in told)
    assert (
        order(CHAINS["command_not_found"].strategies, "command_not_found", "", lessons)[1].name == "manual_installation"
    )


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ([(Kind.COMMAND_NOT_FOUND, name) for name in ("git", "jq", "make")], "bare_machine"),
        ([(Kind.COMMAND_NOT_FOUND, "git")] * 5, None),
        ([(Kind.NETWORK_ERROR, name) for name in ("a", "b", "c")], "no_network"),
        ([(Kind.DEPENDENCY_MISSING, "a"), (Kind.MODULE_MISSING, "b"), (Kind.ENVIRONMENT_MISSING, "c")], "not_set_up"),
        ([(Kind.TIMEOUT, "a"), (Kind.TIMEOUT, "b"), (Kind.OUT_OF_MEMORY, "c")], "overloaded_machine"),
        ([(Kind.DISK_FULL, ""), (Kind.PERMISSION_DENIED, "")], "broken_disk"),
        ([(Kind.TEST_FAILED, name) for name in ("a", "b", "c")], None),
    ],
    ids=["commands", "one-command", "network", "set-up", "overload", "disk", "tests"],
)
def test_several_failures_together_show_one_cause(seen: list[tuple[Kind, str]], found: str | None) -> None:
    recent = [RecentFailure(kind=kind, name=name, at=100.0) for kind, name in seen]
    now = pattern(recent, 200.0)
    assert (now.name if now else None) == found
    assert pattern(recent, 10_000.0) is None, "what is long ago says nothing about now"
