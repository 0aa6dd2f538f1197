"""The standard deviation of scores."""

from __future__ import annotations

import math
import statistics
import sys

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.evaluations.statistics import deviation_of

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(VALUES)
def test_the_deviation_is_that_of_a_sample(values: list[float]) -> None:
    variance = statistics.variance(values) if len(values) > 1 else 0.0
    assert deviation_of(values) ** 2 == pytest.approx(variance, rel=1e-6, abs=1e-5)


def test_equal_numbers_do_not_deviate() -> None:
    assert deviation_of([0.7] * 1000) == 0.0


def test_the_deviation_of_enormous_numbers_is_finite() -> None:
    assert deviation_of([1e308, 0.0, 1e308]) == math.sqrt(sys.float_info.max / 2)
