"""An issue that comes back round after round is recognised. Every case of the group ac-recurring holds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.growth import faster_than_linear

from unstuck.policy.loops import Issue, issue_key, recurring_issues


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Issue: Connection failed", "connection failed||"),
        ("Fix: Missing validation", "missing validation||"),
        ("ERROR:  bug: Two  spaces", "two spaces||"),
        ("Prefix: kept", "prefix: kept||"),
    ],
)
def test_the_key_leaves_announcements_out(title: str, expected: str) -> None:
    assert issue_key(Issue(title=title)) == expected


def test_the_key_names_file_and_line() -> None:
    assert issue_key(Issue(title="No check", file="Cart.py", line=7)) == "no check|cart.py|7"


def test_two_empty_issues_are_alike() -> None:
    assert recurring_issues([Issue()], [[Issue()], [Issue()]]) == ((Issue(), 3),)


def test_an_issue_recurs_from_the_third_round_on() -> None:
    here = [Issue(title="Total is not rounded", file="cart.py", line=10)]
    moved = [Issue(title="Bug: total is not rounded", file="cart.py", line=14)]
    assert recurring_issues([], [here]) == ()
    assert recurring_issues(here, [here]) == ()
    assert [rounds for _, rounds in recurring_issues(here, [moved, here])] == [3]
    assert [rounds for _, rounds in recurring_issues(here, [moved, here, moved])] == [4]


def test_each_recurring_issue_is_named() -> None:
    both = [Issue(title="Error A", file="a.py"), Issue(title="Error B", file="b.py")]
    assert [issue for issue, _ in recurring_issues(both, [both, both])] == both


def test_other_issues_do_not_count() -> None:
    other = [Issue(title="The till is never closed", file="till.py")]
    assert recurring_issues([Issue(title="Total is not rounded", file="cart.py")], [other, other]) == ()


def test_two_similar_remarks_in_one_round_count_once() -> None:
    issue = Issue(title="Total is not rounded", file="cart.py")
    assert recurring_issues([issue], [[issue, issue]]) == ()


def test_long_titles_are_compared_in_linear_time() -> None:
    def compared(text: str) -> None:
        issue = Issue(title=text, file=text)
        assert recurring_issues([issue], [[Issue(title=text[::-1])], [issue], [issue]])

    assert faster_than_linear(["ab" * 100_000], compared) == []


ISSUES = st.builds(Issue, title=st.text(max_size=20), file=st.text(max_size=10), line=st.none() | st.integers())


@given(st.lists(ISSUES, max_size=4), st.lists(st.lists(ISSUES, max_size=3), max_size=4))
@settings(deadline=None)
def test_a_recurring_issue_is_one_of_the_current_ones(current: list[Issue], earlier: list[list[Issue]]) -> None:
    for issue, rounds in recurring_issues(current, earlier):
        assert issue in current
        assert 3 <= rounds <= len(earlier) + 1
