"""Alerts about scores on the wrong side of a threshold."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.courses import Course, Values, named
from support.promtool import assert_alerts, needs_promtool

pytestmark = needs_promtool

MEAN, SAMPLES, THRESHOLD = (
    "pathgauge_score_window_mean",
    "pathgauge_score_window_samples",
    "pathgauge_threshold",
)
SERIES = {"agent": "support", "scenario": "refund", "metric": "latency"}
INFO = {
    "f1": {"min": "0", "max": "1", "direction": "higher_is_better"},
    "failure": {"min": "0", "max": "1", "direction": "lower_is_better"},
    "latency": {"min": "0", "max": "+Inf", "direction": "lower_is_better"},
}


def info(course: Course) -> dict[str, Values]:
    return {
        named("pathgauge_metric_info", metric=metric, **labels): course.gauge(1, 1)
        for metric, labels in INFO.items()
    }


def window(mean: float, samples: int, threshold: float = 5.0, **labels: str) -> dict[str, Values]:
    """The window of one collector, whose mean is 3 before the bad phase, and `mean` in it."""
    return {
        named(MEAN, **{**SERIES, **labels}): SHORT.gauge(3.0, mean),
        named(SAMPLES, **{**SERIES, **labels}): SHORT.gauge(samples, samples),
        named(THRESHOLD, **{**SERIES, **labels}): SHORT.gauge(threshold, threshold),
    }


def below(
    mean: str, shortfall: str, agent: str = 'agent "support"', **labels: str
) -> tuple[dict[str, str], str]:
    """The alert; `mean` tells of how many values it is."""
    of = {**SERIES, **labels}
    text = (
        f'latency of {agent} in scenario "{of["scenario"]}" is {mean}; the threshold is 5.'
        f" Chance does not explain the difference of {shortfall}."
    )
    return {"job": "pathgauge", "severity": "warning", **of}, text


SHORT = Course(calm=20, bad=30, good=40)


def assert_below_threshold(
    folder: Path, series: dict[str, Values], *expected: tuple[dict[str, str], str]
) -> None:
    every = {**info(SHORT), **series}
    assert_alerts(folder, SHORT, every, "PathgaugeScoreBelowThreshold", *expected)


@pytest.mark.slow
def test_the_recent_values_of_all_collectors_count_by_their_numbers(tmp_path: Path) -> None:
    """(30 * 10 + 10 * 14) / 40 = 11; both collectors export the threshold."""
    replicas = window(10, 30) | window(14, 10, instance="b:9464")
    assert_below_threshold(tmp_path, replicas, below("11 (mean of 40 recent scores)", "6"))


@pytest.mark.parametrize(
    ("threshold", "mean", "text"),
    [
        (10_000.0, 41_234.0, "41234 (mean of 12345 recent scores); the threshold is 10000"),
        (0.0002, 0.0006, "0.0006 (mean of 12345 recent scores); the threshold is 0.0002"),
    ],
    ids=["tokens", "dollars"],
)
def test_large_and_small_numbers_are_written_out(
    threshold: float, mean: float, text: str, tmp_path: Path
) -> None:
    series = window(mean, 12_345, threshold)
    series[named(MEAN, **SERIES)] = SHORT.gauge(threshold / 2, mean)
    labels, _ = below("", "")
    difference = f"{mean - threshold:.6g}"
    description = (
        f'latency of agent "support" in scenario "refund" is {text}.'
        f" Chance does not explain the difference of {difference}."
    )
    assert_below_threshold(tmp_path, series, (labels, description))


def test_deviations_within_chance_and_few_values_are_no_alert(tmp_path: Path) -> None:
    """All means are above the threshold; chance explains those below 5 + 4 * 5 / sqrt(samples)."""
    chance = {"a": (8.9, 25), "b": (6.9, 100), "c": (50.0, 19)}
    beyond = {"d": (9.1, 25), "e": (7.1, 100), "f": (9.6, 20)}
    series = {
        key: value
        for name, bad in {**chance, **beyond}.items()
        for key, value in window(*bad, scenario=name).items()
    }
    expected = [
        below(f"{mean} (mean of {samples} recent scores)", f"{mean - 5:.4g}", scenario=name)
        for name, (mean, samples) in beyond.items()
    ]
    assert_below_threshold(tmp_path, series, *expected)


@pytest.mark.slow
def test_scores_with_an_upper_limit_have_the_alerts_about_drift_instead(tmp_path: Path) -> None:
    series = window(0.1, 1000, 0.9, metric="f1") | window(0.9, 1000, 0.1, metric="failure")
    assert_below_threshold(tmp_path, series)


@pytest.mark.slow
def test_tenants_are_separate(tmp_path: Path) -> None:
    series = window(5.0, 30, tenant="one") | window(9.0, 30, tenant="two")
    agent = 'agent "support" of tenant "two"'
    expected = below("9 (mean of 30 recent scores)", "4", agent, tenant="two")
    assert_below_threshold(tmp_path, series, expected)


@pytest.mark.parametrize(
    ("level", "named_as"),
    [
        ({"agent": "support", "over": "agent"}, 'agent "support"'),
        ({"over": "agent"}, "the agents without a name"),
        ({"tenant": "north", "over": "suite"}, 'all agents of tenant "north"'),
        (
            {"agent": "support", "scenario": "refund", "tenant": "north", "over": "scenario"},
            'agent "support" of tenant "north" in scenario "refund"',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_aggregate_below_its_threshold_names_what_it_is_of_and_mean_threshold_and_samples(
    level: dict[str, str], named_as: str, tmp_path: Path
) -> None:
    of = {"metric": "routing", **level}
    series = {
        named("pathgauge_aggregate_score", **of): SHORT.gauge(0.95, 0.8),
        named("pathgauge_aggregate_samples", **of): SHORT.gauge(40, 40),
        named("pathgauge_aggregate_threshold", **of): SHORT.gauge(0.9, 0.9),
        named("pathgauge_aggregate_breached", **of): SHORT.gauge(0, 1),
    }
    text = f"routing over {named_as} is 0.8 (of 40 scores); the threshold is 0.9."
    expected = {"job": "pathgauge", "severity": "warning", **of}, text
    assert_alerts(tmp_path, SHORT, series, "PathgaugeAggregateBreached", expected)
