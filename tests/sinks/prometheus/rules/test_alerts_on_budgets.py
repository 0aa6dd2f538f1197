"""The burn-rate alerts: each pair of windows on its own, with an objective of 0.95."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from pathgauge.collector.config.criteria.objectives import BURN_RATE_FACTORS
from support.courses import Course, Values, named
from support.promtool import alert_rules, assert_alerts, by_range, needs_promtool
from support.thinning import thinned

pytestmark = needs_promtool

ALERT = "PathgaugeFailureBudgetBurn"
SERIES = {"agent": "support", "scenario": "refund", "metric": "f1"}
TIMES = {"1h": "6 times ", "6h": "6 times ", "1d": "3 times ", "3d": ""}


def verdicts(
    course: Course,
    calm: float,
    bad: float,
    per_minute: float,
    objective: float = 0.95,
    **labels: str,
) -> dict[str, Values]:
    """Verdicts of which these shares fail, and other evaluations, which must not count."""
    of = {**SERIES, "agent_version": "1.0", **labels}
    return {
        named("pathgauge_evaluations_total", outcome="fail", **of): course.counter(
            calm * per_minute, bad * per_minute
        ),
        named("pathgauge_evaluations_total", outcome="pass", **of): course.counter(
            (1 - calm) * per_minute, (1 - bad) * per_minute
        ),
        named("pathgauge_evaluations_total", outcome="not_evaluated", **of): course.counter(
            per_minute, per_minute
        ),
        named("pathgauge_objective", **{**SERIES, **labels}): course.gauge(objective, objective),
    }


def burning(
    window: str,
    share: str,
    severity: str,
    place: str = 'in scenario "refund"',
    **labels: str,
) -> tuple[dict[str, str], str]:
    text = (
        f'{share} verdicts on f1 of agent "support" {place} failed in {window},'
        f" more than {TIMES[window]}the share that the SLO allows (5 %)."
    )
    return {
        "job": "pathgauge",
        "severity": severity,
        "window": window,
        **SERIES,
        **labels,
    }, text


class Case(NamedTuple):
    window: str
    severity: str
    course: Course
    per_minute: float
    bad: float
    tolerated: float
    """A share of failures that is not enough."""
    reported: str


CASES = [
    Case("1h", "critical", Course(calm=60, bad=80, good=30), 2, 1.0, 0.28, "100% of the 120"),
    Case(
        "6h",
        "critical",
        Course(calm=600, blip=10, gap=10, bad=150, good=120, step=10),
        0.2,
        1.0,
        0.6,
        by_range("42.25% of the 72", "43.37% of the 72"),
    ),
    Case(
        "1d",
        "warning",
        Course(calm=1440, blip=20, gap=20, bad=1200, good=180, step=20),
        1,
        0.2,
        0.17,
        by_range("16.57% of the 1440", "16.83% of the 1440"),
    ),
    Case(
        "3d",
        "warning",
        Course(calm=1440, blip=20, gap=20, bad=3600, good=400, step=20),
        1,
        0.09,
        0.055,
        by_range("7.63% of the 4320", "7.667% of the 4320"),
    ),
]
"""Six hours have enough verdicts of little traffic; one hour does not. The alert ends with the
short window, while the long one still burns.
"""


@pytest.mark.parametrize("case", thinned(CASES, 2), ids=lambda case: case.window)
def test_the_alert_fires_and_ends_and_ignores_disturbances_and_restarts(
    case: Case, tmp_path: Path
) -> None:
    series = verdicts(case.course, 0.01, case.bad, case.per_minute) | verdicts(
        case.course, 0.01, case.tolerated, case.per_minute, scenario="tolerated"
    )
    assert_alerts(
        tmp_path,
        case.course,
        series,
        ALERT,
        burning(case.window, case.reported, case.severity),
        window=case.window,
    )


@pytest.mark.parametrize(
    ("scenario", "place"),
    [("", "without a scenario"), ("__other__", 'in scenario "__other__"')],
    ids=["none", "other"],
)
def test_traffic_that_has_no_reference_is_named_and_found(
    scenario: str, place: str, tmp_path: Path
) -> None:
    """No run has the agent or scenario `__other__`, so the link asks for neither."""
    course = CASES[0].course
    series = verdicts(course, 0.01, 1.0, 2, scenario=scenario)
    labels, text = burning("1h", "100% of the 120", "critical", place, scenario=scenario)
    if not scenario:
        del labels["scenario"]
    assert_alerts(tmp_path, course, series, ALERT, (labels, text), window="1h")


@pytest.mark.slow
def test_failures_within_the_objective_few_verdicts_and_low_objectives_are_no_alert(
    tmp_path: Path,
) -> None:
    """With an objective of 0.75 the burn rate is at most 4."""
    course = CASES[0].course
    within = verdicts(course, 0.05, 0.05, 2, scenario="within")
    few = verdicts(course, 0.01, 1.0, 0.1, scenario="few")
    low = verdicts(course, 0.01, 1.0, 2, objective=0.75, scenario="low")
    assert_alerts(tmp_path, course, {**within, **few, **low}, ALERT, window="1h")


@pytest.mark.slow
def test_failures_within_chance_are_no_alert(tmp_path: Path) -> None:
    """A share of 0.068 is more than allowed, but in 389 verdicts chance explains up to
    0.05 + 4 * sqrt(0.05 * 0.95 / 389) = 0.094.
    """
    course = CASES[3].course
    series = verdicts(course, 0.01, 0.08, 0.09)
    assert_alerts(tmp_path, course, series, ALERT, window="3d")


def test_the_verdicts_of_all_collectors_and_versions_count_together(tmp_path: Path) -> None:
    """Three of four pass. The view of a single collector would be an alert."""
    course = CASES[0].course
    one = verdicts(course, 0.01, 1.0, 0.5) | verdicts(course, 0.01, 0.01, 0.5, agent_version="2.0")
    other = verdicts(course, 0.01, 0.01, 1, instance="b:9464")
    assert_alerts(tmp_path, course, {**one, **other}, ALERT, window="1h")


def test_the_factors_are_those_that_the_configuration_is_checked_against() -> None:
    factors = {
        float(re.findall(r"> (\d+) \* \S+:budget", rule["expr"])[0])
        for rule in alert_rules()
        if rule["alert"] == ALERT
    }
    assert factors == set(BURN_RATE_FACTORS)
