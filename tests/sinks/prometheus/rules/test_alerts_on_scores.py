"""Alerts about scores: below a threshold, worse than before, worse than the version before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.courses import Course, Values, named, written
from support.promtool import fired, needed, needs_promtool, run, story

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
    shortfall: str, who: str = 'f1 of agent "support" in scenario "refund"', **labels: str
) -> tuple[dict[str, str], str]:
    window = labels.setdefault("window", "recent")
    text = (
        f"The mean of {who} ({window}) misses its threshold by {shortfall}, which is more than"
        " chance."
    )
    return {"job": "pathgauge", "severity": "warning", **SERIES, **labels}, text


SHORT = Course(calm=20, bad=30, good=40)


def threshold_story(
    series: dict[str, Values], *expected: tuple[dict[str, str], str]
) -> dict[str, Any]:
    return story(SHORT, {**info(SHORT), **series}, "PathgaugeScoreBelowThreshold", *expected)


def test_the_recent_scores_of_all_collectors_count_by_their_numbers(tmp_path: Path) -> None:
    """(30 * 0.6 + 10 * 0.7) / 40 = 0.625; both collectors export the threshold."""
    replicas = window(SHORT, (0.6, 30)) | window(SHORT, (0.7, 10), instance="b:9464")
    assert (
        run(
            tmp_path,
            needed("PathgaugeScoreBelowThreshold"),
            threshold_story(replicas, below("0.275")),
        )
        == "SUCCESS"
    )


def test_less_may_be_better_and_a_range_without_an_end_needs_samples_alone(tmp_path: Path) -> None:
    failure = window(SHORT, (0.4, 30), 0.05, 0.1, metric="failure")
    latency = window(SHORT, (6.5, 20), 3.0, 5.0, metric="latency")
    of = 'of agent "support" in scenario "refund"'
    expected = (
        below("0.300", f"failure {of}", metric="failure"),
        below("1.500", f"latency {of}", metric="latency"),
    )
    assert (
        run(
            tmp_path,
            needed("PathgaugeScoreBelowThreshold"),
            threshold_story({**failure, **latency}, *expected),
        )
        == "SUCCESS"
    )


def test_what_may_be_chance_and_what_has_few_samples_is_no_alert(tmp_path: Path) -> None:
    """Of the means that are below the threshold, these are not: 0.9 - 4 * sqrt(0.9 * 0.1 /
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
        below(f"{0.9 - mean:.3f}", f'f1 of agent "support" in scenario "{name}"', scenario=name)
        for name, (mean, _) in beyond.items()
    ]
    assert (
        run(tmp_path, needed("PathgaugeScoreBelowThreshold"), threshold_story(series, *expected))
        == "SUCCESS"
    )


def test_a_threshold_of_1_leaves_room_for_an_odd_failure(tmp_path: Path) -> None:
    series = window(SHORT, (0.95, 100), 1.0, 1.0) | window(
        SHORT, (0.94, 100), 1.0, 1.0, scenario="worse"
    )
    expected = below("0.060", 'f1 of agent "support" in scenario "worse"', scenario="worse")
    assert (
        run(tmp_path, needed("PathgaugeScoreBelowThreshold"), threshold_story(series, expected))
        == "SUCCESS"
    )


def test_a_small_shortfall_is_an_alert_when_it_lasts_a_day_and_ends_when_recent_scores_are_good(
    tmp_path: Path,
) -> None:
    """0.85 is below 0.9 by no more than chance in 60 scores, and by more in 1,440."""
    course = Course(calm=8 * 60, blip=20, gap=20, bad=24 * 60, good=2 * 60, step=20)
    series = {
        **info(course),
        **window(course, (0.85, 60)),
        **scores(course, 0.95, 0.85, per_minute=1),
    }
    told = story(course, series, "PathgaugeScoreBelowThreshold", below("0.049", window="day"))
    assert (
        run(tmp_path, needed("PathgaugeScoreBelowThreshold"), told, step=course.step) == "SUCCESS"
    )


def test_tenants_are_told_apart(tmp_path: Path) -> None:
    series = window(SHORT, (0.95, 30), tenant="one") | window(SHORT, (0.5, 30), tenant="two")
    expected = below(
        "0.400", 'f1 of agent "support" of tenant "two" in scenario "refund"', tenant="two"
    )
    assert (
        run(tmp_path, needed("PathgaugeScoreBelowThreshold"), threshold_story(series, expected))
        == "SUCCESS"
    )


DAYS = Course(calm=14 * 60, blip=20, gap=20, bad=3 * 60, good=3 * 60, step=20)
WORSE = (
    'f1 of agent "support" in scenario "refund" is {} worse than a {} ago, from 0 to 1, which is'
    " more than chance."
)


def scores(
    course: Course, calm: float, bad: float, per_minute: float = 0.5, **labels: str
) -> dict[str, Values]:
    """The histogram of scores that come so often and have these means."""
    version = {"agent_version": "1.0", **SERIES, **labels}
    return {
        named("pathgauge_score_sum", **version): course.counter(
            calm * per_minute, bad * per_minute
        ),
        named("pathgauge_score_count", **version): course.counter(per_minute, per_minute),
    }


def regression(baseline: str, worse: str, **labels: str) -> tuple[dict[str, str], str]:
    return {
        "job": "pathgauge",
        "severity": "warning",
        **SERIES,
        "baseline": baseline,
        **labels,
    }, WORSE.format(worse, baseline)


def test_a_scenario_that_scores_worse_than_the_day_before_is_an_alert_and_one_beside_it_is_not(
    tmp_path: Path,
) -> None:
    series = {
        **info(DAYS),
        **scores(DAYS, 0.9, 0.6),
        **scores(DAYS, 0.9, 0.86, per_minute=30, scenario="hardly"),
        **scores(DAYS, 0.6, 0.9, scenario="better"),
    }
    told = story(DAYS, series, "PathgaugeScoreRegression", regression("day", "0.295"))
    assert run(tmp_path, needed("PathgaugeScoreRegression"), told, step=DAYS.step) == "SUCCESS"


def test_where_less_is_better_more_is_a_regression(tmp_path: Path) -> None:
    series = {
        **info(DAYS),
        **scores(DAYS, 0.05, 0.35, metric="failure"),
        **scores(DAYS, 0.35, 0.05, metric="failure", scenario="better"),
    }
    labels, text = regression("day", "0.295", metric="failure")
    told = story(DAYS, series, "PathgaugeScoreRegression", (labels, text.replace("f1", "failure")))
    assert run(tmp_path, needed("PathgaugeScoreRegression"), told, step=DAYS.step) == "SUCCESS"


def test_scores_that_come_seldom_are_compared_by_the_day(tmp_path: Path) -> None:
    """Two an hour, of which an hour has too few: it takes a part of the day until the day is worse."""
    seldom = Course(calm=10 * 60, blip=20, gap=20, bad=24 * 60, good=36 * 60, step=20)
    told = story(
        seldom, {**info(seldom), **scores(seldom, 0.9, 0.3, 1 / 30)}, "PathgaugeScoreRegression"
    )
    [in_the_bad_phase, at_the_end] = told["alert_rule_test"]
    course = seldom.before + 20 * 60
    told["alert_rule_test"] = [at_the_end]
    told["promql_expr_test"] += [
        {**fired("PathgaugeScoreRegression", 120, seldom.before + 120), "exp_samples": []},
        {
            "expr": 'count(ALERTS{alertname="PathgaugeScoreRegression", alertstate="firing"})',
            "eval_time": f"{course}m",
            "exp_samples": ONE,
        },
    ]
    assert in_the_bad_phase["exp_alerts"] == []
    assert run(tmp_path, needed("PathgaugeScoreRegression"), told, step=20) == "SUCCESS"


def compared(baseline: float, bad: float, p_value: float, **labels: str) -> dict[str, Values]:
    """What the collector says of recent scores beside those of the version before."""
    of = {**SERIES, "baseline": "version", **labels}
    return {
        named("pathgauge_baseline_score", **of): SHORT.gauge(baseline, baseline),
        named("pathgauge_regression_score", **of): SHORT.gauge(baseline, bad),
        named("pathgauge_regression_p_value", **of): SHORT.gauge(0.5, p_value),
    }


def test_metrics_without_an_end_are_judged_by_the_p_value_of_the_collector(tmp_path: Path) -> None:
    slower = compared(2.0, 3.0, 1e-6, metric="latency")
    chance = compared(2.0, 3.0, 0.001, metric="latency", scenario="chance")
    hardly = compared(2.0, 2.1, 1e-6, metric="latency", scenario="hardly")
    faster = compared(2.0, 1.0, 1e-6, metric="latency", scenario="faster")
    bounded = {**compared(0.9, 0.5, 1e-6), **scores(SHORT, 0.9, 0.9)}
    text = (
        'latency of agent "support" in scenario "refund" is worse by 50% than its baseline, that of'
        " the version before."
    )
    labels = {
        "job": "pathgauge",
        "severity": "warning",
        **SERIES,
        "metric": "latency",
        "baseline": "version",
        "compared_by": "collector",
    }
    told = story(
        SHORT,
        {**info(SHORT), **slower, **chance, **hardly, **faster, **bounded},
        "PathgaugeScoreRegression",
        (labels, text),
    )
    assert run(tmp_path, needed("PathgaugeScoreRegression"), told) == "SUCCESS"


def test_the_text_does_not_divide_by_a_baseline_of_nothing(tmp_path: Path) -> None:
    text = (
        'tool_calls of agent "support" in scenario "refund" is worse than its baseline of 0, that'
        " of the version before."
    )
    labels = {
        "job": "pathgauge",
        "severity": "warning",
        **SERIES,
        "metric": "tool_calls",
        "baseline": "version",
        "compared_by": "collector",
    }
    told = story(
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
    assert run(tmp_path, needed("PathgaugeScoreRegression"), told) == "SUCCESS"


ONE = [{"labels": "{}", "value": 1}]


def test_a_slow_decline_is_seen_a_week_later(tmp_path: Path) -> None:
    """Half a hundredth an hour: no day is 0.15 worse than the one before it."""
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
    assert run(tmp_path, needed("PathgaugeScoreRegression"), test, step=step) == "SUCCESS"
