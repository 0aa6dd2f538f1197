"""Count, mean and variance of a stream of numbers."""

from __future__ import annotations

import statistics
import sys

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.evaluations.statistics import RunningStatistics, statistics_of

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(VALUES)
def test_statistics_are_the_same_one_by_one_and_at_once(
    values: list[float],
) -> None:
    streamed = RunningStatistics()
    for value in values:
        streamed = streamed.plus(value)
    for moments in (streamed, statistics_of(values)):
        assert moments.samples == len(values)
        assert moments.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
        assert moments.variance == pytest.approx(
            statistics.variance(values) if len(values) > 1 else 0.0, rel=1e-6, abs=1e-5
        )


def test_equal_numbers_have_no_variance() -> None:
    streamed = RunningStatistics()
    for _ in range(1000):
        streamed = streamed.plus(0.7)
    assert streamed == RunningStatistics(1000, 0.7, 0.0)
    assert statistics_of([0.7] * 1000) == RunningStatistics(1000, 0.7, 0.0)


def test_enormous_numbers_stay_finite() -> None:
    streamed = RunningStatistics().plus(1e308).plus(0.0).plus(1e308)
    assert (streamed.squares, statistics_of([1e308, 0.0, 1e308]).squares) == (
        sys.float_info.max,
        sys.float_info.max,
    )
    assert streamed.mean == pytest.approx(6.666666666666667e307)
