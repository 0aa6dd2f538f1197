"""Retries: limited in number, never past the deadline, never earlier than `Retry-After`."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.judges.model_client.failures import CallError
from pathgauge.scorers.judges.model_client.retries import MAX_PAUSE_S, Backoff, retry_after
from support.loopback import Time

WALL = datetime(2026, 11, 22, 4, 20, tzinfo=UTC).timestamp()


def failure(*, retryable: bool = True, wait: float | None = None) -> CallError:
    return CallError(
        "judge_unavailable", "503", "the server failed", retryable=retryable, retry_after=wait
    )


async def run(
    failures: list[CallError], retries: int, deadline: float, draws: float = 1.0
) -> tuple[object, list[float], list[float]]:
    """Returns the result or failure, the start times of attempts, and the pauses.

    Each attempt takes one second.
    """
    time = Time(0.0)
    began: list[float] = []
    left = [*failures]

    async def attempt() -> str:
        began.append(time.now)
        time.now += 1
        if left:
            raise left.pop(0)
        return "done"

    try:
        found: object = await Backoff(retries, time, time.sleep, lambda: draws)(attempt, deadline)
    except CallError as error:
        found = error
    return found, began, time.slept


async def test_pauses_double_up_to_30_seconds() -> None:
    found, _, slept = await run([failure()] * 9, 9, 1e9)
    assert (found, slept) == ("done", [0.5, 1, 2, 4, 8, 16, 30, 30, 30])


async def test_jitter_shortens_a_pause_by_up_to_half() -> None:
    _, _, slept = await run([failure()] * 9, 9, 1e9, draws=0.0)
    assert slept == [0.25, 0.5, 1, 2, 4, 8, 15, 15, 15]


async def test_the_last_failure_is_raised() -> None:
    failures = [failure(), failure(), failure()]
    found, began, slept = await run(failures, 2, 1e9)
    assert (found, len(began), len(slept)) == (failures[2], 3, 2)


async def test_permanent_failures_are_not_retried() -> None:
    failures = [failure(), failure(retryable=False), failure()]
    found, began, _ = await run(failures, 5, 1e9)
    assert (found, len(began)) == (failures[1], 2)


WAITS = st.none() | st.floats(0, 100)


@given(st.lists(WAITS, max_size=8), st.integers(0, 6), st.floats(0.1, 300), st.floats(0, 1))
async def test_properties_of_retries(
    waits: list[float | None], retries: int, deadline: float, draws: float
) -> None:
    failures = [failure(wait=wait) for wait in waits]
    found, began, slept = await run(failures, retries, deadline, draws)
    assert len(began) <= retries + 1
    assert len(slept) == len(began) - 1
    assert all(begun < deadline for begun in began[1:])
    for wait, pause in zip(waits, slept, strict=False):
        assert pause >= (wait or 0)
        assert pause <= (wait or 0) + MAX_PAUSE_S
    if found != "done":
        assert found is failures[len(began) - 1]
        wait = waits[len(began) - 1]
        assert len(began) == retries + 1 or began[-1] + 1 + (wait or 0) + MAX_PAUSE_S >= deadline


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (format_datetime(datetime(2026, 11, 22, 4, 21, 30, tzinfo=UTC), usegmt=True), 90.0),
        (format_datetime(datetime(2026, 11, 22, 4, 19, tzinfo=UTC), usegmt=True), 0.0),
        ("Sunday, 22-Nov-26 04:21:30 GMT", 90.0),
        ("", None),
        ("soon", None),
        ("-7", None),
        ("nan", None),
        ("1e999", None),
        ("7 seconds", None),
        ("Sun, 22 Nov 99999 04:21:30 GMT", None),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(value: str, expected: float | None) -> None:
    assert retry_after({"retry-after": value}, WALL) == expected


def test_retry_after_may_be_missing() -> None:
    assert retry_after({}, WALL) is None
