"""Alerts about several scorers and about the cluster: each fires in the bad phase and ends after
it, and no short disturbance or restart triggers it.
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
SHORT = Course(calm=20, bad=30, good=30)
LONG = Course(calm=70, bad=60, good=90)
COMMITS = "pathgauge_store_commit_duration_seconds_count"
SCORER = "b:9464"
"""The instance of a scorer; the other one is the gauge."""


class Case(NamedTuple):
    alert: str
    course: Course
    series: Mapping[str, Values]
    labels: dict[str, str]
    description: str


def growing(course: Course, by: float) -> Values:
    """A level that grows by `by` in each minute of a bad phase, and is 0 otherwise."""
    values: list[float | None] = []
    level = 0.0
    for phase in course.phases():
        level = level + by * course.step if phase == "bad" else 0.0
        values.append(None if phase == "gap" else level)
    return values


def steps(course: Course, every: int) -> Values:
    """A counter that grows by 1 every so many minutes of the bad phase, but not of the blip."""
    value, values = 0.0, []
    for step, phase in enumerate(course.phases()):
        minute = step * course.step
        value = 0.0 if phase == "gap" else value + (phase == "bad" and minute % every == 0)
        values.append(None if phase == "gap" else value)
    return values


def canaries(
    course: Course, refused: tuple[float, float], ok: tuple[float, float]
) -> dict[str, Values]:
    """Two canaries a minute of each of two gateways, by outcome in calm and in bad phases. Those of
    the first are `refused`. The gauge counts the scores.
    """
    count = "pathgauge_canary_traces_total"
    calm, bad = refused
    return {
        named(count, outcome="ok"): course.counter(*ok),
        named(count, outcome="acknowledged", instance=SCORER): course.counter(2 - calm, 2 - bad),
        named(count, outcome="refused", instance=SCORER): course.counter(calm, bad),
        named(count, outcome="acknowledged", instance="c:9464"): course.counter(2, 2),
        named(count, outcome="refused", instance="c:9464"): course.counter(0, 0),
    }


def cases() -> list[Case]:
    return [
        Case(
            "PathgaugeScorerDown",
            SHORT,
            {
                named("pathgauge_scorer_up", scorer="1"): SHORT.gauge(1, 0),
                named("pathgauge_scorer_up", scorer="0"): SHORT.gauge(1, 1),
            },
            {**MAJOR, **CRITICAL, "scorer": "1"},
            "Scorer 1 of a:9464 does not run, or hangs.",
        ),
        Case(
            "PathgaugeScorerRestarting",
            LONG,
            {named("pathgauge_scorer_restarts_total", scorer="1"): steps(LONG, 5)},
            {**MAJOR, **WARNING, "scorer": "1"},
            "Scorer 1 of a:9464 was started again 6 times within half an hour.",
        ),
        Case(
            "PathgaugeKafkaUnreachable",
            SHORT,
            {named("pathgauge_kafka_up"): SHORT.gauge(1, 0)},
            {**MAJOR, **CRITICAL},
            "a:9464 reaches no Kafka broker.",
        ),
        Case(
            "PathgaugePartitionLag",
            LONG,
            {
                named("pathgauge_partition_lag_records", partition="3"): growing(LONG, 500_000),
                named("pathgauge_partition_lag_records", partition="4"): LONG.gauge(900, 900),
            },
            {**JOB, **WARNING, "partition": "3"},
            "30000000 records of partition 3 were not read, and they do not get fewer.",
        ),
        Case(
            "PathgaugePartitionUnread",
            SHORT,
            {
                named("pathgauge_partition_lag_records", partition="3"): SHORT.gauge(5, None),
                named("pathgauge_partition_lag_records", partition="4"): SHORT.gauge(5, 5),
            },
            {**JOB, **CRITICAL, "partition": "3"},
            "No scorer has had partition 3 for five minutes; one had it within the last day.",
        ),
        Case(
            "PathgaugePartitionsFenced",
            LONG,
            {named("pathgauge_partitions_fenced_total"): steps(LONG, 10)},
            {**MAJOR, **WARNING},
            "Partitions that a:9464 lost within an hour before it had committed them: 6.",
        ),
        Case(
            "PathgaugeCanaryFailing",
            SHORT,
            canaries(SHORT, refused=(0.1, 1.5), ok=(3.9, 2.5)),
            {"job": "pathgauge", "instance": SCORER, **CRITICAL},
            "75% of the canary traces of b:9464 were refused or got no score.",
        ),
        Case(
            "PathgaugeCanaryFailing",
            SHORT,
            canaries(SHORT, refused=(0.1, 0.1), ok=(3.9, 0)),
            {**JOB, **CRITICAL},
            "100% of the canary traces were refused or got no score.",
        ),
        Case(
            "PathgaugeGaugeMissing",
            SHORT,
            {
                named("pathgauge_gauge_active"): SHORT.gauge(1, 0),
                named("pathgauge_gauge_active", instance=SCORER): SHORT.gauge(0, 0),
            },
            {**JOB, **CRITICAL},
            "No process of the job pathgauge is the gauge.",
        ),
        Case(
            "PathgaugeGaugeMissing",
            SHORT,
            {
                named("pathgauge_gauge_active"): SHORT.gauge(1, None),
                named("pathgauge_partitions_assigned_total", instance=SCORER): SHORT.gauge(4, 4),
            },
            {**JOB, **CRITICAL},
            "No process of the job pathgauge is the gauge.",
        ),
        Case(
            "PathgaugeSeveralGauges",
            SHORT,
            {
                named("pathgauge_gauge_active"): SHORT.gauge(1, 1),
                named("pathgauge_gauge_active", instance=SCORER): SHORT.gauge(0, 1),
            },
            {**JOB, **WARNING},
            "2 processes of the job pathgauge are the gauge, expected one.",
        ),
        Case(
            "PathgaugeGaugeTakeovers",
            LONG,
            {
                named("pathgauge_gauge_takeovers_total"): steps(LONG, 20),
                named("pathgauge_gauge_takeovers_total", instance=SCORER): steps(LONG, 20),
            },
            {**JOB, **WARNING},
            "Processes of the job pathgauge became the gauge 6 times within an hour.",
        ),
        Case(
            "PathgaugePublicationsUnread",
            SHORT,
            {
                named("pathgauge_gauge_active"): SHORT.gauge(1, 1),
                named(COMMITS, kind="results"): SHORT.counter(60, 0),
                named(COMMITS, kind="results", instance=SCORER): SHORT.counter(240, 240),
            },
            {**JOB, **CRITICAL},
            "The gauge of the job pathgauge is more than ten minutes behind its scorers.",
        ),
        Case(
            "PathgaugePublicationsUnread",
            SHORT,
            {named("pathgauge_publications_oldest_age_seconds"): SHORT.gauge(5, 700)},
            {**JOB, **CRITICAL},
            "The gauge of the job pathgauge is more than ten minutes behind its scorers.",
        ),
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.alert)
def test_the_alert_fires_and_ends_and_ignores_disturbances_and_restarts(
    case: Case, tmp_path: Path
) -> None:
    assert_alerts(tmp_path, case.course, case.series, case.alert, (case.labels, case.description))


def test_a_lag_that_shrinks_is_no_alert(tmp_path: Path) -> None:
    lag = [float(50_000 - 500 * minute) for minute in range(60)]
    assert_silent(
        tmp_path,
        "PathgaugePartitionLag",
        {named("pathgauge_partition_lag_records", partition="3"): lag},
    )


def test_a_partition_stays_unread_until_a_scorer_reads_it(tmp_path: Path) -> None:
    """Otherwise the page would end by itself while requests wait to be lost."""
    lag: Values = [5.0] * 20 + [None] * 280
    alert = "PathgaugePartitionUnread"
    test = {
        "interval": "1m",
        "input_series": written({named("pathgauge_partition_lag_records", partition="3"): lag}),
        "promql_expr_test": [
            {"expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'}
            | {"eval_time": "299m", "exp_samples": [{"labels": "{}", "value": 1}]},
        ],
    }
    result = run(tmp_path, rules_for(alert), test)
    assert result == "SUCCESS", result


def test_a_partition_that_moves_to_another_scorer_is_not_unread(tmp_path: Path) -> None:
    before: Values = [5.0] * 20 + [None] * 40
    after: Values = [None] * 23 + [5.0] * 37
    lag = "pathgauge_partition_lag_records"
    assert_silent(
        tmp_path,
        "PathgaugePartitionUnread",
        {named(lag, partition="3"): before, named(lag, partition="3", instance=SCORER): after},
    )


def test_processes_without_roles_have_no_gauge_and_need_none(tmp_path: Path) -> None:
    alone = {
        named("pathgauge_scorer_up", scorer="0"): [1.0] * 60,
        named(COMMITS, kind="results"): [float(minute) for minute in range(60)],
    }
    for alert in ("PathgaugeGaugeMissing", "PathgaugePublicationsUnread"):
        assert_silent(tmp_path, alert, alone)


def test_the_first_skipped_record_fires_for_half_an_hour(tmp_path: Path) -> None:
    skipped: Values = [None] * 70 + [3.0] * 90
    test = alert_test(
        Course(calm=20, blip=0, gap=10, bad=20, good=60),
        {named("pathgauge_kafka_records_skipped_total", reason="gone"): skipped},
        "PathgaugeKafkaRecordsSkipped",
        (
            {**JOB, **WARNING, "reason": "gone"},
            "Records that were skipped within half an hour (gone): 3.",
        ),
    )
    result = run(tmp_path, rules_for("PathgaugeKafkaRecordsSkipped"), test)
    assert result == "SUCCESS", result


def test_records_skipped_long_ago_are_no_alert_after_a_gap_of_prometheus(tmp_path: Path) -> None:
    """Half an hour after the gap, the counter looks as if it had just appeared."""
    skipped: Values = [0.0] * 5 + [500.0] * 70 + [None] * 12 + [500.0] * 63
    series = {named("pathgauge_kafka_records_skipped_total", reason="gone"): skipped}
    assert_silent(tmp_path, "PathgaugeKafkaRecordsSkipped", series, end=150)


def assert_silent(folder: Path, alert: str, series: Mapping[str, Values], end: int = 60) -> None:
    """No minute of the hour before minute `end` has the alert."""
    test = {
        "interval": "1m",
        "input_series": written(series),
        "promql_expr_test": [{**fired(alert, 60, end), "exp_samples": []}],
    }
    result = run(folder, rules_for(alert), test)
    assert result == "SUCCESS", result
