"""Alerts about scores: below a threshold, and worse than before."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.courses import Course, Values, named, written
from support.promtool import alert_test, assert_alerts, fired, needs_promtool, rules_for, run

pytestmark = needs_promtool

MEAN, SAMPLES, THRESHOLD = (
    "pathgauge_score_window_mean",
    "pathgauge_score_window_samples",
    "pathgauge_threshold",
)
SERIES = {"agent": "support", "scenario": "refund", "metric": "f1"}
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


def window(
    course: Course,
    bad: tuple[float, int],
    calm: float = 0.95,
    threshold: float = 0.9,
    **labels: str,
) -> dict[str, Values]:
    """The window of one collector, whose mean and number of samples are `bad` in the bad phase."""
    mean, samples = bad
    return {
        named(MEAN, **{**SERIES, **labels}): course.gauge(calm, mean),
        named(SAMPLES, **{**SERIES, **labels}): course.gauge(samples, samples),
        named(THRESHOLD, **{**SERIES, **labels}): course.gauge(threshold, threshold),
    }


def below(
    mean: str,
    shortfall: str,
    who: str = 'f1 of agent "support" in scenario "refund"',
    threshold: str = "0.9",
    **labels: str,
) -> tuple[dict[str, str], str]:
    """The alert; `mean` tells of how many scores it is."""
    labels.setdefault("window", "recent")
    text = (
        f"{who} is {mean}; the threshold is {threshold}."
        f" Chance does not explain the difference of {shortfall}."
    )
    return {"job": "pathgauge", "severity": "warning", **SERIES, **labels}, text


SHORT = Course(calm=20, bad=30, good=40)


def assert_below_threshold(
    folder: Path, series: dict[str, Values], *expected: tuple[dict[str, str], str]
) -> None:
    assert_alerts(
        folder, SHORT, {**info(SHORT), **series}, "PathgaugeScoreBelowThreshold", *expected
    )


@pytest.mark.slow
def test_the_recent_scores_of_all_collectors_count_by_their_numbers(tmp_path: Path) -> None:
    """(30 * 0.6 + 10 * 0.7) / 40 = 0.625; both collectors export the threshold."""
    replicas = window(SHORT, (0.6, 30)) | window(SHORT, (0.7, 10), instance="b:9464")
    assert_below_threshold(tmp_path, replicas, below("0.625 (mean of 40 recent scores)", "0.275"))


@pytest.mark.slow
def test_lower_can_be_better_and_unbounded_metrics_only_need_samples(tmp_path: Path) -> None:
    failure = window(SHORT, (0.4, 30), 0.05, 0.1, metric="failure")
    latency = window(SHORT, (6.5, 20), 3.0, 5.0, metric="latency")
    of = 'of agent "support" in scenario "refund"'
    expected = (
        below("0.4 (mean of 30 recent scores)", "0.300", f"failure {of}", "0.1", metric="failure"),
        below("6.5 (mean of 20 recent scores)", "1.500", f"latency {of}", "5", metric="latency"),
    )
    assert_below_threshold(tmp_path, {**failure, **latency}, *expected)


@pytest.mark.slow
def test_deviations_within_chance_and_few_samples_are_no_alert(tmp_path: Path) -> None:
    """All means are below the threshold; chance explains those above 0.9 - 4 * sqrt(0.9 * 0.1 /
    samples).
    """
    chance = {"a": (0.67, 25), "b": (0.79, 100), "c": (0.1, 19)}
    beyond = {"d": (0.65, 25), "e": (0.77, 100), "f": (0.6, 20)}
    series = {
        key: value
        for name, bad in {**chance, **beyond}.items()
        for key, value in window(SHORT, bad, scenario=name).items()
    }
    expected = [
        below(
            f"{mean} (mean of {samples} recent scores)",
            f"{0.9 - mean:.3f}",
            f'f1 of agent "support" in scenario "{name}"',
            scenario=name,
        )
        for name, (mean, samples) in beyond.items()
    ]
    assert_below_threshold(tmp_path, series, *expected)


def test_a_threshold_of_1_tolerates_a_few_failures(tmp_path: Path) -> None:
    series = window(SHORT, (0.95, 100), 1.0, 1.0) | window(
        SHORT, (0.94, 100), 1.0, 1.0, scenario="worse"
    )
    expected = below(
        "0.94 (mean of 100 recent scores)",
        "0.060",
        'f1 of agent "support" in scenario "worse"',
        "1",
        scenario="worse",
    )
    assert_below_threshold(tmp_path, series, expected)


@pytest.mark.slow
def test_a_small_shortfall_needs_a_day_of_scores_and_ends_with_good_recent_scores(
    tmp_path: Path,
) -> None:
    """0.85 instead of 0.9 is within chance for 60 scores, and is not for 1,440."""
    course = Course(calm=8 * 60, blip=20, gap=20, bad=24 * 60, good=2 * 60, step=20)
    series = {
        **info(course),
        **window(course, (0.85, 60)),
        **scores(course, 0.95, 0.85, per_minute=1),
    }
    expected = below("0.8514 (mean of 1440 scores) in a day", "0.049", window="day")
    assert_alerts(tmp_path, course, series, "PathgaugeScoreBelowThreshold", expected)


@pytest.mark.slow
def test_tenants_are_separate(tmp_path: Path) -> None:
    series = window(SHORT, (0.95, 30), tenant="one") | window(SHORT, (0.5, 30), tenant="two")
    expected = below(
        "0.5 (mean of 30 recent scores)",
        "0.400",
        'f1 of agent "support" of tenant "two" in scenario "refund"',
        tenant="two",
    )
    assert_below_threshold(tmp_path, series, expected)


DAYS = Course(calm=14 * 60, blip=20, gap=20, bad=3 * 60, good=3 * 60, step=20)
WORSE = (
    'f1 of agent "support" in scenario "refund" is {} (mean of 30 scores) and was {} (mean of 630'
    " scores) a {} ago. Chance does not explain the difference of {}."
)


def scores(
    course: Course, calm: float, bad: float, per_minute: float = 0.5, **labels: str
) -> dict[str, Values]:
    """The histogram of scores with these means in calm and in bad phases."""
    version = {"agent_version": "1.0", **SERIES, **labels}
    return {
        named("pathgauge_score_sum", **version): course.counter(
            calm * per_minute, bad * per_minute
        ),
        named("pathgauge_score_count", **version): course.counter(per_minute, per_minute),
    }


def regression(now: str, before: str, worse: str, **labels: str) -> tuple[dict[str, str], str]:
    return {
        "job": "pathgauge",
        "severity": "warning",
        **SERIES,
        "baseline": "day",
        **labels,
    }, WORSE.format(now, before, "day", worse)


def test_a_scenario_that_scores_worse_than_the_day_before_is_an_alert(
    tmp_path: Path,
) -> None:
    series = {
        **info(DAYS),
        **scores(DAYS, 0.9, 0.6),
        **scores(DAYS, 0.9, 0.86, per_minute=30, scenario="hardly"),
        **scores(DAYS, 0.6, 0.9, scenario="better"),
    }
    expected = regression("0.6", "0.8952", "0.295")
    assert_alerts(tmp_path, DAYS, series, "PathgaugeScoreRegression", expected)


@pytest.mark.slow
def test_if_lower_is_better_a_rise_is_a_regression(tmp_path: Path) -> None:
    series = {
        **info(DAYS),
        **scores(DAYS, 0.05, 0.35, metric="failure"),
        **scores(DAYS, 0.35, 0.05, metric="failure", scenario="better"),
    }
    labels, text = regression("0.35", "0.05476", "0.295", metric="failure")
    assert_alerts(
        tmp_path, DAYS, series, "PathgaugeScoreRegression", (labels, text.replace("f1", "failure"))
    )


@pytest.mark.slow
def test_rare_scores_are_compared_by_the_day(tmp_path: Path) -> None:
    """Two scores an hour are too few for an hourly mean: it takes hours until the day is worse."""
    seldom = Course(calm=10 * 60, blip=20, gap=20, bad=24 * 60, good=36 * 60, step=20)
    test = alert_test(
        seldom, {**info(seldom), **scores(seldom, 0.9, 0.3, 1 / 30)}, "PathgaugeScoreRegression"
    )
    [in_the_bad_phase, at_the_end] = test["alert_rule_test"]
    test["alert_rule_test"] = [at_the_end]
    test["promql_expr_test"] += [
        {**fired("PathgaugeScoreRegression", 120, seldom.before + 120), "exp_samples": []},
        {
            "expr": 'count(ALERTS{alertname="PathgaugeScoreRegression", alertstate="firing"})',
            "eval_time": f"{seldom.before + 20 * 60}m",
            "exp_samples": ONE,
        },
    ]
    assert in_the_bad_phase["exp_alerts"] == []
    assert run(tmp_path, rules_for("PathgaugeScoreRegression"), test, step=20) == "SUCCESS"


def compared(baseline: float, bad: float, p_value: float, **labels: str) -> dict[str, Values]:
    """The comparison with the version before that the collector exports."""
    of = {**SERIES, "baseline": "version", **labels}
    return {
        named("pathgauge_baseline_score", **of): SHORT.gauge(baseline, baseline),
        named("pathgauge_regression_score", **of): SHORT.gauge(baseline, bad),
        named("pathgauge_regression_p_value", **of): SHORT.gauge(0.5, p_value),
    }


@pytest.mark.slow
def test_unbounded_metrics_are_compared_by_the_p_value_of_the_collector(tmp_path: Path) -> None:
    slower = compared(2.0, 3.0, 1e-6, metric="latency")
    chance = compared(2.0, 3.0, 0.001, metric="latency", scenario="chance")
    hardly = compared(2.0, 2.1, 1e-6, metric="latency", scenario="hardly")
    faster = compared(2.0, 1.0, 1e-6, metric="latency", scenario="faster")
    bounded = {**compared(0.9, 0.5, 1e-6), **scores(SHORT, 0.9, 0.9)}
    recent = window(SHORT, (3.0, 30), 2.0, 5.0, metric="latency")
    text = (
        'latency of agent "support" in scenario "refund" is 3 and was 2 in the version before, 50%'
        " worse; the threshold is 5. Chance does not explain the difference: p = 1e-06,"
        " 30 recent scores."
    )
    labels = {
        "job": "pathgauge",
        "severity": "warning",
        **SERIES,
        "metric": "latency",
        "baseline": "version",
        "compared_by": "collector",
    }
    assert_alerts(
        tmp_path,
        SHORT,
        {**info(SHORT), **slower, **chance, **hardly, **faster, **bounded, **recent},
        "PathgaugeScoreRegression",
        (labels, text),
    )


@pytest.mark.slow
def test_the_description_does_not_divide_by_a_baseline_of_0(tmp_path: Path) -> None:
    text = (
        'tool_calls of agent "support" in scenario "refund" is 2 and was 0 in the version before.'
        " Chance does not explain the difference: p = 1e-06, ? recent scores."
    )
    labels = {
        "job": "pathgauge",
        "severity": "warning",
        **SERIES,
        "metric": "tool_calls",
        "baseline": "version",
        "compared_by": "collector",
    }
    assert_alerts(
        tmp_path,
        SHORT,
        {
            named(
                "pathgauge_metric_info",
                metric="tool_calls",
                direction="lower_is_better",
                min="0",
                max="+Inf",
            ): ([1.0] * len(SHORT.gauge(0, 0))),
            **compared(0.0, 2.0, 1e-6, metric="tool_calls"),
        },
        "PathgaugeScoreRegression",
        (labels, text),
    )


ONE = [{"labels": "{}", "value": 1}]


@pytest.mark.slow
def test_a_slow_decline_is_a_regression_against_the_week_before(tmp_path: Path) -> None:
    """0.0024 an hour: no day is 0.15 worse than the day before."""
    step, steps = 60, 9 * 24
    means = [
        0.95 if number < 24 else max(0.6, 0.95 - (number - 24) * 0.0024) for number in range(steps)
    ]
    totals = [sum(means[: number + 1]) * 60 for number in range(steps)]
    series = {
        **{name: [1.0] * steps for name in info(DAYS)},
        named("pathgauge_score_sum", agent_version="1.0", **SERIES): totals,
        named("pathgauge_score_count", agent_version="1.0", **SERIES): [
            60.0 * (number + 1) for number in range(steps)
        ],
    }
    at = f"{steps * step - step}m"
    baselines = {
        "expr": (
            'count by (baseline) (ALERTS{alertname="PathgaugeScoreRegression",'
            ' alertstate="firing"})'
        ),
        "eval_time": at,
    }
    test = {
        "interval": f"{step}m",
        "input_series": written(series),
        "promql_expr_test": [
            {**baselines, "exp_samples": [{"labels": '{baseline="week"}', "value": 1}]}
        ],
    }
    assert run(tmp_path, rules_for("PathgaugeScoreRegression"), test, step=step) == "SUCCESS"


def test_an_aggregate_below_its_threshold_names_its_agent_mean_threshold_and_samples(
    tmp_path: Path,
) -> None:
    of = {"agent": "support", "metric": "routing", "over": "agent"}
    series = {
        named("pathgauge_aggregate_score", **of): SHORT.gauge(0.95, 0.8),
        named("pathgauge_aggregate_samples", **of): SHORT.gauge(40, 40),
        named("pathgauge_aggregate_threshold", **of): SHORT.gauge(0.9, 0.9),
        named("pathgauge_aggregate_breached", **of): SHORT.gauge(0, 1),
    }
    text = 'routing over agent "support" is 0.8 (of 40 scores); the threshold is 0.9.'
    expected = {"job": "pathgauge", "severity": "warning", **of}, text
    assert_alerts(tmp_path, SHORT, series, "PathgaugeAggregateBreached", expected)
