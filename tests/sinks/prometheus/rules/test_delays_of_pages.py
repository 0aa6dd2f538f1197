"""How long a change for the worse takes until its page: the median of many courses with a baseline
that was learned for 8 days (3 days with 1,000 evaluations an hour, 14 for latency). The mean falls
from 0.95. `make noise` runs 200 courses of each fall (100 of the others), and
prints the medians for `docs/alerting.md`.
"""

from __future__ import annotations

import os
from statistics import median

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion
from support.drift_course import PASS, Draw, DriftCourse, Sender, passing
from support.drift_learning import learned
from support.sink_harness import Seconds

LONG = "NOISE" in os.environ
RUNS = 200 if LONG else 25
FEWER_RUNS = 100 if LONG else 25
SHORT_SLACK = 1.0 if LONG else 1.5
"""The median of few courses varies more."""
LATENCY = Criterion("latency", Seconds())

FALLS = [
    (10, 8, 0.80, 9.3),
    (10, 8, 0.60, 2.4),
    (10, 8, 0.0, 0.6),
    (100, 8, 0.90, 7.7),
    (100, 8, 0.80, 1.1),
    (100, 8, 0.60, 0.26),
    (100, 8, 0.0, 0.05),
    (1000, 3, 0.90, 1.1),
    (1000, 3, 0.80, 0.11),
    (1000, 3, 0.60, 0.03),
    (1000, 3, 0.0, 0.01),
]
"""Evaluations an hour, days of learning, mean after the fall, expected hours."""


CANARIES = [(0.9, 31.0), (0.8, 3.7), (0.6, 0.84)]


def after_learning(seed: str, days: float, criterion: Criterion, *senders: Sender) -> DriftCourse:
    """A course with another seed if there happens to be a false alarm at its start."""
    for attempt in range(10):
        rows = learned(f"{seed} {attempt}", days, criterion, senders)
        if rows is not None:
            course = DriftCourse(seed, criterion)
            course.learned(rows)
            return course
    raise AssertionError("false alarms in ten courses")


def report(name: str, hours: list[float]) -> float:
    middle, quarter = median(hours), len(hours) // 4
    low, high = sorted(hours)[quarter], sorted(hours)[-quarter - 1]
    print(f"\n{name}: median {middle:.3g} h, quartiles {low:.3g} and {high:.3g}")
    return middle


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "days", "mean", "expected"), FALLS if LONG else [FALLS[0], FALLS[1], FALLS[2]]
)
def test_a_fall_pages_within_the_expected_time(
    rate: int, days: float, mean: float, expected: float
) -> None:
    hours = [
        after_learning(f"fall {run}", days, PASS, Sender(rate, passing(0.95))).hours_until_page(
            1000, Sender(rate, passing(mean))
        )
        for run in range(RUNS)
    ]
    assert report(f"{rate}/h to {mean}", hours) <= 1.15 * SHORT_SLACK * expected


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "expected"), CANARIES if LONG else CANARIES[1:])
def test_a_worse_canary_pages_within_the_expected_time(mean: float, expected: float) -> None:
    """A canary gets 10 of 100 evaluations an hour. Expected is what 2,000 runs of the same detector
    with the baseline 0.94, which is 0.01 below the true mean, have shown.
    """
    before = Sender(90, passing(0.95), {"agent_version": "v1"})
    canary = Sender(10, passing(mean), {"agent_version": "v2"})
    hours = [
        after_learning(f"canary {run}", 8, PASS, before).hours_until_page(1000, before, canary)
        for run in range(FEWER_RUNS)
    ]
    assert report(f"canary to {mean}", hours) <= 1.15 * SHORT_SLACK * expected


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "expected"), [(0.5, 2.9), (0.8, 5.5)])
def test_a_latency_that_doubles_pages_within_the_expected_time(
    spread: float, expected: float
) -> None:
    """Log-normal latencies; `spread` is the standard deviation of the logarithm."""

    def latency(median_s: float) -> Draw:
        return lambda random: median_s * random.lognormvariate(0, spread)

    hours = [
        after_learning(f"latency {run}", 14, LATENCY, Sender(10, latency(1))).hours_until_page(
            1000, Sender(10, latency(2))
        )
        for run in range(FEWER_RUNS)
    ]
    assert report(f"latency with spread {spread}", hours) <= 1.15 * SHORT_SLACK * expected
