"""The fault box: things broken for real, healed by remedies, and looked at from outside."""

from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.faults.box import Box, CannotBreak, Fault
from benchmarks.remedies import FAULTS, heal, summed_up
from tests.sampling import some

SLOW = (
    "dead_with_copy",
    "limited_side_by_side",
    "mirror_without_it",
    "mirror_with_another_page",
    "broken_copy",
    "half_a_download",
)
"""They wait for a quarter of a minute, as remedies do; `unstuck bench remedies` has them all."""


@pytest.mark.parametrize(
    "make", some((make for make in FAULTS if make.__name__ not in SLOW), every=3), ids=lambda make: make.__name__
)
def test_a_fault_is_healed_and_nothing_else_is_touched(make: Callable[[Box], Fault], tmp_path: Path) -> None:
    try:
        found = heal(make, tmp_path / "box")
    except CannotBreak as reason:
        pytest.skip(str(reason))
    assert found.unharmed
    assert found.chain == found.category
    assert found.healed is not found.needs_person, found.tried
    assert (found.strategy is None) is found.needs_person, found.tried


def test_every_category_of_the_seed_is_broken_in_some_way(tmp_path: Path) -> None:
    assert len(FAULTS) >= 80
    report = summed_up([], [], 1.0)
    assert not report.met, "no fault healed is no success"
