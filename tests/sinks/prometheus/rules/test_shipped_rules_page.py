"""The shipped rules, run by promtool on the scrapes of the real sink, fire exactly when the years
of `test_false_pages.py` say so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion
from support.drift_course import DAY_S, HOUR_S, DriftCourse, Wandering, passing
from support.drift_pages import Page
from support.drift_recorded import Recorded
from support.promtool import needs_promtool
from support.sink_harness import Answer

pytestmark = [needs_promtool, pytest.mark.slow]

ANSWER = Criterion("answer", Answer(), 0.9)
OF = ("planner", "s0", "answer")


def test_an_incident_fires_from_its_evidence_to_recovery(tmp_path: Path) -> None:
    recorded = Recorded()
    course = DriftCourse("incident", ANSWER, on_scrape=recorded.scrape)
    for hours, mean in ((6, 0.95), (6, 0.4), (12, 1.0), (6, 0.3)):
        course.run(hours * HOUR_S, 20, passing(mean))
    assert [page for _, page in course.pages] == [Page("PathgaugeScoreDrift", *OF, "threshold")] * 2
    assert not recorded.firing[0]
    assert recorded.promtool(tmp_path) == "SUCCESS"


def test_an_alarm_outlasts_a_weekend_without_scores_and_ends_then(tmp_path: Path) -> None:
    recorded = Recorded()
    course = DriftCourse("silent", ANSWER, on_scrape=recorded.scrape)
    course.run(6 * HOUR_S, 20, passing(0.2))
    course.pass_time(course.now + 2.5 * DAY_S)
    assert course.firing != set()
    course.pass_time(course.now + 0.6 * DAY_S)
    assert len(course.pages) == 1
    assert course.firing == set()
    assert recorded.promtool(tmp_path) == "SUCCESS"


def test_scenarios_that_fall_together_fire_the_alert_of_their_agent(tmp_path: Path) -> None:
    recorded = Recorded()
    course = DriftCourse("whole", ANSWER, count=20, on_scrape=recorded.scrape)
    course.run_wandering(30 * HOUR_S, Wandering(4, mean=0.98, scenarios=20))
    course.run_wandering(8 * HOUR_S, Wandering(4, mean=0.75, scenarios=20))
    assert "scenarios" in {page.against for _, page in course.pages}
    assert recorded.promtool(tmp_path) == "SUCCESS"


def test_a_canary_fires_the_alert_of_its_version(tmp_path: Path) -> None:
    canary = Recorded()
    course = DriftCourse("canary", ANSWER, on_scrape=canary.scrape)
    course.run(40 * HOUR_S, 5, passing(0.95), agent_version="v1")
    for _ in range(12):
        course.run(HOUR_S, 5, passing(0.95), agent_version="v1")
        course.run(HOUR_S, 1, passing(0.0), agent_version="v2")
    assert Page("PathgaugeVersionDrift", *OF, "version") in {page for _, page in course.pages}
    assert canary.promtool(tmp_path) == "SUCCESS"


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    recorded = Recorded()
    course = DriftCourse("fails", ANSWER, on_scrape=recorded.scrape)
    course.run(6 * HOUR_S, 20, passing(0.2))
    recorded.firing[recorded.firing.index(course.firing)].clear()
    assert "FAILED" in recorded.promtool(tmp_path)
