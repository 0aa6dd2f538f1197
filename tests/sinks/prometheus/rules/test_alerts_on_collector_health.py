"""Alerts about the collector: each fires when it should, and neither in a short disturbance nor by
a restart, and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from support.courses import MAJOR, Course, Values, named
from support.promtool import needed, needs_promtool, run, story

pytestmark = needs_promtool

JOB = {"job": "pathgauge"}
WARNING, CRITICAL = {"severity": "warning"}, {"severity": "critical"}


class Case(NamedTuple):
    alert: str
    course: Course
    series: Mapping[str, Values]
    labels: dict[str, str]
    description: str


def requests(code: str, course: Course, calm: float, bad: float) -> dict[str, Values]:
    """Sixty requests a minute, of which some are answered so."""
    about = {"transport": "grpc", "signal": "traces"}
    return {
        named("pathgauge_receiver_requests_total", code="ok", **about): course.counter(
            60 - calm, 60 - bad
        ),
        named("pathgauge_receiver_requests_total", code=code, **about): course.counter(calm, bad),
    }


def cases() -> list[Case]:
    short = Course(calm=20, bad=30, good=30)
    long = Course(blip=2, gap=4, step=2)
    return [
        Case(
            "PathgaugeCollectorDown",
            short,
            {named("up"): short.gauge(1, 0, gap=0)},
            {**JOB, **CRITICAL},
            "Prometheus can scrape no target of the job pathgauge.",
        ),
        Case(
            "PathgaugeCollectorDown",
            short,
            {named("up"): short.gauge(1, None, gap=0)},
            {**JOB, **CRITICAL},
            "Prometheus can scrape no target of the job pathgauge.",
        ),
        Case(
            "PathgaugeInstanceDown",
            short,
            {
                named("up"): short.gauge(1, 0, gap=0),
                named("up", instance="b:9464"): short.gauge(1, 1, gap=1),
            },
            {**MAJOR, **WARNING},
            "Prometheus cannot scrape a:9464 of the job pathgauge.",
        ),
        Case(
            "PathgaugeConfigReloadFailed",
            short,
            {named("pathgauge_config_last_reload_successful"): short.gauge(1, 0)},
            {**MAJOR, **WARNING},
            "a:9464 goes on with the configuration that was in force before.",
        ),
        Case(
            "PathgaugeReceiverRefusing",
            short,
            requests("unauthenticated", short, 0.1, 6),
            {**JOB, **WARNING, "transport": "grpc", "code": "unauthenticated"},
            "10% of the requests over grpc are answered unauthenticated.",
        ),
        Case(
            "PathgaugeReceiverBusy",
            short,
            requests("busy", short, 0.5, 30),
            {**JOB, **WARNING, "transport": "grpc", "code": "busy"},
            "50% of the requests over grpc are answered busy.",
        ),
        Case(
            "PathgaugeSpansDropped",
            long,
            {
                named("pathgauge_spans_dropped_total", reason="late"): long.counter(0.5, 50),
                named("pathgauge_spans_dropped_total", reason="duplicate"): long.counter(100, 100),
                named(
                    "pathgauge_receiver_accepted_spans_total", transport="grpc", format="protobuf"
                ): long.counter(500, 500),
            },
            {**JOB, **WARNING, "reason": "late"},
            "10% of the spans were dropped (late).",
        ),
        Case(
            "PathgaugeStoreNotOk",
            short,
            {
                named("pathgauge_store_state", state="ok"): short.gauge(1, 0),
                named("pathgauge_store_state", state="full"): short.gauge(0, 1),
                named("pathgauge_store_state", state="failed"): short.gauge(0, 0),
            },
            {**MAJOR, **CRITICAL, "state": "full"},
            "The store of a:9464 is full.",
        ),
        Case(
            "PathgaugeBacklogOld",
            short,
            {named("pathgauge_backlog_age_seconds"): short.gauge(2, 90)},
            {**MAJOR, **WARNING},
            "The oldest request that a:9464 has acknowledged and not read is 1m 30s old.",
        ),
        Case(
            "PathgaugeCanaryFailing",
            short,
            {
                named("pathgauge_canary_traces_total", outcome="ok"): short.counter(2, 0),
                named("pathgauge_canary_traces_total", outcome="lost"): short.counter(0, 2),
            },
            {**MAJOR, **CRITICAL},
            "100% of the canaries of a:9464 were refused or got no score.",
        ),
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.alert)
def test_it_fires_and_ends_and_no_disturbance_or_restart_fires_it(
    case: Case, tmp_path: Path
) -> None:
    told = story(case.course, case.series, case.alert, (case.labels, case.description))
    assert run(tmp_path, needed(case.alert), told, step=case.course.step) == "SUCCESS"


def events(course: Course, at: int, value: float) -> Values:
    """A counter that begins at 0 and is `value` after so many minutes."""
    return [
        None if phase == "gap" else value if step * course.step >= at else 0
        for step, phase in enumerate(course.phases())
    ]


@pytest.mark.parametrize(
    ("alert", "name", "label", "expected"),
    [
        (
            "PathgaugeStoreDamaged",
            "pathgauge_store_quarantined_rows_total",
            {},
            ({**MAJOR, **WARNING}, "3 rows in the store of a:9464 were damaged within an hour."),
        ),
        (
            "PathgaugeSeriesOverflow",
            "pathgauge_series_overflow_total",
            {"limit": "versions"},
            ({**JOB, "severity": "info", "limit": "versions"}, "The limit versions was reached."),
        ),
    ],
)
def test_a_single_event_fires_for_an_hour(
    alert: str,
    name: str,
    label: dict[str, str],
    expected: tuple[dict[str, str], str],
    tmp_path: Path,
) -> None:
    course = Course(blip=2, gap=4, step=2)
    series = {named(name, **label): events(course, course.before + 20, 3)}
    assert (
        run(tmp_path, needed(alert), story(course, series, alert, expected), step=course.step)
        == "SUCCESS"
    )


def test_the_watchdog_fires_without_any_series_from_the_first_evaluation(tmp_path: Path) -> None:
    test = story(Course(), {}, "PathgaugeWatchdog", ({"severity": "none"}, WATCHES))
    del test["promql_expr_test"]
    test["alert_rule_test"] = [{**test["alert_rule_test"][0], "eval_time": "0m"}]
    assert run(tmp_path, needed("PathgaugeWatchdog"), test) == "SUCCESS"


WATCHES = "Prometheus evaluates the rules of pathgauge, and Alertmanager sends what they say."
