"""Traffic that changes while the scores of each scenario do not, and scores that change slowly."""

from __future__ import annotations

import os
from dataclasses import replace
from statistics import median

import pytest

from support.drift_course import DAY_S, HOUR_S, PASS, DriftCourse, Sender, passing
from support.drift_learning import learned

pytestmark = pytest.mark.slow

LONG = "NOISE" in os.environ
MIXES = 100 if LONG else 10
EASY, HARD = passing(0.98), passing(0.7)


def test_another_mix_of_scenarios_is_no_page() -> None:
    """An easy and a hard scenario. Of 10 evaluations an hour first 9 are easy, and then 1 is, for
    three days; in a hundred courses.
    """
    pages = 0
    for number in range(MIXES):
        before = (
            Sender(9, EASY, {"scenario": "s0"}),
            Sender(1, HARD, {"scenario": "s1"}),
        )
        course = DriftCourse(f"mix {number}", count=2)
        rows = learned(f"mix {number}", 10, PASS, before)
        if rows is None:
            continue
        course.learned(rows)
        after = (Sender(1, EASY), Sender(9, HARD, {"scenario": "s1"}))
        course.hours_until_page(72, *after)
        pages += len(course.pages)
    assert pages == 0


def test_quiet_nights_are_no_page_and_hide_no_fall() -> None:
    """No evaluations from 20:00 to 6:00 and at weekends."""
    for number in range(8 if LONG else 2):
        course = DriftCourse(f"nights {number}")
        for day in range(60):
            if day % 7 < 5:
                course.run(14 * HOUR_S, 10, passing(0.95))
            course.pass_time(course.began + (day + 1) * DAY_S)
        assert course.pages == []
        assert course.hours_until_page(48, Sender(10, passing(0.6))) < 12


def test_a_decline_over_three_days_is_found_before_its_end() -> None:
    """The mean falls evenly from 0.95 to 0.8."""
    hours = []
    for number in range(100 if LONG else 10):
        rows = learned(f"slow {number}", 8, PASS, [Sender(20, passing(0.95))])
        if rows is None:
            continue
        course = DriftCourse(f"slow {number}")
        course.learned(rows)
        hour = 0
        while not course.pages and hour < 96:
            mean = 0.95 - 0.15 * min(1, hour / 72)
            course.run(HOUR_S, 20, passing(mean))
            hour += 1
        hours.append(hour)
    print(f"\ndecline over three days: median {median(hours)} h, last {max(hours)} h")
    assert median(hours) <= 60
    assert max(hours) < 96


def test_scores_below_a_threshold_of_one_are_one_episode_at_most() -> None:
    """The mean is 0.95 and the threshold 1: the baseline is learned instead."""
    for rate, days in ((1, 90), (10, 30), (100, 5)):
        course = DriftCourse(f"threshold {rate}")
        course.run(days * DAY_S, rate, passing(0.95))
        assert len(course.pages) <= 1


def test_a_stay_below_an_objective_is_one_episode() -> None:
    course = DriftCourse("objective", replace(PASS, objective=0.99))
    course.run(30 * DAY_S, 10, passing(0.95))
    assert len(course.pages) == 1
