"""e-BH: evidence adjusted for the number of series."""

from __future__ import annotations

from hypothesis import given, strategies as st

from pathgauge.collector.core.drift.adjusting import adjusted

evidences = st.lists(st.floats(0, 1e9), max_size=30)


def test_the_largest_of_n_series_keeps_one_nth() -> None:
    assert adjusted([0.0, 400.0, 0.0, 0.0]) == [0.0, 100.0, 0.0, 0.0]


def test_series_that_fall_together_keep_more() -> None:
    assert adjusted([300.0, 0.0, 400.0, 300.0]) == [225.0, 0.0, 225.0, 225.0]


def test_one_series_keeps_all_and_none_is_none() -> None:
    assert (adjusted([7.5]), adjusted([])) == ([7.5], [])


@given(evidences)
def test_each_equals_its_definition(evidence: list[float]) -> None:
    ranked = sorted(evidence, reverse=True)
    count = len(ranked)
    by_rank = [
        max((j + 1) * ranked[j] / count for j in range(rank, count)) for rank in range(count)
    ]
    found = sorted(adjusted(evidence), reverse=True)
    assert all(abs(one - other) <= 1e-9 * one for one, other in zip(by_rank, found, strict=True))


@given(evidences)
def test_it_never_exceeds_the_evidence_and_keeps_the_order(evidence: list[float]) -> None:
    pairs = sorted(zip(evidence, adjusted(evidence), strict=True))
    assert all(after <= before for before, after in pairs)
    assert [after for _, after in pairs] == sorted(after for _, after in pairs)


@given(evidences, st.floats(1e-3, 1e6))
def test_the_expected_number_of_false_discoveries_stays_bounded(
    evidence: list[float], limit: float
) -> None:
    """Series above a limit have so much evidence that e-values bound the false ones among them."""
    found = [one for one, after in zip(evidence, adjusted(evidence), strict=True) if after >= limit]
    assert all(one * len(found) >= limit * len(evidence) * (1 - 1e-9) for one in found)
