"""Restarts, crashes, revisions, withdrawals and clock jumps neither cause a page nor hide one."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion
from support.drift_course import DAY_S, HOUR_S, DriftCourse, Sender, passing
from support.sink_harness import Answer

pytestmark = pytest.mark.slow

ANSWER = Criterion("answer", Answer(), 0.9)


def fall(course: DriftCourse) -> float:
    """Hours until a fall to 0.5 pages."""
    return course.hours_until_page(48, Sender(10, passing(0.5)))


def test_restarts_change_no_page() -> None:
    steady, restarted = (DriftCourse("restarts", durable=True) for _ in range(2))
    for _ in range(12 * 6):
        for course in (steady, restarted):
            course.run(4 * HOUR_S, 10, passing(0.95))
            course.commit()
        restarted.restart()
    assert steady.pages == restarted.pages == []
    assert fall(steady) == fall(restarted) < 12


def test_crashes_that_lose_evidence_cause_no_page_and_delay_one_little() -> None:
    course = DriftCourse("crashes", durable=True)
    for number in range(12 * 6):
        course.run(4 * HOUR_S, 10, passing(0.95))
        if number % 3:
            course.commit()
        course.restart()
    assert course.pages == []
    assert fall(course) < 12


def test_an_open_alarm_survives_a_restart_and_is_no_other_page() -> None:
    course = DriftCourse("open", ANSWER, durable=True)
    course.run(HOUR_S, 60, passing(0.2))
    course.commit()
    course.restart()
    course.run(HOUR_S, 60, passing(0.2))
    assert len(course.pages) == 1
    assert len(course.firing) == 1


def test_revisions_and_withdrawals_change_no_page() -> None:
    plain, revised = (DriftCourse("revisions", ANSWER) for _ in range(2))
    for course in (plain, revised):
        for _ in range(2000):
            course.pass_time(course.now + 360)
            value = passing(0.97)(course.random)
            published = course.harness.publish(value, scenario_id="s0")
            if course is revised:
                course.harness.revise(published, 0.0)
                if course.harness.published % 2:
                    course.harness.sink.withdraw(published.key)
    assert fall(plain) == fall(revised) < 12
    assert len(revised.pages) == 1


@pytest.mark.parametrize("jump", [-30 * DAY_S, -DAY_S, DAY_S, 400 * DAY_S])
def test_a_clock_that_jumps_causes_no_page_and_hides_none(jump: float) -> None:
    course = DriftCourse(f"jump {jump}")
    course.run(14 * DAY_S, 10, passing(0.95))
    course.harness.now += jump
    course.run(3 * DAY_S, 10, passing(0.95))
    assert course.pages == []
    assert fall(course) < 24


def test_a_clock_that_swings_all_the_time_causes_no_page() -> None:
    course = DriftCourse("swings")
    for number in range(200):
        course.run(4 * HOUR_S, 10, passing(0.95))
        course.harness.now += HOUR_S if number % 2 else -HOUR_S
    assert course.pages == []
