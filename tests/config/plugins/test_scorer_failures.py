"""The log of scorers that fail: each kind of failure has a line from time to time."""

from __future__ import annotations

from structlog.testing import capture_logs

from pathgauge.collector.config.plugins.scorer_failures import (
    LOG_INTERVAL_S,
    MAX_KINDS,
    ScorerFailures,
)


def test_each_kind_of_failure_is_logged_once_in_an_interval_with_its_number() -> None:
    now = [0.0]
    failed = ScorerFailures({"partition": 3}, lambda: now[0])
    key, value = KeyError("content"), ValueError("content")
    with capture_logs() as logs:
        for trace in ("first", "second", "third"):
            failed("plan", key, trace)
        failed("plan", value, "fourth")
        failed("tone", key, "fifth")
        failed("tone", None, "sixth")
        now[0] = LOG_INTERVAL_S
        failed("plan", key, "seventh")
        failed("plan", key, "eighth")
    known = {"partition": 3, "log_level": "error"}
    raised = {"event": "scorer failed", **known}
    assert logs == [
        {**raised, "metric": "plan", "failures": 1, "trace_id": "first", "exc_info": key},
        {**raised, "metric": "plan", "failures": 1, "trace_id": "fourth", "exc_info": value},
        {**raised, "metric": "tone", "failures": 1, "trace_id": "fifth", "exc_info": key},
        {
            "event": "scorer returned no valid score",
            **known,
            "metric": "tone",
            "failures": 1,
            "trace_id": "sixth",
        },
        {**raised, "metric": "plan", "failures": 3, "trace_id": "seventh", "exc_info": key},
    ]


def test_types_that_a_scorer_makes_up_do_not_fill_the_log() -> None:
    failed = ScorerFailures(clock=lambda: 0.0)
    with capture_logs() as logs:
        for number in range(2 * MAX_KINDS):
            failed("plan", type(f"Error{number}", (Exception,), {})(), "trace")
    assert len(logs) == MAX_KINDS
