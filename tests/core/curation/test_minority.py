"""Which groups of runs are too rare to be learned from, and how many runs are set aside at most."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.curation.minority import Budget, Cut, bound, rare


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([180, 20], [20]),
        ([160, 40], []),  # more than bad runs explain
        ([100, 50, 25, 12, 6, 3], []),  # no gap
        ([60] * 10 + [20], [20]),
        ([60] * 10 + [21], []),  # not three times as rare
        ([12, 2], [2]),
        ([9, 3], []),  # a small sample has such gaps by chance
        ([*[1] * 40], []),
    ],
)
def test_groups_behind_a_gap_are_rare(sizes: list[int], found: list[int]) -> None:
    groups = {number: range(size) for number, size in enumerate(sizes)}
    assert [len(groups[key]) for key in rare(groups, 0.1)] == found


def test_the_rarest_deviations_are_set_aside_first_as_far_as_the_budget_goes() -> None:
    budget = Budget(100, 0.1)
    assert bound(100, 0.1) == 14
    budget.take([Cut(frozenset(range(12)), "often"), Cut(frozenset({50, 51, 52}), "seldom")])
    assert [cut.why for cut in budget.cuts] == ["seldom"]
    budget.take([Cut(frozenset(range(40, 51)), "more")])
    assert budget.cuts[-1] == Cut(frozenset(range(40, 50)), "more")
    assert budget.kept(range(48, 54)) == [53]


def test_without_bad_runs_nothing_is_set_aside() -> None:
    assert bound(1_000, 0) == 0
    assert list(rare({"a": range(999), "b": range(1)}, 0)) == []
