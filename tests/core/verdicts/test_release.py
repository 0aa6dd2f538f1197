"""The verdict on a release: by metric, within scenarios, and over all metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from pathgauge.collector.core.verdicts.comparison import (
    Outcome,
    Scores,
    Side,
    Stratum,
    Terms,
    compare,
)
from pathgauge.collector.core.verdicts.confidence import Interval
from pathgauge.collector.core.verdicts.pairing import Pair
from pathgauge.collector.core.verdicts.release import decide
from pathgauge.collector.core.verdicts.scale import Scale

SHARE = Scale(0.0, 1.0, higher_is_better=True)
RATE = Scale(0.0, 1.0, higher_is_better=False)
GRADES = Scale(1.0, 5.0, higher_is_better=True)
SECONDS = Scale(0.0, math.inf, higher_is_better=False)


def scores(
    candidate: Iterable[float | None],
    baseline: Iterable[float | None],
    *,
    scale: Scale = SHARE,
    scenario: str = "refund",
    into: Scores | None = None,
    measured_by: tuple[str, ...] = (),
) -> Scores:
    """Those of the baseline come first."""
    found = into or Scores(scale.measure)
    stratum = Stratum("", scenario, scale, measured_by)
    for value in baseline:
        found.add(stratum, value, is_candidate=False)
    for value in candidate:
        found.add(stratum, value, is_candidate=True)
    return found


GOOD, BAD = [1.0] * 40, [0.0] * 40
SAME = [1.0] * 400


@pytest.mark.parametrize(
    ("scale", "candidate", "baseline", "difference"),
    [
        (SHARE, [0.25], [1.0], -0.75),
        (RATE, [0.25], [1.0], 0.75),
        (GRADES, [5.0], [3.0], 0.5),
        (SHARE, [1.0], [1.0, 0.0], 0.5),
        (SECONDS, [3.0], [1.0], -1.0),
        (SECONDS, [1.0], [3.0], 1.0),
        (SECONDS, [1.0], [0.95], 0.0),
        (SECONDS, [0.0], [0.0], 0.0),
        (SECONDS, [2.0], [1.0, 2.0, 4.0, 1.9], 0.0),
        (SECONDS, [2.0], [1.0, 1.0, 4.0, 2.1], -0.25),
        (Scale(0.0, math.inf, higher_is_better=True), [3.0], [1.0], 1.0),
    ],
)
def test_a_difference_is_a_share_of_the_range_or_the_order(
    scale: Scale, candidate: list[float], baseline: list[float], difference: float
) -> None:
    assert scale.difference(Pair(candidate, baseline)) == difference


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-0.3, -0.02, "worse"),
        (-0.3, -0.01, "undecided"),
        (-0.3, 0.3, "undecided"),
        (-0.05, 0.3, "undecided"),
        (-0.04, 0.3, "not_worse"),
        (-0.04, -0.02, "worse"),
        (0.01, 0.3, "not_worse"),
        (0.02, 0.3, "better"),
    ],
)
def test_an_interval_is_compared_with_margin_and_least_effect(
    low: float, high: float, outcome: Outcome
) -> None:
    assert Terms(margin=0.05, min_effect=0.015).outcome(Interval(low, high)) == outcome


@pytest.mark.parametrize(
    ("candidate", "baseline", "outcome"),
    [
        (BAD, GOOD, "worse"),
        (GOOD, BAD, "better"),
        (SAME, SAME, "not_worse"),
        (GOOD[:9], GOOD[:9], "undecided"),
    ],
)
def test_a_metric_has_a_verdict(
    candidate: list[float], baseline: list[float], outcome: Outcome
) -> None:
    found = compare("exact", scores(candidate, baseline), Terms(), 1)
    assert found.outcome == outcome
    assert found.interval.low <= (found.mean("difference") or 0.0) <= found.interval.high


def test_a_change_of_the_mix_of_scenarios_is_no_difference() -> None:
    """The hard scenario, which always fails, has a tenth of the results before, then nearly all."""
    hard = scores([0.0] * 300, [0.0] * 40, scenario="hard")
    both = scores([1.0] * 40, [1.0] * 300, scenario="easy", into=hard)
    found = compare("exact", both, Terms(), 1)
    assert (found.outcome, found.mean("difference")) == ("undecided", 0.0)


def test_scenarios_are_listed_the_worst_first_with_their_means() -> None:
    easy = scores([1.0] * 10, [1.0] * 10, scenario="easy")
    both = scores([0.5] * 30, [1.0] * 30, scenario="hard", into=easy)
    found = compare("exact", both, Terms(), 1)
    listed = [(one.scenario, one.pairs, one.difference) for one in found.scenarios]
    assert listed == [("hard", 30, -0.5), ("easy", 10, 0.0)]
    assert (found.pairs, found.mean("candidate"), found.mean("baseline")) == (40, 0.625, 1.0)
    assert found.mean("difference") == -0.375


def test_scores_that_were_measured_in_another_way_are_not_compared() -> None:
    before = scores([], GOOD, measured_by=("exact 1", "", "v1"))
    both = scores(BAD, [], measured_by=("exact 1", "", "v2"), into=before)
    found = compare("exact", both, Terms(), 1)
    assert (found.outcome, found.reason, found.pairs) == ("undecided", "no_shared_scenario", 0)
    assert found.mean("difference") is None


def test_results_without_a_score_are_counted_and_are_not_zero() -> None:
    found = compare("exact", scores([None] * 40, GOOD), Terms(), 1)
    assert (found.outcome, found.reason) == ("undecided", "no_scores_of_version")
    assert (found.candidate, found.baseline) == (Side(0, 40), Side(40, 0))
    assert compare("exact", scores([*SAME, None], SAME), Terms(), 1).outcome == "not_worse"


def test_a_metric_says_why_it_is_undecided() -> None:
    reasons = [
        compare("exact", scores(candidate, baseline), Terms(), 1).reason
        for candidate, baseline in (([], []), (GOOD, []), (GOOD[:5], GOOD), (SAME, SAME))
    ]
    assert reasons == ["no_scores", "no_scores_of_baseline", "too_few_pairs", None]


WORSE, BETTER = scores(BAD, GOOD), scores(GOOD, BAD)
EQUAL, UNKNOWN = scores(SAME, SAME), scores(GOOD[:5], GOOD[:5])
NONE, LOST, NEW = scores([], []), scores([None], GOOD), scores(GOOD, [])


@pytest.mark.parametrize(
    ("metrics", "outcome"),
    [
        ([], "undecided"),
        ([NONE], "undecided"),
        ([NEW], "undecided"),
        ([WORSE, BETTER, UNKNOWN], "worse"),
        ([BETTER, EQUAL], "better"),
        ([EQUAL, EQUAL], "not_worse"),
        ([BETTER, UNKNOWN], "undecided"),
        ([BETTER, LOST], "undecided"),
        ([BETTER, NONE, NEW], "better"),
    ],
)
def test_the_verdict_needs_all_metrics_unless_one_is_worse(
    metrics: list[Scores], outcome: Outcome
) -> None:
    found = decide({str(number): one for number, one in enumerate(metrics)}, Terms())
    assert found.outcome == outcome


def test_metrics_are_listed_the_worst_first() -> None:
    metrics = {"a": BETTER, "b": EQUAL, "c": UNKNOWN, "d": WORSE}
    assert [one.metric for one in decide(metrics, Terms()).comparisons] == ["d", "c", "b", "a"]


def test_metrics_share_the_probability_of_an_error() -> None:
    alone = compare("exact", BETTER, Terms(confidence=0.975), 1).interval
    [shared, _] = decide({"a": NONE, "b": BETTER}, Terms(confidence=0.95)).comparisons[::-1]
    assert shared.metric == "b"
    assert shared.interval == pytest.approx(alone)
