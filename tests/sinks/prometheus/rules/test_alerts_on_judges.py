"""Alerts about scores of judge models. Each judge is compared with itself, so that a change of the
judge does not look like a change of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.courses import Course, Values, named
from support.promtool import alert_test, assert_alerts, needs_promtool, rules_for, run

pytestmark = needs_promtool

ONE, OTHER = "gpt-4.1-mini@1f3a9c20", "gpt-4.1-mini@99990000"
SERIES = {"agent": "support", "scenario": "refund", "metric": "quality"}
DAYS = Course(calm=14 * 60, blip=20, gap=20, bad=3 * 60, good=3 * 60, step=20)
HOURS = Course(calm=4 * 60, blip=10, gap=10, bad=3 * 60, good=3 * 60, step=10)
BURN = Course(calm=60, bad=80, good=30)
FIRST_SEEN = "pathgauge_agent_version_first_seen_timestamp_seconds"
WHO = f'quality by {ONE} of agent "support" in scenario "refund"'


def info(course: Course) -> dict[str, Values]:
    return {
        named(
            "pathgauge_metric_info",
            metric="quality",
            min="0",
            max="1",
            direction="higher_is_better",
        ): course.gauge(1, 1)
    }


def replaced(course: Course, series: Mapping[str, Values]) -> dict[str, Values]:
    """`series` of one judge until the bad phase, then those of another judge."""
    turn = course.before // course.step
    both: dict[str, Values] = {}
    for name, values in series.items():
        both[name] = [*values[:turn], *[None] * (len(values) - turn)]
        both[name.replace(ONE, OTHER)] = [*[None] * turn, *values[turn:]]
    return both


def scores(course: Course, calm: float, bad: float, version: str = "1.0") -> dict[str, Values]:
    """The histogram of a judge with a score every two minutes and these means."""
    of = {**SERIES, "agent_version": version, "judge": ONE}
    return {
        named("pathgauge_score_sum", **of): course.counter(calm / 2, bad / 2),
        named("pathgauge_score_count", **of): course.counter(0.5, 0.5),
    }


def alert(severity: str, text: str, **labels: str) -> tuple[dict[str, str], str]:
    return {"job": "pathgauge", "severity": severity, **SERIES, "judge": ONE, **labels}, text


def regression(course: Course) -> dict[str, Values]:
    return scores(course, 0.9, 0.6)


def versions(course: Course) -> dict[str, Values]:
    """Version 2.0 runs in the bad phase, 1.0 before it and 3.0 after it."""
    turn = course.before // course.step
    new = {
        name: [*[None] * turn, *values[turn:]]
        for name, values in scores(course, 0.6, 0.6, "2.0").items()
    }
    old = {
        name: [*values[:turn], *[None] * (len(values) - turn)]
        for name, values in scores(course, 0.9, 0.9).items()
    }
    end = course.turning // course.step
    repaired = {
        name: [*[None] * end, *values[end:]]
        for name, values in scores(course, 0.9, 0.9, "3.0").items()
    }
    return {**old, **new, **repaired}


def seen(course: Course) -> dict[str, Values]:
    """When each version was first evaluated, by any judge."""
    since = {"1.0": 0, "2.0": course.before, "3.0": course.turning}
    return {
        named(FIRST_SEEN, agent="support", agent_version=version): [
            None if step * course.step < minute else minute * 60.0
            for step in range(len(course.gauge(1, 1)))
        ]
        for version, minute in since.items()
    }


def window(course: Course) -> dict[str, Values]:
    of = {**SERIES, "judge": ONE}
    return {
        named("pathgauge_score_window_mean", **of): course.gauge(0.95, 0.6),
        named("pathgauge_score_window_samples", **of): course.gauge(50, 50),
        named("pathgauge_threshold", **of): course.gauge(0.9, 0.9),
    }


def verdicts(course: Course) -> dict[str, Values]:
    of = {**SERIES, "agent_version": "1.0", "judge": ONE}
    return {
        named("pathgauge_evaluations_total", outcome="fail", **of): course.counter(0.02, 2),
        named("pathgauge_evaluations_total", outcome="pass", **of): course.counter(1.98, 0),
        named("pathgauge_objective", **{**SERIES, "judge": ONE}): course.gauge(0.95, 0.95),
    }


REGRESSION = alert(
    "warning",
    f"{WHO} is 0.6 (mean of 30 scores) and was 0.8952 (mean of 630 scores) a day ago."
    " Chance does not explain the difference of 0.295.",
    baseline="day",
)
VERSION = alert(
    "warning",
    f"{WHO} is 0.6 (mean of 83 scores) in version 2.0 and was 0.9 (mean of 363 scores) in version"
    " 1.0. Chance does not explain the difference of 0.300.",
    agent_version="2.0",
    previous_version="1.0",
)


def test_a_scenario_that_is_worse_under_one_judge_is_an_alert(tmp_path: Path) -> None:
    series = {**info(DAYS), **regression(DAYS)}
    assert_alerts(tmp_path, DAYS, series, "PathgaugeScoreRegression", REGRESSION)


@pytest.mark.slow
def test_a_new_judge_with_lower_scores_is_no_alert(tmp_path: Path) -> None:
    series = {**info(DAYS), **replaced(DAYS, regression(DAYS))}
    assert_alerts(tmp_path, DAYS, series, "PathgaugeScoreRegression")


@pytest.mark.slow
def test_a_version_that_is_worse_under_one_judge_is_an_alert(tmp_path: Path) -> None:
    series = {**info(HOURS), **seen(HOURS), **versions(HOURS)}
    assert_alerts(tmp_path, HOURS, series, "PathgaugeVersionRegression", VERSION)


@pytest.mark.slow
def test_a_version_that_was_deployed_with_a_new_judge_is_no_alert(tmp_path: Path) -> None:
    series = {**info(HOURS), **seen(HOURS), **replaced(HOURS, versions(HOURS))}
    assert_alerts(tmp_path, HOURS, series, "PathgaugeVersionRegression")


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
def test_each_judge_has_its_own_threshold(both: bool, tmp_path: Path) -> None:
    """Also if another judge of the same metric, on another collector, has its own threshold and
    gives good scores.
    """
    satisfied = {
        name.replace(ONE, OTHER).replace("a:9464", "b:9464"): [
            None if value is None else 1.0 for value in values
        ]
        for name, values in window(BURN).items()
    }
    text = (
        f"{WHO} is 0.6 (mean of 50 recent scores); the threshold is 0.9."
        " Chance does not explain the difference of 0.300."
    )
    series = {**info(BURN), **window(BURN), **(satisfied if both else {})}
    assert_alerts(
        tmp_path,
        BURN,
        series,
        "PathgaugeScoreBelowThreshold",
        alert("warning", text, window="recent"),
    )


def test_failures_under_one_judge_burn_its_budget(tmp_path: Path) -> None:
    text = (
        f"100% of the 120 verdicts on {WHO} failed in 1h, more than 6 times the share that the SLO"
        " allows (5 %)."
    )
    assert_alerts(
        tmp_path,
        BURN,
        verdicts(BURN),
        "PathgaugeFailureBudgetBurn",
        alert("critical", text, window="1h"),
        window="1h",
    )


@pytest.mark.slow
def test_failures_under_a_removed_judge_burn_nothing(tmp_path: Path) -> None:
    """Its objective is no longer exported."""
    turn = BURN.turning - 10
    ended = {
        name: [*values[:turn], *[None] * (len(values) - turn)]
        for name, values in verdicts(BURN).items()
    }
    test = alert_test(BURN, ended, "PathgaugeFailureBudgetBurn")
    test["alert_rule_test"][0]["eval_time"] = f"{turn + 20}m"
    assert run(tmp_path, rules_for("PathgaugeFailureBudgetBurn", window="1h"), test) == "SUCCESS"
