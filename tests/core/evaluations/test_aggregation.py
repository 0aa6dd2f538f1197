"""Aggregates of scores: estimates, intervals and verdicts."""

from __future__ import annotations

import math
import random
from itertools import combinations
from statistics import stdev

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.evaluations.aggregation import (
    Aggregation,
    aggregate,
    verdict,
)
from pathgauge.scorers.types import Scorer
from support.sink_harness import Answer, Rating, Seconds, Waste

RUNS = {"refund": (1.0, 1.0, 0.0, 1.0), "greet": (1.0, 1.0, 1.0)}


def value(aggregation: Aggregation, scorer: Scorer, *scores: float) -> float:
    summary = aggregate(aggregation, scorer, {"refund": scores})
    assert summary is not None
    return summary.value


@pytest.mark.parametrize(
    ("scores", "threshold", "outcome"),
    [
        ((1.0,) * 19 + (0.0,), 0.9, "passed"),
        ((1.0,) * 17 + (0.0,) * 3, 0.9, "failed"),
        ((1.0,) * 9 + (0.0,), 0.9, "passed"),
    ],
)
def test_19_of_20_right_answers_pass_a_mean_of_09(
    scores: tuple[float, ...], threshold: float, outcome: str
) -> None:
    aggregation = Aggregation("agent")
    assert verdict(aggregation, Answer(), threshold, value(aggregation, Answer(), *scores)) == (
        outcome
    )


def test_2_of_20_pass_a_limit_of_15_percent_and_4_do_not() -> None:
    aggregation = Aggregation("agent")
    outcomes = [
        verdict(aggregation, Waste(), 0.15, value(aggregation, Waste(), *(1.0,) * n, *(0.0,) * m))
        for n, m in ((2, 18), (4, 16))
    ]
    assert outcomes == ["passed", "failed"]


def test_a_share_counts_the_runs_that_meet_their_own_threshold() -> None:
    assert value(Aggregation("agent", "share", each=4.0), Rating(), 4.0, 3.9, 5.0, 1.0) == 0.5
    assert value(Aggregation("agent", "share", each=30), Seconds(), 30.0, 29.0, 31.0, 90.0) == 0.5


def test_a_run_must_have_the_best_score_to_pass_unless_told_otherwise() -> None:
    assert value(Aggregation("agent", "share"), Answer(), 1.0, 0.9, 1.0, 1.0) == 0.75
    assert value(Aggregation("agent", "share"), Waste(), 0.0, 0.1, 0.0, 0.0) == 0.75


def test_more_passes_are_better_even_if_lower_scores_are() -> None:
    aggregation = Aggregation("agent", "share", each=30)
    assert verdict(aggregation, Seconds(), 0.9, 1.0) == "passed"
    assert verdict(aggregation, Seconds(), 0.9, 0.5) == "failed"


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=9), st.integers(1, 9))
def test_pass_at_k_and_pass_hat_k_are_the_shares_of_all_choices_of_k_runs(
    scores: list[float], k: int
) -> None:
    for measure, passes in (("pass@k", any), ("pass^k", all)):
        summary = aggregate(
            Aggregation("scenario", measure, k=k),  # type: ignore[arg-type]
            Answer(),
            {"refund": scores},
        )
        if k > len(scores):
            assert summary is None
        else:
            chosen = list(combinations(scores, k))
            expected = sum(map(passes, chosen)) / len(chosen)
            assert summary is not None
            assert summary.value == pytest.approx(expected)


def test_pass_hat_k_of_a_suite_is_the_mean_over_its_scenarios() -> None:
    summary = aggregate(Aggregation("suite", "pass^k", k=2), Answer(), RUNS)
    assert summary is not None
    assert (summary.value, summary.samples) == ((3 / 6 + 1) / 2, 7)


def test_scenarios_with_fewer_than_k_runs_do_not_count() -> None:
    summary = aggregate(Aggregation("suite", "pass^k", k=4), Answer(), RUNS)
    assert summary is not None
    assert (summary.value, summary.samples) == (0.0, 4)
    assert aggregate(Aggregation("suite", "pass^k", k=5), Answer(), RUNS) is None


def test_without_scores_there_is_no_aggregate() -> None:
    assert aggregate(Aggregation("agent"), Answer(), {}) is None
    assert aggregate(Aggregation("agent"), Answer(), {"refund": ()}) is None


def test_the_deviation_is_that_of_all_scores() -> None:
    summary = aggregate(Aggregation("suite"), Seconds(), {"a": (1.0, 4.0), "b": (10.0,)})
    assert summary is not None
    assert summary.value == 5.0
    assert summary.deviation == pytest.approx(stdev([1, 4, 10]))


def test_the_interval_is_that_of_wilson() -> None:
    """The textbook case: 19 of 20."""
    summary = aggregate(Aggregation("agent"), Answer(), {"refund": (1.0,) * 19 + (0.0,)})
    assert summary is not None
    assert (round(summary.low, 4), round(summary.high, 4)) == (0.7639, 0.9911)


def test_the_interval_is_in_the_scale_of_the_scorer() -> None:
    """Ratings from 1 to 5: 0.95 of the way is 4.8."""
    summary = aggregate(Aggregation("agent"), Rating(), {"refund": (5.0,) * 19 + (1.0,)})
    assert summary is not None
    assert summary.value == 4.8
    assert (round(summary.low, 3), round(summary.high, 3)) == (4.055, 4.964)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.sampled_from([("mean", 1), ("share", 1), ("pass@k", 1), ("pass^k", 1)]),
)
def test_the_interval_contains_the_value_and_stays_in_the_range(
    scores: list[float], measured: tuple[str, int]
) -> None:
    measure, k = measured
    aggregation = Aggregation("suite", measure, each=0.5, k=k)  # type: ignore[arg-type]
    summary = aggregate(aggregation, Answer(), {"a": scores[::2], "b": scores[1::2]})
    assert summary is not None
    assert -1e-9 <= summary.low - 1e-9 <= summary.value <= summary.high + 1e-9 <= 1 + 2e-9


@pytest.mark.parametrize("share", [0.5, 0.9, 0.97])
def test_the_interval_covers_the_truth_in_at_least_93_of_100_cases(share: float) -> None:
    """Wilson's interval is near its nominal 95 % on average, and never far below."""
    drawn, covered = random.Random(7), 0
    for _ in range(2000):
        scores = [float(drawn.random() < share) for _ in range(40)]
        summary = aggregate(Aggregation("agent"), Answer(), {"refund": scores})
        assert summary is not None
        covered += summary.low <= share <= summary.high
    assert covered / 2000 >= 0.93


def test_without_an_upper_limit_the_interval_follows_the_deviation() -> None:
    summary = aggregate(Aggregation("agent"), Seconds(), {"refund": (10.0, 12.0, 14.0)})
    assert summary is not None
    assert summary.high - summary.value == pytest.approx(1.96 * 2 / math.sqrt(3), rel=1e-3)
    assert summary.low == pytest.approx(2 * summary.value - summary.high)
