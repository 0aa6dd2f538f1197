"""Alerts about scores that models judge: a judge is compared with itself, so that a change of it is
no change of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.courses import Course, Values, named
from support.promtool import needed, needs_promtool, run, story

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
    """One judge until it gets bad, and another one from then on; `series` name the first."""
    turn = course.before // course.step
    told: dict[str, Values] = {}
    for name, values in series.items():
        told[name] = [*values[:turn], *[None] * (len(values) - turn)]
        told[name.replace(ONE, OTHER)] = [*[None] * turn, *values[turn:]]
    return told


def scores(course: Course, calm: float, bad: float, version: str = "1.0") -> dict[str, Values]:
    """The histogram of a judge that gives a score every two minutes, with these means."""
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
    """The second version is as old as the bad phase."""
    turn = course.before // course.step
    new = {
        name: [*[None] * turn, *values[turn:]]
        for name, values in scores(course, 0.6, 0.6, "2.0").items()
    }
    old = {
        name: [*values[:turn], *[None] * (len(values) - turn)]
        for name, values in scores(course, 0.9, 0.9).items()
    }
    repaired = {name: [*[None] * (course.turning // course.step), *values[course.turning // course.step :]]
                for name, values in scores(course, 0.9, 0.9, "3.0").items()}  # fmt: skip
    return {**old, **new, **repaired}


def seen(course: Course) -> dict[str, Values]:
    """When each version was first evaluated, by whatever judge."""
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
    f"{WHO} is 0.295 worse than a day ago, from 0 to 1, which is more than chance.",
    baseline="day",
)
VERSION = alert(
    "warning",
    f"{WHO}: version 2.0 is 0.300 worse than version 1.0, from 0 to 1, which is more than chance.",
    agent_version="2.0",
    previous_version="1.0",
)


def test_a_scenario_that_is_worse_under_one_judge_is_an_alert(tmp_path: Path) -> None:
    series = {**info(DAYS), **regression(DAYS)}
    told = story(DAYS, series, "PathgaugeScoreRegression", REGRESSION)
    assert run(tmp_path, needed("PathgaugeScoreRegression"), told, step=DAYS.step) == "SUCCESS"


def test_a_judge_that_scores_lower_than_the_one_before_it_is_no_alert(tmp_path: Path) -> None:
    series = {**info(DAYS), **replaced(DAYS, regression(DAYS))}
    told = story(DAYS, series, "PathgaugeScoreRegression")
    assert run(tmp_path, needed("PathgaugeScoreRegression"), told, step=DAYS.step) == "SUCCESS"


def test_a_version_that_is_worse_under_one_judge_is_an_alert(tmp_path: Path) -> None:
    series = {**info(HOURS), **seen(HOURS), **versions(HOURS)}
    told = story(HOURS, series, "PathgaugeVersionRegression", VERSION)
    assert run(tmp_path, needed("PathgaugeVersionRegression"), told, step=HOURS.step) == "SUCCESS"


def test_a_version_that_came_with_another_judge_is_no_alert(tmp_path: Path) -> None:
    series = {**info(HOURS), **seen(HOURS), **replaced(HOURS, versions(HOURS))}
    told = story(HOURS, series, "PathgaugeVersionRegression")
    assert run(tmp_path, needed("PathgaugeVersionRegression"), told, step=HOURS.step) == "SUCCESS"


@pytest.mark.parametrize("both", [False, True])
def test_a_threshold_is_that_of_the_judge(both: bool, tmp_path: Path) -> None:
    """Also when another judge of the same metric, on another collector, has a threshold of its own
    and is content.
    """
    content = {
        name.replace(ONE, OTHER).replace("a:9464", "b:9464"): [
            None if value is None else 1.0 for value in values
        ]
        for name, values in window(BURN).items()
    }
    text = f"The mean of {WHO} (recent) misses its threshold by 0.300, which is more than chance."
    series = {**info(BURN), **window(BURN), **(content if both else {})}
    told = story(
        BURN, series, "PathgaugeScoreBelowThreshold", alert("warning", text, window="recent")
    )
    assert run(tmp_path, needed("PathgaugeScoreBelowThreshold"), told) == "SUCCESS"


def test_a_budget_of_failures_is_burnt_under_one_judge(tmp_path: Path) -> None:
    text = (
        f"100% of the verdicts on {WHO} failed in 1h, more than 6 times what the objective allows."
    )
    told = story(
        BURN, verdicts(BURN), "PathgaugeFailureBudgetBurn", alert("critical", text, window="1h")
    )
    assert run(tmp_path, needed("PathgaugeFailureBudgetBurn", window="1h"), told) == "SUCCESS"


def test_failures_under_a_judge_that_is_gone_burn_nothing(tmp_path: Path) -> None:
    """Its objective went with it."""
    turn = BURN.turning - 10
    ended = {
        name: [*values[:turn], *[None] * (len(values) - turn)]
        for name, values in verdicts(BURN).items()
    }
    told = story(BURN, ended, "PathgaugeFailureBudgetBurn")
    told["alert_rule_test"][0]["eval_time"] = f"{turn + 20}m"
    assert run(tmp_path, needed("PathgaugeFailureBudgetBurn", window="1h"), told) == "SUCCESS"
