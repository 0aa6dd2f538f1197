"""How values become scores, and which baseline a threshold stands for."""

from __future__ import annotations

import json
import math

import pytest

from pathgauge.collector.core.drift.measure import Measure


@pytest.mark.parametrize(
    ("measure", "target"),
    [
        (Measure(threshold=0.8), 0.8),
        (Measure(0, 5, threshold=4.0), 0.8),
        (Measure(threshold=0.2, higher_is_better=False), 0.8),
        (Measure(threshold=1.0), None),
        (Measure(threshold=1.0, objective=0.95), 0.95),
        (Measure(threshold=0.8, objective=0.95), 0.8),
        (Measure(threshold=0.0, higher_is_better=False, objective=0.9), 0.9),
        (Measure(threshold=0.0, objective=0.9), None),
        (Measure(), None),
        (Measure(0, math.inf, threshold=3.0, higher_is_better=False), None),
    ],
)
def test_the_baseline_is_the_threshold_unless_no_mean_can_reach_it(
    measure: Measure, target: float | None
) -> None:
    assert measure.target == (None if target is None else pytest.approx(target))


def test_values_are_scores_in_the_direction_of_the_metric() -> None:
    stars, rate = Measure(1, 5), Measure(higher_is_better=False)
    assert [stars.score(value) for value in (1, 4, 5, 5.000001)] == [0.0, 0.75, 1.0, 1.0]
    assert [rate.score(value) for value in (0.0, 0.25)] == [1.0, 0.75]
    assert (stars.value(0.75), rate.value(0.75)) == (4.0, 0.25)


@pytest.mark.parametrize(
    "measure",
    [Measure(0, math.inf, higher_is_better=False, fingerprint=7.0), Measure(threshold=0.5)],
)
def test_a_measure_is_kept_as_json(measure: Measure) -> None:
    text = json.dumps(measure.state(), allow_nan=False)
    assert Measure.restored(json.loads(text)) == measure


def test_thresholds_do_not_change_what_is_measured() -> None:
    assert Measure(threshold=0.5).comparable(Measure(threshold=0.6))
    assert not Measure().comparable(Measure(fingerprint=1.0))
    assert not Measure().comparable(Measure(0, 5))
    assert not Measure().comparable(Measure(higher_is_better=False))
