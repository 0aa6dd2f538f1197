"""Alerts about the collector: each fires in the bad phase and ends after it, and no short
disturbance or restart triggers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from support.courses import MAJOR, Course, Values, named, written
from support.promtool import alert_test, assert_alerts, fired, needs_promtool, rules_for, run

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
    """Sixty requests a minute, of which `calm` or `bad` are answered with `code`."""
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
            "Prometheus cannot scrape any target of the job pathgauge.",
        ),
        Case(
            "PathgaugeCollectorDown",
            short,
            {named("up"): short.gauge(1, None, gap=0)},
            {**JOB, **CRITICAL},
            "Prometheus cannot scrape any target of the job pathgauge.",
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
            "PathgaugeCertificateExpires",
            short,
            {
                named(
                    "pathgauge_certificate_expiry_timestamp_seconds",
                    server="http",
                    file="cert_file",
                ): short.gauge(30 * 86_400, 10 * 86_400)
            },
            {**MAJOR, **WARNING, "server": "http", "file": "cert_file"},
            "Time until cert_file of http in a:9464 expires: 9d 22h 27m 0s. If it is negative, it"
            " has expired.",
        ),
        Case(
            "PathgaugeConfigReloadFailed",
            short,
            {named("pathgauge_config_last_reload_successful"): short.gauge(1, 0)},
            {**MAJOR, **WARNING},
            "a:9464 keeps the configuration that was active before. Its log has the file, line and"
            " key.",
        ),
        Case(
            "PathgaugeReceiverRefusing",
            short,
            requests("unauthenticated", short, 0.1, 6),
            {**JOB, **WARNING, "transport": "grpc", "code": "unauthenticated"},
            "10% of the requests over grpc are answered with unauthenticated. The log names the"
            " senders.",
        ),
        Case(
            "PathgaugeReceiverBusy",
            short,
            requests("busy", short, 0.5, 30),
            {**JOB, **WARNING, "transport": "grpc", "code": "busy"},
            "50% of the requests over grpc are answered with busy.",
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
            "10% of the accepted spans were dropped (late).",
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
            "The oldest request that a:9464 has acknowledged but not processed is 1m 30s old.",
        ),
        Case(
            "PathgaugeBacklogOld",
            short,
            {
                named("pathgauge_backlog_age_seconds"): short.gauge(2, 90),
                named("pathgauge_scoring_seconds_total", metric="f1"): short.counter(1, 1),
                named("pathgauge_scoring_seconds_total", metric="slow"): short.counter(1, 30),
            },
            {**MAJOR, **WARNING},
            "The oldest request that a:9464 has acknowledged but not processed is 1m 30s old; the"
            " scorer of slow takes 50% of the time.",
        ),
        Case(
            "PathgaugeCanaryFailing",
            short,
            {
                named("pathgauge_canary_traces_total", outcome="ok"): short.counter(2, 0),
                named("pathgauge_canary_traces_total", outcome="lost"): short.counter(0, 2),
            },
            {**MAJOR, **CRITICAL},
            "100% of the canary traces of a:9464 were refused or got no score.",
        ),
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.alert)
def test_the_alert_fires_and_ends_and_ignores_disturbances_and_restarts(
    case: Case, tmp_path: Path
) -> None:
    assert_alerts(tmp_path, case.course, case.series, case.alert, (case.labels, case.description))


def events(course: Course, at: int, value: float) -> Values:
    """A counter that jumps from 0 to `value` in minute `at`."""
    return [
        None if phase == "gap" else value * (step * course.step >= at)
        for step, phase in enumerate(course.phases())
    ]


@pytest.mark.parametrize(
    ("alert", "name", "label", "expected"),
    [
        (
            "PathgaugeStoreDamaged",
            "pathgauge_store_quarantined_rows_total",
            {},
            (
                {**MAJOR, **WARNING},
                "Damaged rows of the store of a:9464 that were quarantined within an hour: 3.",
            ),
        ),
        (
            "PathgaugeSeriesOverflow",
            "pathgauge_series_overflow_total",
            {"limit": "versions"},
            ({**JOB, "severity": "info", "limit": "versions"}, "The limit versions is reached."),
        ),
        (
            "PathgaugeSeriesOverflow",
            "pathgauge_series_overflow_total",
            {"limit": "agents"},
            ({**JOB, **WARNING, "limit": "agents"}, "The limit agents is reached."),
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
    assert_alerts(tmp_path, course, series, alert, expected)


def test_rows_damaged_before_the_first_scrape_are_an_alert_once(tmp_path: Path) -> None:
    """A collector that starts reads its store, and a container gets another label `instance`. The
    gap of a Prometheus that was restarted is not such a start.
    """
    alert = "PathgaugeStoreDamaged"
    damaged: Values = [None] * 10 + [3.0] * 90 + [None] * 12 + [3.0] * 98
    test = {
        "interval": "1m",
        "input_series": written({named("pathgauge_store_quarantined_rows_total"): damaged}),
        "promql_expr_test": [
            {"expr": f'ALERTS{{alertname="{alert}"}} > 0', "eval_time": "9m", "exp_samples": []},
            {"expr": f'count(ALERTS{{alertname="{alert}"}})', "eval_time": "60m"}
            | {"exp_samples": [{"labels": "{}", "value": 1}]},
            {**fired(alert, 120, 209), "exp_samples": []},
        ],
    }
    result = run(tmp_path, rules_for(alert), test)
    assert result == "SUCCESS", result


def test_the_watchdog_fires_without_any_series_from_the_first_evaluation(tmp_path: Path) -> None:
    test = alert_test(Course(), {}, "PathgaugeWatchdog", ({"severity": "none"}, WATCHDOG_TEXT))
    del test["promql_expr_test"]
    test["alert_rule_test"] = [{**test["alert_rule_test"][0], "eval_time": "0m"}]
    assert run(tmp_path, rules_for("PathgaugeWatchdog"), test) == "SUCCESS"


WATCHDOG_TEXT = "Prometheus evaluates the rules of pathgauge, and Alertmanager delivers alerts."
