"""Simulated years of scores that do not change: at most one false page in ten years of a series,
and one in two weeks of a hundred scenarios.

Each course begins with the learning of its baseline. The mean of the scores is 0.95 and wanders
from hour to hour with a standard deviation of 0, 0.015 or 0.03; the threshold is 1. `make noise`
simulates for each deviation 46 years of one series (30 with 1 evaluation an hour, 11 with 10, 4
with 30, 1.2 with 100, 44 days with 1,000) through the sink. Weeks of 100 scenarios of one agent go
into the detectors behind it. These are 29 million evaluations; a hundred years with 1,000 an hour
would be 876 million.
"""

from __future__ import annotations

import os

import pytest

from support.drift_course import DAY_S, HOUR_S, YEAR_S, DriftCourse, Wandering
from support.drift_years import false_pages

LONG = pytest.mark.skipif("NOISE" not in os.environ, reason="takes minutes; `make noise` runs it")
WANDER = [0.0, 0.015, 0.03]
YEARS = {1: (30, 1.0), 10: (11, 1.0), 30: (8, 0.5), 100: (4, 0.3), 1000: (4, 0.03)}
"""By evaluations an hour: how many courses, and the years of each."""
WEEKS = {1: 26.0, 10: 6.0, 30: 2.0, 100: 1.0}
"""The weeks of 100 scenarios, by evaluations an hour of each."""


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("wander", WANDER)
@pytest.mark.parametrize(("rate", "days"), [(1, 365), (10, 36), (100, 6)])
def test_scores_that_do_not_change_cause_no_page(rate: int, days: float, wander: float) -> None:
    course = DriftCourse(f"{rate} {wander} 0")
    course.run_wandering(days * DAY_S, Wandering(rate, wander))
    assert course.pages == []


@pytest.mark.slow
@pytest.mark.parametrize("wander", WANDER)
def test_ten_scenarios_that_do_not_change_cause_no_page(wander: float) -> None:
    course = DriftCourse(f"ten {wander}", count=10)
    course.run_wandering(7 * DAY_S, Wandering(10, wander, scenarios=10))
    assert course.pages == []


@pytest.mark.slow
def test_detectors_without_the_sink_cause_the_same_pages() -> None:
    """A course with one of the rare false pages, while its baseline is learned from few scores."""
    traffic, seconds = Wandering(1), 30 * DAY_S
    course = DriftCourse("1 0.0")
    course.run_wandering(seconds, traffic)
    pages = [page for _, page in course.pages]
    assert len(pages) == 1
    assert pages == false_pages("1 0.0", seconds, traffic)


@pytest.mark.slow
@LONG
@pytest.mark.parametrize("wander", WANDER)
def test_a_series_causes_at_most_one_page_in_ten_years(wander: float) -> None:
    pages = dict.fromkeys(YEARS, 0)
    for rate, (courses, years) in YEARS.items():
        for number in range(courses):
            course = DriftCourse(f"{rate} {wander} {number}")
            course.run_wandering(years * YEAR_S, Wandering(rate, wander))
            pages[rate] += len(course.pages)
    print(f"\nwander {wander}: false pages by rate {pages}")
    assert sum(pages.values()) <= 0.1 * sum(number * years for number, years in YEARS.values())


@pytest.mark.slow
@LONG
@pytest.mark.parametrize("wander", WANDER)
@pytest.mark.parametrize("rate", WEEKS)
def test_a_hundred_scenarios_cause_at_most_one_page_in_two_weeks(rate: int, wander: float) -> None:
    weeks = WEEKS[rate]
    traffic = Wandering(rate, wander, scenarios=100)
    pages = false_pages(f"hundred {rate} {wander}", weeks * 7 * DAY_S, traffic, HOUR_S)
    print(f"\n100 scenarios, rate {rate}, wander {wander}: {len(pages)} in {weeks} weeks")
    assert len(pages) <= 0.5 * weeks


@pytest.mark.slow
@LONG
def test_a_hundred_busy_scenarios_cause_no_page_in_two_days() -> None:
    """4.8 million evaluations: 1,000 an hour of each."""
    traffic = Wandering(1000, 0.03, scenarios=100)
    assert false_pages("hundred 1000", 2 * DAY_S, traffic, HOUR_S) == []
