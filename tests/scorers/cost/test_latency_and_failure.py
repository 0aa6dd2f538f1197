"""Latency and failure: the run itself, without a reference."""

import pytest

from pathgauge import Failure, Latency, Score
from pathgauge.scorers.authoring.builders import invocation


def test_latency_is_the_duration_in_seconds() -> None:
    assert Latency().score(invocation(start_ns=1_000, end_ns=2_500_001_000), None) == Score(
        2.5, None, "2.5 s"
    )


def test_latency_is_unknown_when_start_or_end_is() -> None:
    for times in ({"start_ns": None}, {"end_ns": None}):
        assert Latency().score(invocation(**times), None).reason == "duration_not_recorded"


def test_a_failed_run_has_no_latency() -> None:
    assert Latency().score(invocation(error=True), None) == Score(
        None, "undefined", "the run failed"
    )


@pytest.mark.parametrize(
    ("error", "error_type", "value", "line"),
    [
        (False, None, 0.0, "no error"),
        (True, None, 1.0, "failed"),
        (True, "Time\nout", 1.0, "failed Time out"),
    ],
)
def test_failure(error: bool, error_type: str | None, value: float, line: str) -> None:
    assert Failure().score(invocation(error=error, error_type=error_type), None) == Score(
        value, None, line
    )


def test_less_is_better() -> None:
    assert (Latency.higher_is_better, Failure.higher_is_better) == (False, False)
