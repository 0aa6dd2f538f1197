"""The alerts about objectives: each pair of windows on its own, at the factor that suits an
objective of 0.95.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from support.courses import Course, Values, named
from support.promtool import needed, needs_promtool, run, story

pytestmark = needs_promtool

ALERT = "PathgaugeFailureBudgetBurn"
SERIES = {"agent": "support", "scenario": "refund", "metric": "f1"}
TIMES = {"1h": "6 times what ", "6h": "6 times what ", "1d": "3 times what ", "3d": ""}


def verdicts(
    course: Course,
    calm: float,
    bad: float,
    per_minute: float,
    objective: float = 0.95,
    **labels: str,
) -> dict[str, Values]:
    """So many verdicts a minute, of which these shares fail; others are of no account."""
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


def burning(window: str, share: str, severity: str, **labels: str) -> tuple[dict[str, str], str]:
    text = (
        f'{share} of the verdicts on f1 of agent "support" in scenario "refund" failed in {window},'
        f" more than {TIMES[window]}"
    )
    return {
        "job": "pathgauge",
        "severity": severity,
        "window": window,
        **SERIES,
        **labels,
    }, text + "the objective allows."


class Case(NamedTuple):
    window: str
    severity: str
    course: Course
    per_minute: float
    bad: float
    hardly: float
    """A share of failures that is not enough."""
    told: str


CASES = [
    Case("1h", "critical", Course(calm=60, bad=80, good=30), 2, 1.0, 0.28, "100%"),
    Case(
        "6h",
        "critical",
        Course(calm=600, blip=10, gap=10, bad=150, good=120, step=10),
        0.2,
        1.0,
        0.6,
        "42.25%",
    ),
    Case(
        "1d",
        "warning",
        Course(calm=1440, blip=20, gap=20, bad=1200, good=180, step=20),
        1,
        0.2,
        0.17,
        "16.57%",
    ),
    Case(
        "3d",
        "warning",
        Course(calm=1440, blip=20, gap=20, bad=3600, good=400, step=20),
        1,
        0.09,
        0.055,
        "7.63%",
    ),
]
"""Over an hour little traffic says nothing, and over six it does. The end comes with the short
window: the long one still burns.
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.window)
def test_it_fires_and_ends_and_no_disturbance_or_restart_fires_it(
    case: Case, tmp_path: Path
) -> None:
    series = verdicts(case.course, 0.01, case.bad, case.per_minute) | verdicts(
        case.course, 0.01, case.hardly, case.per_minute, scenario="hardly"
    )
    told = story(case.course, series, ALERT, burning(case.window, case.told, case.severity))
    assert (
        run(tmp_path, needed(ALERT, window=case.window), told, step=case.course.step) == "SUCCESS"
    )


def test_failures_within_the_objective_few_verdicts_and_low_objectives_are_no_alert(
    tmp_path: Path,
) -> None:
    """With an objective of 0.75 the burn rate is 4 at most."""
    course = CASES[0].course
    within = verdicts(course, 0.05, 0.05, 2, scenario="within")
    few = verdicts(course, 0.01, 1.0, 0.1, scenario="few")
    low = verdicts(course, 0.01, 1.0, 2, objective=0.75, scenario="low")
    told = story(course, {**within, **few, **low}, ALERT)
    assert run(tmp_path, needed(ALERT, window="1h"), told) == "SUCCESS"


def test_failures_that_may_be_chance_are_no_alert(tmp_path: Path) -> None:
    """A share of 0.068 is more than allowed; in 389 verdicts chance goes up to 0.05 + 4 * sqrt(0.05
    * 0.95 / 389) = 0.094.
    """
    course = CASES[3].course
    series = verdicts(course, 0.01, 0.08, 0.09)
    assert (
        run(tmp_path, needed(ALERT, window="3d"), story(course, series, ALERT), step=course.step)
        == "SUCCESS"
    )


def test_the_verdicts_of_all_collectors_and_versions_count_together(tmp_path: Path) -> None:
    """Three in four pass: what one collector alone sees would be an alert."""
    course = CASES[0].course
    one = verdicts(course, 0.01, 1.0, 0.5) | verdicts(course, 0.01, 0.01, 0.5, agent_version="2.0")
    other = verdicts(course, 0.01, 0.01, 1, instance="b:9464")
    told = story(course, {**one, **other}, ALERT)
    assert run(tmp_path, needed(ALERT, window="1h"), told) == "SUCCESS"
